"""Which spine each RoCE packet crossed, seen by packet sockets inside of the spines."""

import socket
import struct
import threading
from collections import Counter
from typing import Final, NamedTuple, Self

from tests.rdma.guest.network import HOSTS, SPINES

from ark.fabric.roce import DPORT
from ark.lab.namespaces import inside

ACKNOWLEDGE: Final = range(0x11, 0x13)
"""BTH opcodes of packets without data: ACK and atomic ACK of RC."""

_RCVBUFFORCE: Final = 33
_ALL: Final = 3
_ETHERNET: Final = 14
_OUTGOING: Final = 4


class Crossed(NamedTuple):
    """Packets that have so much in common."""

    spine: int
    source: str
    source_port: int
    dest_qp: int
    has_data: bool


class Capture:
    """Counts packets that enter a spine from a leaf, until the end of its block."""

    def __init__(self) -> None:
        self.seen: Counter[Crossed] = Counter()
        self._sockets: list[tuple[int, socket.socket]] = []
        for spine in range(SPINES):
            with inside(f"spine{spine}"):
                for host in HOSTS:
                    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
                    opened.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, 1 << 22)
                    opened.bind((host.leaf, _ALL))
                    opened.settimeout(0.2)
                    self._sockets.append((spine, opened))
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=pair) for pair in self._sockets]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        for _spine, opened in self._sockets:
            opened.close()

    def spines(self, source: str, dest_qp: int) -> dict[int, int]:
        """Packets with data by spine, of those that a host sent to a queue pair."""
        found: Counter[int] = Counter()
        for one, packets in self.seen.items():
            if (one.source, one.dest_qp, one.has_data) == (source, dest_qp, True):
                found[one.spine] += packets
        return dict(found)

    def spines_by_port(self, source: str) -> dict[int, list[int]]:
        """The spines that data from a host crossed, by source port."""
        found: dict[int, set[int]] = {}
        for one in self.seen:
            if one.source == source and one.has_data:
                found.setdefault(one.source_port, set()).add(one.spine)
        return {port: sorted(spines) for port, spines in sorted(found.items())}

    def ports(self, source: str, dest_qp: int) -> set[int]:
        """The source ports of those packets."""
        return {
            one.source_port
            for one in self.seen
            if (one.source, one.dest_qp, one.has_data) == (source, dest_qp, True)
        }

    def _watch(self, spine: int, opened: socket.socket) -> None:
        while True:
            try:
                data, where = opened.recvfrom(256)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            if where[2] == _OUTGOING:
                continue
            one = crossed(spine, data)
            if one is not None:
                self.seen[one] += 1


def crossed(spine: int, frame: bytes) -> Crossed | None:
    """What a frame is; None for all but RoCEv2 over IPv4 without options."""
    if len(frame) < _ETHERNET + 40 or frame[12:15] != b"\x08\x00\x45" or frame[23] != socket.IPPROTO_UDP:
        return None
    source_port, port = struct.unpack_from("!HH", frame, _ETHERNET + 20)
    if port != DPORT:
        return None
    opcode = frame[_ETHERNET + 28]
    dest_qp = int.from_bytes(frame[_ETHERNET + 33 : _ETHERNET + 36], "big")
    return Crossed(spine, socket.inet_ntoa(frame[26:30]), source_port, dest_qp, opcode not in ACKNOWLEDGE)
