"""Vendors' own calls that change the source port of a queue pair which is ready to send.

They are found and judged at run time: where the library, the function or the hardware's ability is missing,
the answer says so and nothing has changed. Packets in flight may be overtaken by those of the new path, which
go-back-N pays for: call with nothing outstanding on the queue pair.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from typing import Final

from ark.errors import LocalProtocolError
from ark.fabric.roce import SPORTS
from ark.integrations.roce.drivers import Driver, VendorCall
from ark.integrations.roce.outcome import NotSteered, Outcome, Steered

_UNSUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})
_RTS_OR_CAPABLE: Final = (
    "the NIC (or its virtual function) lacks the ability, or the queue pair is not in RTS"
)


def modify_udp_sport(
    driver: Driver, qp_address: int, source_port: int, *, libraries: Sequence[str] | None = None
) -> Outcome:
    """Change the port of a live queue pair by its vendor's call.

    Parameters
    ----------
    driver
        That of the queue pair: another vendor's call on it would read foreign memory.
    qp_address
        Address of the ``struct ibv_qp``.
    libraries
        In place of the driver's usual ones, for libraries that a wheel has renamed.

    Raises
    ------
    LocalProtocolError
        If RoCEv2 does not use the port, or the address is none.
    """
    if source_port not in SPORTS:
        raise LocalProtocolError(
            f"RoCE source ports are {SPORTS.start} to {SPORTS.stop - 1}, not {source_port}"
        )
    if not 0 < qp_address < 1 << 64:
        raise LocalProtocolError(f"{qp_address:#x} is no address of a queue pair")
    if driver.call is None:
        return NotSteered(f"{driver.name}: {driver.why_not_moved or 'has no call for it'}")
    call = driver.call
    function = _found(call, call.libraries if libraries is None else tuple(libraries))
    if isinstance(function, NotSteered):
        return function
    # Some return an errno, some a negated one, and some -1 with errno set.
    ctypes.set_errno(0)
    said = int(function(qp_address, source_port))
    return judged(call.symbol, source_port, said, ctypes.get_errno())


def judged(symbol: str, source_port: int, returned: int, errno_after: int = 0) -> Outcome:
    """What a call's return value means."""
    if returned == 0:
        return Steered(source_port, symbol)
    code = errno_after if returned == -1 and errno_after else abs(returned)
    if code in _UNSUPPORTED:
        return NotSteered(f"{symbol}: {_RTS_OR_CAPABLE}")
    why = f"{os.strerror(code)} ({errno.errorcode[code]})" if code in errno.errorcode else f"code {returned}"
    return NotSteered(f"{symbol} failed: {why}")


def _found(call: VendorCall, libraries: tuple[str, ...]) -> "ctypes._NamedFuncPointer | NotSteered":
    for name in libraries:
        try:
            library = ctypes.CDLL(name, use_errno=True)
        except OSError:
            continue
        try:
            function: ctypes._NamedFuncPointer = getattr(library, call.symbol)
        except AttributeError:
            return NotSteered(f"{name} has no {call.symbol}; it is there since {call.since}")
        function.argtypes = [ctypes.c_void_p, ctypes.c_uint16]
        function.restype = ctypes.c_int
        return function
    return NotSteered(f"no {' or '.join(libraries)} can be loaded")
