"""How datagrams reach other agents: a small interface, and UDP to each peer.

Sending is best effort: what the kernel does not take is counted and lost, and mended by digest and snapshot.
Datagrams to many peers leave in slices between which the event loop serves clients.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ark.agent.addresses import SocketAddress, format_address
from ark.control.outbox import Send
from ark.control.wire import DATAGRAM_MAX

SLICE: Final = 8
"""Datagrams sent before the loop looks after clients again: about 50 µs."""

READS_MAX: Final = 64
"""Datagrams read before the loop looks after clients again."""

QUEUE_MAX: Final = 65_536
"""Datagrams that wait to be sent. Full: the newest is dropped and counted; the digest tells the peer."""

Receive = Callable[[bytes, str], None]
"""Takes one datagram and the address it came from."""


@dataclass(slots=True)
class TransportCounters:
    """Counts since the start."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    send_buffer_full: int = 0
    """Datagrams that the kernel had no room for."""
    send_failed: int = 0
    queue_full: int = 0


class Transport(Protocol):
    """What the daemon needs of a network."""

    counters: TransportCounters

    @property
    def address(self) -> str:
        """Our own control address, as peers see it; "" where there is none."""

    def start(self, receive: Receive) -> None:
        """Begin to hand over datagrams, from within a running event loop."""

    def send(self, sends: Iterable[Send]) -> None:
        """Queue datagrams; they leave soon, and never before this returns."""

    def set_peers(self, peers: Mapping[int, SocketAddress]) -> None:
        """Who is meant by a datagram for everybody, from now on."""

    def listen(self, subject: str) -> None:
        """Hear one more subject, where a network has subjects."""

    def drops(self) -> int:
        """Datagrams that were dropped because we were too slow: our receive buffer was full."""

    def close(self) -> None:
        """Stop, and free the address."""

    async def wait_closed(self) -> None:
        """Return once nothing of it is left in the event loop."""


class UdpTransport:
    """UDP to a list of peers.

    Parameters
    ----------
    bind
        Our own address; port 0 takes a free one.
    receive_buffer_bytes
        Asked of the kernel, which gives at most ``net.core.rmem_max``.
    """

    def __init__(self, bind: SocketAddress, *, receive_buffer_bytes: int) -> None:
        self.counters = TransportCounters()
        self._socket = udp_socket(bind, receive_buffer_bytes)
        self._address = format_address(self._socket.getsockname()[:2])
        self._queue: deque[tuple[bytes, SocketAddress]] = deque()
        self._peers: dict[int, SocketAddress] = {}
        self._everybody: tuple[SocketAddress, ...] = ()
        self._names: dict[SocketAddress, str] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._draining = False

    @property
    def address(self) -> str:
        """Our own control address."""
        return self._address

    @property
    def queued(self) -> int:
        """How many datagrams wait to be sent."""
        return len(self._queue)

    @property
    def receive_buffer_bytes(self) -> int:
        """What the kernel gives; it counts its own overhead, so half of it is for data."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2

    def start(self, receive: Receive) -> None:
        """Begin to hand over datagrams."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._read, self._socket, receive)

    def set_peers(self, peers: Mapping[int, SocketAddress]) -> None:
        """Send to these from now on."""
        self._peers = dict(peers)
        self._everybody = tuple(peers.values())
        self._names = {address: format_address(address) for address in peers.values()}

    def send(self, sends: Iterable[Send]) -> None:
        """Queue datagrams for everybody, or for one peer."""
        for send in sends:
            if send.host is None:
                self._put(send.data, self._everybody)
            elif send.host in self._peers:
                self._put(send.data, (self._peers[send.host],))
        if self._queue and not self._draining and self._loop is not None:
            self._draining = True
            self._loop.call_soon(self._drain)

    def listen(self, subject: str) -> None:
        """Nothing to do: what peers send comes here whatever it is about."""

    def drops(self) -> int:
        """As the kernel counts them for our socket."""
        return kernel_drops(self._socket)

    def close(self) -> None:
        """Stop; what is queued is lost."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        self._queue.clear()
        self._socket.close()

    async def wait_closed(self) -> None:
        """Nothing is left after ``close``."""

    def _put(self, data: bytes, addresses: Iterable[SocketAddress]) -> None:
        for address in addresses:
            if len(self._queue) >= QUEUE_MAX:
                self.counters.queue_full += 1
            else:
                self._queue.append((data, address))

    def _drain(self) -> None:
        """Send a slice of the queue."""
        queue, counters, sendto = self._queue, self.counters, self._socket.sendto
        self._draining = False
        for _ in range(min(SLICE, len(queue))):
            data, address = queue.popleft()
            try:
                sendto(data, address)
            except BlockingIOError:
                counters.send_buffer_full += 1
            except OSError:
                counters.send_failed += 1
            else:
                counters.sent += 1
                counters.sent_bytes += len(data)
        if queue and self._loop is not None:
            self._draining = True
            self._loop.call_soon(self._drain)

    def _read(self, source: socket.socket, receive: Receive) -> None:
        names, counters = self._names, self.counters
        for _ in range(READS_MAX):
            try:
                data, address = source.recvfrom(DATAGRAM_MAX + 1)
            except BlockingIOError:
                return
            except OSError:  # an error of an earlier send, told here by the kernel
                counters.send_failed += 1
                return
            counters.received += 1
            counters.received_bytes += len(data)
            receive(data, names.get(address[:2]) or format_address(address[:2]))


def udp_socket(bind: SocketAddress, receive_buffer_bytes: int) -> socket.socket:
    """A bound socket that never blocks."""
    family = socket.AF_INET6 if ":" in bind[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        made.bind(bind)
    except OSError as error:
        made.close()
        raise OSError(error.errno, error.strerror, f"control address {format_address(bind)}") from None
    return made


def kernel_drops(bound: socket.socket) -> int:
    """The kernel's drop counter of a UDP socket; 0 where the system does not tell."""
    inode = str(Path(f"/proc/self/fd/{bound.fileno()}").readlink()).strip("socket:[]")
    table = Path("/proc/net/udp6" if bound.family == socket.AF_INET6 else "/proc/net/udp")
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        fields = line.split()
        if len(fields) >= 13 and fields[9] == inode:
            return int(fields[12])
    return 0
