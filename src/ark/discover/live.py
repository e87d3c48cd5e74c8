"""The shell around the prober: raw sockets, the clock, and nothing decided.

Needs ``CAP_NET_RAW`` and nothing else: ``setcap cap_net_raw+ep`` on the interpreter, or
``AmbientCapabilities=CAP_NET_RAW`` in a systemd unit; root has it.
"""

import socket
import struct
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from select import select
from typing import Final, Self

from ark.discover import icmp
from ark.discover.probe import Probe, packet
from ark.discover.prober import Prober
from ark.discover.watch import Watch, step_all
from ark.errors import ConfigError, LabError
from ark.units import NS_PER_S

_SOL_RAW: Final = 255
_ICMP_FILTER: Final = 1
_ICMP6_FILTER: Final = 1
_DATAGRAM_MAX: Final = 65_535
_HEARD_AT_ONCE: Final = 256
"""Answers taken in before probes are looked at again."""
_BUFFER_BYTES: Final = 1 << 20
_WAIT_MAX_S: Final = 0.5


class RawSockets:
    """Sends whole packets, and hears the ICMP errors of one address family."""

    def __init__(self, version: int, *, interface: str | None = None, dscp: int = 0) -> None:
        self.version = version
        self._dscp = dscp
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        protocol = socket.IPPROTO_ICMP if version == 4 else socket.IPPROTO_ICMPV6
        opened: list[socket.socket] = []
        try:
            for number in (socket.IPPROTO_RAW, protocol):
                opened.append(socket.socket(family, socket.SOCK_RAW, number))
                opened[-1].setblocking(False)
            self._sender, self._hearer = opened
            self._hearer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            self._filter()
            if interface is not None:
                self._sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        except OSError as error:
            for one in opened:
                one.close()
            if isinstance(error, PermissionError):
                raise LabError(
                    "probing needs the capability CAP_NET_RAW; run it as: sudo ark discover …, or give it to "
                    'the interpreter once: sudo setcap cap_net_raw+ep "$(readlink -f "$(which python3)")"'
                ) from None
            if interface is not None and opened:
                raise ConfigError(f'--interface: cannot use "{interface}": {error.strerror}') from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.close()
        self._hearer.close()

    def send(self, probe: Probe, nonce: int) -> bool:
        """Send one probe; false where the system would not take it now."""
        try:
            self._sender.sendto(packet(probe, nonce, dscp=self._dscp), (probe.flow.dst, 0))
        except OSError:  # no buffer, no route, link down: as lost as if a router had dropped it
            return False
        return True

    def hear(self) -> list[icmp.IcmpError]:
        """The ICMP errors that have come, a bounded number of them."""
        heard = []
        for _ in range(_HEARD_AT_ONCE):
            try:
                data, where = self._hearer.recvfrom(_DATAGRAM_MAX)
            except OSError:  # nothing more is there
                break
            error = icmp.read_icmp4(data) if self.version == 4 else icmp.read_icmp6(data, str(where[0]))
            if error is not None:
                heard.append(error)
        return heard

    def wait(self, timeout_s: float) -> None:
        """Wait until something can be heard, or the time is over."""
        select([self._hearer], [], [], max(0.0, timeout_s))

    def _filter(self) -> None:
        """Let the kernel keep all ICMP messages back but errors; a set bit blocks a type."""
        if self.version == 4:
            blocked = 0xFFFF_FFFF & ~(1 << icmp.TIME_EXCEEDED4 | 1 << icmp.UNREACHABLE4)
            self._hearer.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", blocked))
            return
        words = [0xFFFF_FFFF] * 8
        words[0] &= ~(1 << icmp.TIME_EXCEEDED6 | 1 << icmp.UNREACHABLE6)
        self._hearer.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack("=8I", *words))


def keep_watch(
    watches: Sequence[Watch],
    prober: Prober,
    sockets: RawSockets,
    *,
    until: Callable[[], bool],
    on_news: Callable[[Watch, str], None],
    on_turn: Callable[[], None] = lambda: None,
) -> None:
    """Watch maps until ``until`` says so.

    It is asked at least twice a second; each time all news are told before, and then ``on_turn`` is called.
    """
    while not until():
        now = time.monotonic_ns()
        for asking in step_all(watches, now):
            prober.add(asking)
        for one in watches:
            while one.news:
                on_news(one, one.news.popleft())
        on_turn()
        deadlines = [one.next_ns for one in watches if not one.is_waiting]
        answers_due = prober.next_deadline()
        if answers_due is not None:
            deadlines.append(answers_due)
        _turn(prober, sockets, (min(deadlines, default=now + NS_PER_S) - now) / NS_PER_S)


def run(prober: Prober, sockets: RawSockets, *, on_progress: Callable[[], None] = lambda: None) -> None:
    """Probe until every search has ended; ``on_progress`` is called at least twice a second."""
    while (deadline := prober.next_deadline()) is not None:
        _turn(prober, sockets, (deadline - time.monotonic_ns()) / NS_PER_S)
        on_progress()


def _turn(prober: Prober, sockets: RawSockets, wait_s: float) -> None:
    """Wait for answers, feed them, and send what is due."""
    sockets.wait(min(_WAIT_MAX_S, wait_s))
    for error in sockets.hear():
        prober.icmp_received(time.monotonic_ns(), error)
    for probe in prober.probes_to_send(time.monotonic_ns()):
        sockets.send(probe, prober.nonce)


def source_address(target: str) -> str:
    """The address from which this host would send to ``target``.

    Raises
    ------
    ConfigError
        If there is no route.
    """
    family = socket.AF_INET if ip_address(target).version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))  # no packet leaves
        except OSError as error:
            raise ConfigError(f"{target}: no route from this host: {error.strerror}") from None
        return str(probe.getsockname()[0])
