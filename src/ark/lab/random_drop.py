"""Loses a share of the packets that leave an interface, by eight instructions of BPF.

Kernels without NETEM (and hosts without iptables) can do it all the same: a program at the clsact hook draws
a random number for each packet. It needs root, ``CONFIG_BPF_SYSCALL`` and ``CONFIG_NET_CLS_BPF``.
"""

import ctypes
import errno
import os
import platform
import struct
from typing import TYPE_CHECKING, Final

from ark.errors import LabError
from ark.lab.needs import needs

if TYPE_CHECKING:
    from pyroute2 import IPRoute

_SYSCALL: Final = {"x86_64": 321, "aarch64": 280}
"""Number of ``bpf(2)`` by machine. Source: Linux, the syscall tables."""

_PROG_LOAD: Final = 5
_SCHED_CLS: Final = 3
_GET_PRANDOM_U32: Final = 7
_PASS, _DROP = 0, 2  # TC_ACT_OK, TC_ACT_SHOT
_CALL, _JUMP_LESS_32, _MOVE, _EXIT = 0x85, 0xA6, 0xB7, 0x95  # Source: Linux, include/uapi/linux/bpf.h
_EGRESS: Final = 0xFFFF_FFF3
"""Where a filter on packets that leave hangs: ``TC_H_CLSACT`` with ``TC_H_MIN_EGRESS``."""


def set_loss(routes: "IPRoute", interface: int, share: float) -> None:
    """Lose ``share`` (0 to 1) of the packets that leave an interface from now on; 0 loses none again.

    Raises
    ------
    LabError
        If the kernel has no BPF, or does not let us use it.
    """
    from pyroute2 import NetlinkError  # noqa: PLC0415 - takes most of a second to import

    try:
        routes.tc("del", "clsact", interface)  # with all that hangs there
    except NetlinkError as error:
        if error.code not in {errno.ENOENT, errno.EINVAL}:
            raise
    if not share:
        return
    program = _load(share)
    try:
        with needs("a BPF filter", "CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF"):
            routes.tc("add", "clsact", interface)
            routes.tc(
                "add-filter",
                "bpf",
                interface,
                fd=program,
                name="ark-lab-loss",
                parent=_EGRESS,
                classid=1,
                direct_action=True,
            )
    finally:
        os.close(program)  # the filter holds it


def _load(share: float) -> int:
    """The file descriptor of a program that drops a packet when a random number is below ``share``."""
    below = min(int(share * 2**32), 2**32 - 1)
    text = b"".join(
        (
            _instruction(_CALL, immediate=_GET_PRANDOM_U32),
            _instruction(_JUMP_LESS_32, offset=2, immediate=below),
            _instruction(_MOVE, immediate=_PASS),
            _instruction(_EXIT),
            _instruction(_MOVE, immediate=_DROP),
            _instruction(_EXIT),
        )
    )
    code = ctypes.create_string_buffer(text, len(text))
    license_ = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQ", _SCHED_CLS, len(text) // 8, ctypes.addressof(code), ctypes.addressof(license_)
    ).ljust(128, b"\0")
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise LabError(f"losing packets is not built for {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(number, _PROG_LOAD, attributes, len(attributes)))
    if found < 0:
        why = os.strerror(ctypes.get_errno())
        raise LabError(f"cannot load a BPF program: {why}; losing packets needs root and CONFIG_NET_CLS_BPF")
    return found


def _instruction(code: int, *, offset: int = 0, immediate: int = 0) -> bytes:
    """One instruction on register 0."""
    return struct.pack("=BBhI", code, 0, offset, immediate)
