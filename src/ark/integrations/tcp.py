"""TCP connections whose source port is one of a list: those whose hash leads over the chosen path.

Binding to a port of one's own choice meets whatever else has that port, in one of three ways:

- Another program's socket holds it: ``bind`` says ``EADDRINUSE``, and the next port of the list is tried. So
  with a port of ``net.ipv4.ip_local_reserved_ports``: its service could not start any more.
- A connection of the same two ports and addresses is open, or was closed by us within the last minute
  (``TIME_WAIT``): ``connect`` says ``EADDRNOTAVAIL``, and the next port is tried.
- A connection of ours from that port leads to another target, or is in ``TIME_WAIT`` towards one: no
  conflict. ``SO_REUSEADDR`` makes it none. ``SO_REUSEPORT`` is not set: it would let others share the port.

When none is free, the connection is made from any port: a transfer without a preference is better than none;
``source_port`` tells. A program that makes a connection for each transfer runs out of the 16 ports of a path
after 16 transfers a minute to one peer; keep connections, as ``ark.integrations.tcp_lanes`` does.
"""

import asyncio
import errno
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from ark.errors import LocalProtocolError

IP_BIND_ADDRESS_NO_PORT: Final = 24
"""Socket option: ``bind`` leaves the port to ``connect``. Source: Linux, include/uapi/linux/in.h."""

IP_LOCAL_PORT_RANGE: Final = 51
"""Socket option of Linux 6.3 and later: the ports from which the kernel takes one. Source: the same file."""

PORT_MAX: Final = 65_535

RESERVED: Final = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")
"""Where this process's network namespace says which ports are not for connections."""

_TAKEN: Final = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL})


_Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
"""What ``connect`` takes, as ``getaddrinfo`` gives it."""


class _Attempt:
    """A socket that is closed unless it connects; on errors that are passed over, another attempt is made."""

    def __init__(self, made: socket.socket, passed_over: frozenset[int]) -> None:
        self._socket = made
        self._passed_over = passed_over

    def __enter__(self) -> socket.socket:
        return self._socket

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self._socket.close()
        return isinstance(error, OSError) and error.errno in self._passed_over


def connect(
    target: tuple[str, int],
    *,
    source: str = "",
    ports: Sequence[int],
    timeout_s: float | None = None,
) -> socket.socket:
    """A connection from the first free port of ``ports``; from any port where none is free.

    Parameters
    ----------
    target
        Name or address, and port.
    source
        The address to send from, for which the ports were chosen; "" leaves it to the kernel.
    ports
        Source ports, best first.
    timeout_s
        How long the other side may take to accept; by default as long as the kernel waits.

    Raises
    ------
    LocalProtocolError
        If a port is none.
    OSError
        If the target can't be reached by any of its addresses, or ``source`` is no address of this host.
    """
    _check(ports)
    failed = None
    for family, *_, where in socket.getaddrinfo(*target, _family(source), socket.SOCK_STREAM):
        try:
            return _connect(family, where, source, ports, timeout_s)
        except OSError as error:
            failed = error
    assert failed is not None, "a name that is found has an address"
    raise failed


def _connect(
    family: socket.AddressFamily,
    where: "_Address",
    source: str,
    ports: Sequence[int],
    timeout_s: float | None,
) -> socket.socket:
    """``connect`` to one of the addresses of a name."""
    for attempt in _attempts(family, source, ports):
        with attempt as made:
            made.settimeout(timeout_s)
            made.connect(where)
            made.settimeout(None)
            return made
    raise AssertionError("the last attempt returns or raises")


async def connect_async(target: tuple[str, int], *, source: str = "", ports: Sequence[int]) -> socket.socket:
    """``connect`` for asyncio: a non-blocking socket, as ``asyncio.open_connection(sock=…)`` takes it."""
    _check(ports)
    loop = asyncio.get_running_loop()
    failed = None
    for family, *_, where in await loop.getaddrinfo(*target, family=_family(source), type=socket.SOCK_STREAM):
        try:
            return await _connect_async(family, where, source, ports)
        except OSError as error:
            failed = error
    assert failed is not None, "a name that is found has an address"
    raise failed


