"""What a decision needs to know of the network: the links of each path, and the rate of each link.

``ark.fabric.Fabric`` is a :class:`Geometry`. NIC links are no part of it: no choice of path avoids them.
"""

from collections.abc import Callable, Sequence, Sized
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, Protocol

from ark.control.rows import Row

EVERY_PATH: Final = -1
"""A mask with all bits set."""

SUBSETS_KEPT: Final = 4096
"""Parts of path sets kept for reuse; when they are more, all are forgotten and made again."""

Values = Callable[[Sequence[Any]], tuple[Any, ...]]
"""Takes the values of some links out of a list by link."""


class Geometry(Protocol):
    """The network as the controller sees it."""

    @property
    def attachments(self) -> Sized:
        """What NICs hang on (leaves, or sets of ToRs); rows name them by position."""

    @property
    def link_rates_bps(self) -> Sequence[int]:
        """Rate of each directed link by index; 0 where it is down."""

    def attachment_paths(self, source: int, target: int) -> tuple[tuple[int, ...], ...]:
        """The switch-to-switch links of each equal-cost path between two attachments, by path number."""

    def up_paths(self, source: int, target: int) -> Sequence[int]:
        """The numbers of those paths that are up: a NIC's port may be down where no link of a path is."""


class PathSet:
    """The paths between two attachments, laid out for choosing among them.

    Attributes
    ----------
    links
        Fabric links of each path by path number, those of paths that are down included.
    usable
        Numbers of the paths that are up.
    usable_links
        Fabric links of the usable paths, in the order of ``usable``.
    mask
        The usable numbers as set bits.
    managed
        Whether there is anything to choose: at least two usable paths over fabric links.
    ends
        Where every path has two links, as in a leaf-spine fabric: functions that take the values of the first
        links, and of the second links, of the usable paths out of a list by link. None elsewhere.
    """

    __slots__ = ("__dict__", "ends", "links", "managed", "mask", "usable", "usable_links")

    def __init__(self, links: tuple[tuple[int, ...], ...], usable: Sequence[int]) -> None:
        self.links = links
        self.usable = tuple(usable)
        self.usable_links = tuple(links[number] for number in self.usable)
        self.mask = sum(1 << number for number in self.usable)
        self.managed = len(self.usable) > 1 and all(self.usable_links)
        self.ends: tuple[Values, Values] | None = None
        if len(self.usable) > 1 and all(len(path) == 2 for path in self.usable_links):
            first, second = zip(*self.usable_links, strict=True)
            self.ends = itemgetter(*first), itemgetter(*second)

    @cached_property
    def link_sets(self) -> tuple[frozenset[int], ...]:
        """``links`` as sets, for asking whether two transfers share one."""
        return tuple(frozenset(path) for path in self.links)


class PathSets:
    """All path sets of a geometry, each built when first asked for and kept."""

    __slots__ = ("_attachments", "_geometry", "_sets", "_subsets", "rates_bps")

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._attachments = len(geometry.attachments)
        self._sets: dict[tuple[int, int], PathSet] = {}
        self._subsets: dict[tuple[int, int, int], PathSet] = {}
        self.rates_bps = geometry.link_rates_bps

    def between(self, source: int, target: int) -> PathSet:
        """The paths from one attachment to another."""
        pair = (source, target)
        found = self._sets.get(pair)
        if found is None:
            geometry = self._geometry
            found = PathSet(geometry.attachment_paths(source, target), geometry.up_paths(source, target))
            self._sets[pair] = found
        return found

    def open_to(self, source: int, target: int, mask: int) -> PathSet:
        """Those of the usable paths between two attachments whose bit in ``mask`` is set."""
        ways = self.between(source, target)
        if not ways.mask & ~mask:
            return ways
        key = (source, target, ways.mask & mask)
        found = self._subsets.get(key)
        if found is None:
            if len(self._subsets) >= SUBSETS_KEPT:
                self._subsets.clear()
            found = PathSet(ways.links, [number for number in ways.usable if mask >> number & 1])
            self._subsets[key] = found
        return found

    def fits(self, row: Row) -> bool:
        """Whether a row from outside names attachments and paths that exist, no path twice.

        A path that is down here fits: its owner may not know yet, and what it says still counts.
        """
        if row.source >= self._attachments or row.target >= self._attachments:
            return False
        paths = row.paths
        return max(paths) < len(self.between(row.source, row.target).links) and len(set(paths)) == len(paths)

    def share_link(self, one: Row, other: Row) -> bool:
        """Whether two reservations have a fabric link in common."""
        mine = self.between(one.source, one.target).link_sets
        theirs = self.between(other.source, other.target).link_sets
        return any(not mine[path].isdisjoint(theirs[rival]) for path in one.paths for rival in other.paths)
