"""How a host puts a transfer on a wanted path: by a source port from its path map."""

from typing import Final

from ark.fabric.parts import Nic
from ark.fabric.pathmap import PORTS_KEPT, path_map
from ark.fabric.roce import SPORTS
from ark.fabric.topology import Fabric
from ark.sim.schemes.ecmp import hashed_path
from ark.sim.schemes.scheme import Assignment, Transfer

PAIRS_KEPT: Final = 16_384
"""Pairs of NICs whose ports are kept (about 1 KiB each); when they are more, the oldest is made again."""

FEW: Final = SPORTS[:: len(SPORTS) // (16 * PORTS_KEPT)]
"""Ports tried first, spread over the range: enough for any fabric with less than a hundred paths."""


class PortBook:
    """Source ports by pair of NICs and path; finds those of a pair when it is first asked for."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[tuple[int, int, int], dict[int, tuple[int, ...]]] = {}

    def port(self, source: Nic, target: Nic, dport: int, path: int, spread: int) -> int | None:
        """A port that leads to ``path``, any one of those known by ``spread``; None if no RoCE port does."""
        key = (source.index, target.index, dport)
        ports = self._known.get(key)
        if ports is None:
            ports = self._ports(source, target, dport)
            if len(self._known) >= PAIRS_KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = ports
        of_path = ports.get(path, ())
        return of_path[spread % len(of_path)] if of_path else None

    def _ports(self, source: Nic, target: Nic, dport: int) -> dict[int, tuple[int, ...]]:
        found = path_map(self._fabric, source, target, dport=dport, ports=FEW)
        if found.missing:
            found = path_map(self._fabric, source, target, dport=dport)
        return dict(zip(found.paths, found.kept, strict=True))


class Steering:
    """Turns wanted paths into assignments; where no port leads there, it is the own port's path."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._book = PortBook(fabric)
        self._missed = 0

    def assignment(
        self, transfer: Transfer, paths: tuple[int, ...], spread: int, start_ns: int
    ) -> Assignment:
        """The assignment nearest to ``paths``; ``spread`` picks among the ports of each path."""
        source, target, dport = transfer.source, transfer.target, transfer.dport
        taken, ports = list(paths), []
        for stripe, path in enumerate(paths):
            port = self._book.port(source, target, dport, path, spread)
            if port is None:
                taken[stripe], port = hashed_path(self._fabric, transfer), transfer.sport
            ports.append(port)
        self._missed += tuple(taken) != paths
        return Assignment(tuple(taken), tuple(ports), start_ns)

    def warnings(self) -> list[str]:
        """How many transfers could not be steered, if any."""
        if not self._missed:
            return []
        reason = "no RoCE source port leads to the path that was wanted (see `ark path map`)"
        return [f"{self._missed} transfers went where their own port leads: {reason}"]
