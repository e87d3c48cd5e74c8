"""How much is on each link, kept incrementally from the rows of a table (rules 4 and 5).

A transfer in n stripes counts as 1/n of a flow on each of its paths. Its window is divided by n, so that is
the weight with which it competes there; counted as n whole flows, striped transfers would look n times as
heavy as they are, and unstriped ones would crowd onto each other to avoid them. Parts of flows and bytes
are whole numbers, so taking a row away undoes adding it exactly.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from ark.control.geometry import PathSets
from ark.control.rows import STRIPES_MAX, Row

FLOW: Final = math.lcm(*range(1, STRIPES_MAX + 1))
"""Parts of one flow: every number of stripes divides it."""


class LinkLoads:
    """Flows and announced bytes on every link.

    Attributes
    ----------
    flows
        Parts of flows (:data:`FLOW` is one) on each link.
    size_bytes
        Announced bytes on each link.
    rates
        Bits per second of each link; infinite where it is down, where no path leads over it anyway.
    cost
        ``(flows + 1) / rate`` of each link, times :data:`FLOW`: the load for one more transfer. Both operands
        are whole and the division rounds correctly, so equal loads on links of different rates compare equal.
    """

    __slots__ = ("_watchers", "cost", "flows", "paths", "rates", "size_bytes")

    def __init__(self, paths: PathSets) -> None:
        self.paths = paths
        self.rates = [float(rate) if rate else math.inf for rate in paths.rates_bps]
        self.flows = [0] * len(self.rates)
        self.size_bytes = [0] * len(self.rates)
        self.cost = [FLOW / rate for rate in self.rates]
        self._watchers: dict[int, list[set[int]]] = {}

    def watch(self, links: Iterable[int], changed: set[int]) -> None:
        """Add to ``changed`` from now on each of some links whose load changes."""
        for link in links:
            self._watchers.setdefault(link, []).append(changed)

    def unwatch(self) -> None:
        """Nobody watches any more."""
        self._watchers.clear()

    def change(self, old: Row | None, new: Row | None) -> None:
        """Follow one row of the table."""
        if old is not None and new is not None and _same_links(old, new):
            # Most changes are news of bytes, at each segment's end: flows and costs stay.
            more = stripe(new)[1] - stripe(old)[1]
            if more:
                sizes = self.size_bytes
                links = self.links_of(new)
                for link in links:
                    sizes[link] += more
                if self._watchers:
                    self._tell(links)
            return
        if old is not None:
            share, size_bytes = stripe(old)
            self.shift(self.links_of(old), -share, -size_bytes)
        if new is not None:
            share, size_bytes = stripe(new)
            self.shift(self.links_of(new), share, size_bytes)

    def shift(self, links: Sequence[int], share: int, size_bytes: int) -> None:
        """Add parts of a flow and bytes to some links; negative ones take them away."""
        flows, sizes, cost, rates = self.flows, self.size_bytes, self.cost, self.rates
        for link in links:
            flows[link] = parts = flows[link] + share
            sizes[link] += size_bytes
            cost[link] = (parts + FLOW) / rates[link]
        if self._watchers:
            self._tell(links)

    def _tell(self, links: Sequence[int]) -> None:
        for link in links:
            for changed in self._watchers.get(link, ()):
                changed.add(link)

    def links_of(self, row: Row) -> tuple[int, ...]:
        """The fabric links of all stripes; a link that two stripes share comes twice."""
        links = self.paths.between(row.source, row.target).links
        paths = row.paths
        if len(paths) == 1:
            return links[paths[0]]
        return tuple(link for path in paths for link in links[path])

    def check(self, rows: Iterable[Row]) -> None:
        """Assert that the loads are those of ``rows``."""
        fresh = LinkLoads(self.paths)
        for row in rows:
            fresh.change(None, row)
        assert (self.flows, self.size_bytes, self.cost) == (fresh.flows, fresh.size_bytes, fresh.cost)


def _same_links(old: Row, new: Row) -> bool:
    return old.paths == new.paths and old.source == new.source and old.target == new.target


def stripe(row: Row) -> tuple[int, int]:
    """Parts of a flow, and bytes, that a row puts on each of its paths."""
    count = len(row.paths)
    return FLOW // count, row.size_bytes // count
