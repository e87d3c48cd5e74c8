"""Which driver an RDMA device has: asked of the kernel by netlink, without root.

Source: Linux, include/uapi/rdma/rdma_netlink.h (``RDMA_NLDEV_CMD_GET``, ``RDMA_NLDEV_CMD_GET_CHARDEV``), as
libibverbs finds the driver of a device.
"""

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

from ark.errors import LabError, LocalProtocolError
from ark.integrations.roce.drivers import BY_NUMBER, Driver, unknown
from ark.units import quoted

NETLINK_RDMA: Final = 20
NLDEV: Final = 5
GET: Final = 1
GET_CHARDEV: Final = 15

DEV_INDEX: Final = 1
DEV_NAME: Final = 2
CHARDEV_TYPE: Final = 69
DRIVER_ID: Final = 73

NLMSG_ERROR: Final = 2
NLMSG_DONE: Final = 3

_REQUEST: Final = 0x1
_DUMP: Final = 0x300
_TIMEOUT_S: Final = 2.0
_ANSWER_MAX: Final = 65_536
_TYPE_MASK: Final = 0x3FFF  # the upper two bits of an attribute's type are flags
_HEAD: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")

Attributes = dict[int, bytes]


def driver_of(device: str) -> Driver:
    """The driver of a device such as ``mlx5_0``.

    Raises
    ------
    LabError
        If the kernel has no RDMA subsystem, or does not answer.
    LocalProtocolError
        If there is no such device.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA) as kernel:
            kernel.settimeout(_TIMEOUT_S)
            return asked_of(kernel, device)
    except OSError as error:
        raise LabError(f"cannot ask the kernel for RDMA devices: {error}; run: modprobe ib_uverbs") from None


def asked_of(kernel: socket.socket, device: str) -> Driver:
    """The conversation with the kernel: which number the device has, then whose it is."""
    index = _index_of(device, _asked(kernel, GET, _DUMP, b""))
    about = attribute(DEV_INDEX, struct.pack("=I", index)) + attribute(CHARDEV_TYPE, b"uverbs\0")
    answers = _asked(kernel, GET_CHARDEV, 0, about)
    return driver_in(answers[0] if answers else {}, device)


def driver_in(answer: Attributes, device: str) -> Driver:
    """The driver that an answer names."""
    raw = answer.get(DRIVER_ID, b"")
    number = int.from_bytes(raw[:8], "little" if struct.pack("=H", 1) == b"\1\0" else "big")
    return BY_NUMBER.get(number) or unknown(f"number {number} of {device}")


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute as bytes, padded to 4."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message in a datagram; what is cut off or malformed ends it."""
    while len(data) >= _HEAD.size:
        length, kind, *_ = _HEAD.unpack_from(data)
        if not _HEAD.size <= length <= len(data):
            return
        yield kind, data[_HEAD.size : length]
        data = data[(length + 3) & ~3 :]


def attributes(body: bytes) -> Attributes:
    """The attributes of a message by type; what is cut off or malformed ends them."""
    found: Attributes = {}
    while len(body) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(body)
        if not _ATTRIBUTE.size <= length <= len(body):
            break
        found[kind & _TYPE_MASK] = body[_ATTRIBUTE.size : length]
        body = body[(length + 3) & ~3 :]
    return found


def _index_of(device: str, answers: list[Attributes]) -> int:
    names: dict[str, int] = {}
    for answer in answers:
        name = answer.get(DEV_NAME, b"").rstrip(b"\0").decode(errors="replace")
        names[name] = struct.unpack("=I", answer.get(DEV_INDEX, bytes(4))[:4].ljust(4, b"\0"))[0]
    if device not in names:
        raise LocalProtocolError(
            f"{quoted(device)} is no RDMA device; there are {', '.join(sorted(names)) or 'none'}"
        )
    return names[device]


def _asked(kernel: socket.socket, command: int, flags: int, body: bytes) -> list[Attributes]:
    """All answers to one request."""
    kind = NLDEV << 10 | command
    length = _HEAD.size + len(body)
    kernel.send(_HEAD.pack(length, kind, _REQUEST | flags, 1, 0) + body)
    found: list[Attributes] = []
    while True:
        for answered, answer in messages(kernel.recv(_ANSWER_MAX)):
            if answered == NLMSG_DONE:
                return found
            if answered == NLMSG_ERROR:
                code = -struct.unpack("=i", answer[:4].ljust(4, b"\0"))[0]
                raise OSError(code, os.strerror(code))
            found.append(attributes(answer))
        if not flags:
            return found
