"""The least loaded of very many paths without looking at all of them: the order of rule 5, kept up to date.

A :class:`Ranking` holds the paths between two attachments in classes of equal load. When a link's load
changes, its number is noted; only when the ranking is next asked are the paths over such links put into other
classes. So an answer costs as many steps as links have changed since the last one, however many paths there
are.

It needs all links to have one rate: then the order of paths does not depend on the size of the transfer that
asks. Where rates differ, or paths are few, ``ark.control.choice`` compares them one by one.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from ark.control.geometry import PathSet
from ark.control.load import LinkLoads

PATHS_MIN: Final = 64
"""Paths from which a ranking is quicker than a comparison of all (measured: ``benchmarks/decision.py``)."""

_SLACK: Final = 64
"""Dead heap entries that are cheaper to keep than to clear, beside as many as there are live ones."""

Load = tuple[tuple[float, ...], tuple[int, ...]]
"""Costs of a path's links, and announced bytes on them, each sorted downwards."""


def can_rank(loads: LinkLoads, ways: PathSet) -> bool:
    """Whether a ranking is right for these paths: all their links have one rate."""
    return len({loads.rates[link] for path in ways.usable_links for link in path}) == 1


class Ranking:
    """The usable paths between two attachments, by load.

    Positions are those in ``ways.usable``; a class is a whole number with a set bit for each of its
    positions.
    """

    __slots__ = ("_changed", "_classes", "_heap", "_load_of", "_loads", "_over", "_ways")

    def __init__(self, loads: LinkLoads, ways: PathSet) -> None:
        self._loads = loads
        self._ways = ways
        self._over: dict[int, list[int]] = {}
        self._load_of: list[Load] = []
        self._classes: dict[Load, int] = {}
        for position, path in enumerate(ways.usable_links):
            for link in path:
                self._over.setdefault(link, []).append(position)
            load = self._measure(position)
            self._load_of.append(load)
            self._classes[load] = self._classes.get(load, 0) | 1 << position
        self._heap = list(self._classes)
        heapify(self._heap)
        self._changed: set[int] = set()
        loads.watch(self._over, self._changed)

    def best(self, rotation: int, without: list[int]) -> int:
        """The position that ``choice.least_loaded`` would choose among all but some, which are ascending."""
        if self._changed:
            self._catch_up()
        start = rotation % (len(self._load_of) - len(without))
        for position in without:
            start += position <= start
        left = ~sum(1 << position for position in without)
        heap, classes = self._heap, self._classes
        passed: list[Load] = []
        while not (best := classes.get(heap[0], 0) & left):
            load = heappop(heap)
            if load in classes:
                passed.append(load)
        for load in passed:
            heappush(heap, load)
        behind = best >> start << start
        best = behind or best
        return (best & -best).bit_length() - 1

    def check(self) -> None:
        """Assert that classes and heap are what they would be if made anew."""
        self._catch_up()
        assert self._load_of == [self._measure(position) for position in range(len(self._load_of))]
        classes: dict[Load, int] = {}
        for position, load in enumerate(self._load_of):
            classes[load] = classes.get(load, 0) | 1 << position
        assert classes == self._classes
        assert set(self._heap) >= classes.keys()
        assert len(self._heap) <= 2 * len(classes) + _SLACK + 1

    def _catch_up(self) -> None:
        over = self._over
        for position in {position for link in self._changed for position in over[link]}:
            self._move(position, self._measure(position))
        self._changed.clear()
        if len(self._heap) > 2 * len(self._classes) + _SLACK:
            self._heap = list(self._classes)
            heapify(self._heap)

    def _move(self, position: int, load: Load) -> None:
        before = self._load_of[position]
        if load == before:
            return
        classes = self._classes
        left = classes[before] ^ 1 << position
        if left:
            classes[before] = left
        else:
            del classes[before]
        self._load_of[position] = load
        known = classes.get(load)
        if known is None:
            heappush(self._heap, load)
        classes[load] = (known or 0) | 1 << position

    def _measure(self, position: int) -> Load:
        path, cost, sizes = self._ways.usable_links[position], self._loads.cost, self._loads.size_bytes
        if len(path) == 2:
            up, down = path
            a, b, c, d = cost[up], cost[down], sizes[up], sizes[down]
            return (a, b) if a > b else (b, a), (c, d) if c > d else (d, c)
        return (
            tuple(sorted([cost[link] for link in path], reverse=True)),
            tuple(sorted([sizes[link] for link in path], reverse=True)),
        )
