"""Shortest walks between sets of switches, in one canonical order.

Works on small ints only: a switch is its position in the fabric's list, a link its index. Hosts are no
part of the graph, because a host never forwards for others.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ark.errors import ConfigError

UNREACHABLE: Final = -1
"""Distance to a switch that no walk reaches."""

PATHS_MAX: Final = 16_384
"""The most equal-cost paths between two attachments: RoCE has as many source ports to choose them by."""

_DISTANCES_KEPT: Final = 4_000_000
"""Distances kept for reuse (8 bytes each); when they are more, all are dropped and made again."""


class Walk(NamedTuple):
    """One way through the switches: ``links`` lead from switch ``first`` to switch ``last``."""

    first: int
    links: tuple[int, ...]
    last: int


class Edge(NamedTuple):
    """One directed link between two switches."""

    source: int
    target: int
    link: int
    up: bool


class SwitchGraph:
    """The switches of a fabric and the directed links between them, whole and without what is down.

    Every method takes ``up_only``: with it, links that are down do not exist. A link and its reverse
    are up or down together.
    """

    def __init__(self, switches: int, edges: Iterable[Edge]) -> None:
        whole: list[list[tuple[int, int]]] = [[] for _ in range(switches)]
        alive: list[list[tuple[int, int]]] = [[] for _ in range(switches)]
        for edge in edges:
            whole[edge.source].append((edge.target, edge.link))
            if edge.up:
                alive[edge.source].append((edge.target, edge.link))
        for hops in (*whole, *alive):
            hops.sort()
        self._out = {False: whole, True: alive}
        self._distances: dict[tuple[bool, tuple[int, ...]], list[int]] = {}

    def hops(self, switch: int, *, up_only: bool) -> Sequence[tuple[int, int]]:
        """The neighbours of a switch as (switch, link), by position of the neighbour, then by link index."""
        return self._out[up_only][switch]

    def distances(self, targets: tuple[int, ...], *, up_only: bool) -> Sequence[int]:
        """Number of links from each switch to the nearest of ``targets``, or ``UNREACHABLE``."""
        key = (up_only, targets)
        known = self._distances.get(key)
        if known is not None:
            return known
        out = self._out[up_only]
        distances = [UNREACHABLE] * len(out)
        for target in targets:
            distances[target] = 0
        reached = list(targets)
        for switch in reached:  # grows while it is walked: a queue
            farther = distances[switch] + 1
            for neighbour, _ in out[switch]:
                if distances[neighbour] == UNREACHABLE:
                    distances[neighbour] = farther
                    reached.append(neighbour)
        if (len(self._distances) + 1) * len(out) > _DISTANCES_KEPT:
            self._distances.clear()
        self._distances[key] = distances
        return distances

    def walks(self, sources: tuple[int, ...], targets: tuple[int, ...], *, up_only: bool) -> list[Walk]:
        """All shortest walks from any of ``sources`` to any of ``targets``; none where there is no way.

        They come in the order of their first switch, then of the next switch and link, and so on: the
        order of the switches in the fabric file, whatever the order of its links.

        Raises
        ------
        ConfigError
            If there are more than ``PATHS_MAX``.
        """
        distances = self.distances(targets, up_only=up_only)
        reachable = [distances[source] for source in sources if distances[source] != UNREACHABLE]
        if not reachable:
            return []
        length = min(reachable)
        out = self._out[up_only]
        fronts: list[tuple[int, tuple[int, ...], int]] = [
            (source, (), source) for source in sources if distances[source] == length
        ]
        for left in range(length - 1, -1, -1):
            fronts = [
                (first, (*links, link), neighbour)
                for first, links, switch in fronts
                for neighbour, link in out[switch]
                if distances[neighbour] == left
            ]
            if len(fronts) > PATHS_MAX:
                raise ConfigError(
                    f"there are more than {PATHS_MAX:,} equal-cost paths between two hosts; "
                    "use fewer spines or parallel links"
                )
        return [Walk(*front) for front in fronts]