async def _connect_async(
    family: socket.AddressFamily, where: "_Address", source: str, ports: Sequence[int]
) -> socket.socket:
    """``connect_async`` to one of the addresses of a name."""
    loop = asyncio.get_running_loop()
    for attempt in _attempts(family, source, ports):
        with attempt as made:
            made.setblocking(False)
            await loop.sock_connect(made, where)
            return made
    raise AssertionError("the last attempt returns or raises")


def connect_within(
    target: tuple[str, int], *, source: str = "", ports: range, timeout_s: float | None = None
) -> socket.socket:
    """A connection from a port that the kernel takes out of a range; else as ``connect``.

    The kernel also takes ports from which other programs have connections to other targets, which ``bind``
    would refuse. It looks only inside of ``net.ipv4.ip_local_port_range``, and ignores a range that lies
    outside; before Linux 6.3 the ports are tried one by one.

    Raises
    ------
    LocalProtocolError
        If ``ports`` is empty, has gaps, or holds what is no port.
    OSError
        As of ``connect``.
    """
    if not ports or ports.step != 1:
        raise LocalProtocolError(f"ports {ports}: give a range of ports without gaps")
    _check(ports)
    family, *_, where = socket.getaddrinfo(*target, _family(source), socket.SOCK_STREAM)[0]
    with _Attempt(_bound(family, source, 0), _TAKEN | {errno.ENOPROTOOPT}) as made:
        made.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("=HH", ports[0], ports[-1]))
        made.settimeout(timeout_s)
        made.connect(where)
        made.settimeout(None)
        return made
    return connect(target, source=source, ports=ports, timeout_s=timeout_s)


def source_port(connection: socket.socket) -> int:
    """The port that a connection is sent from."""
    return int(connection.getsockname()[1])


def _check(ports: Sequence[int]) -> None:
    wrong = [port for port in ports if not 1 <= port <= PORT_MAX]
    if wrong:
        raise LocalProtocolError(f"source port {wrong[0]}: allowed are 1 to {PORT_MAX}")


def _attempts(family: socket.AddressFamily, source: str, ports: Sequence[int]) -> Iterator[_Attempt]:
    """Sockets bound to one port after the other, as far as these are free, and one that is bound to none."""
    reserved = _reserved_ports()
    for port in ports:
        if any(port in range_ for range_ in reserved):
            continue
        try:
            yield _Attempt(_bound(family, source, port), _TAKEN)
        except OSError as error:
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:  # the latter: a port of root's
                raise
    yield _Attempt(_bound(family, source, 0), frozenset())


def _reserved_ports() -> list[range]:
    """What the administrator keeps for services, as 8080,9000-9100; nothing where the kernel does not say."""
    try:
        ranges = RESERVED.read_text().strip().split(",")
        ends = [(first, last or first) for first, _, last in (one.partition("-") for one in ranges) if first]
        return [range(int(first), int(last) + 1) for first, last in ends]
    except (OSError, ValueError):
        return []


def _bound(family: socket.AddressFamily, source: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            made.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        if source or port:
            made.bind(_own(family, source, port))
    except BaseException:
        made.close()
        raise
    return made


def _own(family: socket.AddressFamily, source: str, port: int) -> tuple[object, ...]:
    flags = socket.AI_PASSIVE | socket.AI_NUMERICHOST
    return socket.getaddrinfo(source or None, port, family, socket.SOCK_STREAM, 0, flags)[0][4]


def _family(source: str) -> socket.AddressFamily:
    """That of the source, as far as one is given."""
    if not source:
        return socket.AF_UNSPEC
    return socket.AF_INET6 if ":" in source else socket.AF_INET
