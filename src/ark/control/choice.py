"""The choice of ``policy="ark"``: the least loaded path over all of its fabric links (rules 5 and 8).

The load of a path for one more transfer is the tuple of ``(flows + 1) / rate`` over its links, sorted
downwards, so that the worst link counts first; the smallest tuple wins. Among equals the same is compared
in bytes: ``(announced bytes + own bytes) / rate``. Among those the order starts at a path that differs per
host and transfer: hosts that see nothing of each other then spread as ECMP would, instead of all taking the
first path.
"""

import math
from collections.abc import Sequence
from typing import Final

from ark.control.geometry import PathSet, PathSets
from ark.control.load import FLOW, LinkLoads, stripe
from ark.control.policy import Pick, Request
from ark.control.ranking import PATHS_MIN, Ranking, can_rank
from ark.control.rows import Change, Row

RANKINGS_MAX: Final = 256
"""Rankings kept, about 300 bytes a path each. Full: all are forgotten, and made again when asked for."""

_WORD: Final = 2**64 - 1


def mix(*numbers: int) -> int:
    """A 64-bit hash of some numbers, the same in every process and on every machine.

    Source: the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
    generators, OOPSLA 2014), applied once a number.
    """
    state = 0
    for number in numbers:
        state = (state ^ number) + 0x9E3779B97F4A7C15 & _WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
        state ^= state >> 31
    return state


def least_loaded_of(loads: LinkLoads, ways: PathSet, size_bytes: int, rotation: int) -> int:
    """Position in ``ways.usable`` of the best path; as :func:`least_loaded`, faster where paths have two
    links."""
    if ways.ends is None:
        return least_loaded(loads, ways.usable_links, size_bytes, rotation)
    ups, downs = ways.ends
    cost = loads.cost
    pairs = [(up, down) if up > down else (down, up) for up, down in zip(ups(cost), downs(cost), strict=True)]
    least = min(pairs)
    if pairs.count(least) == 1:
        return pairs.index(least)
    sizes, rates = loads.size_bytes, loads.rates
    best, lightest = [], (math.inf, math.inf)
    for position, pair in enumerate(pairs):
        if pair == least:
            up, down = ways.usable_links[position]
            first, second = (sizes[up] + size_bytes) / rates[up], (sizes[down] + size_bytes) / rates[down]
            weight = (first, second) if first > second else (second, first)
            if weight < lightest:
                best, lightest = [position], weight
            elif weight == lightest:
                best.append(position)
    return _rotated(best, rotation % len(pairs))


def least_loaded(loads: LinkLoads, among: Sequence[tuple[int, ...]], size_bytes: int, rotation: int) -> int:
    """Position in ``among`` (the links of each candidate path) of the best path for one more transfer.

    Parameters
    ----------
    size_bytes
        What the transfer itself would add to each link.
    rotation
        Any number; among equals the first one counted from ``rotation`` modulo the number of candidates wins.
    """
    cost = loads.cost.__getitem__
    worst = [max(map(cost, path)) for path in among]
    least = min(worst)
    if worst.count(least) == 1:
        return worst.index(least)
    best = [position for position, load in enumerate(worst) if load == least]
    best = _smallest(best, [sorted(map(cost, among[position]), reverse=True) for position in best])
    if len(best) > 1:
        sizes, rates = loads.size_bytes, loads.rates
        best = _smallest(
            best,
            [
                sorted([(sizes[link] + size_bytes) / rates[link] for link in among[position]], reverse=True)
                for position in best
            ],
        )
    return _rotated(best, rotation % len(among))


def _rotated(best: list[int], start: int) -> int:
    """The first of some ascending positions at or after the start, or else the first of all."""
    return next((position for position in best if position >= start), best[0])


def _smallest(positions: list[int], loads: list[list[float]]) -> list[int]:
    least = min(loads)
    return [position for position, load in zip(positions, loads, strict=True) if load == least]


class LeastLoaded:
    """The chooser of ``policy="ark"``."""

    yields = False
    """A transfer that loses a race while it sends keeps its row: others must go on counting it."""

    def __init__(self, paths: PathSets, loads: LinkLoads, *, stripes: int = 1) -> None:
        self._paths = paths
        self._loads = loads
        self._stripes = stripes
        self._rankings: dict[PathSet, Ranking | None] = {}

    def pick(self, request: Request) -> Pick:
        """The least loaded paths for a new transfer, as many as it has stripes."""
        ways = self._paths.open_to(request.source, request.target, request.mask)
        if self._stripes == 1:
            ranking = self._ranking(ways)
            if ranking is None:
                position = least_loaded_of(self._loads, ways, request.size_bytes, request.rotation)
            else:
                position = ranking.best(request.rotation, [])
            return Pick((ways.usable[position],), fallback=False)
        return Pick(self._striped(ways, request), fallback=False)

    def blind(self, request: Request) -> Pick:
        """Paths by hash alone, evenly apart, for a host that has not heard enough of its peers (rule 6)."""
        usable = self._paths.open_to(request.source, request.target, request.mask).usable
        count = len(usable)
        stripes = min(self._stripes, count)
        chosen = (usable[(request.rotation + stripe * count // stripes) % count] for stripe in range(stripes))
        return Pick(tuple(chosen), fallback=False)

    def repick(self, row: Row, request: Request) -> Pick | None:
        """Other paths for a transfer whose row is in the table; None if that would not help.

        It helps if the transfer's worst link is then one with at least one flow less (its own share less,
        where it has stripes) than its worst link now.
        """
        loads = self._loads
        share, size_bytes = stripe(row)
        flows, rates = loads.flows, loads.rates
        links = loads.links_of(row)
        worst = max(links, key=lambda link: flows[link] / rates[link])
        bearable = (flows[worst] - share) / rates[worst]
        loads.change(row, None)
        pick = self.pick(request)
        ways = self._paths.between(row.source, row.target).links
        chosen = [link for path in pick.paths for link in ways[path]]
        share = FLOW // len(pick.paths)
        loads.shift(chosen, share, size_bytes)
        after = max(flows[link] / rates[link] for link in chosen)
        loads.shift(chosen, -share, -size_bytes)
        loads.change(None, row)
        return pick if after <= bearable else None

    def resume(self, request: Request, paths: tuple[int, ...]) -> Pick:  # noqa: ARG002 - a chooser's form
        """The row of a transfer that already runs on ``paths``."""
        return Pick(paths, fallback=False)

    def claims(self, change: Change) -> bool:
        """Whether a change can make others decide again: a row that was not in the table, and is no move."""
        return change.old is None and change.new is not None and change.new.moves == 0

    def contests(self, own: Row, row: Row) -> bool:
        """Whether ``row`` claims something of ``own``: a fabric link in common."""
        return self._paths.share_link(own, row)

    def _ranking(self, ways: PathSet) -> Ranking | None:
        """The ranking of very many paths; None where comparing them is better."""
        if len(ways.usable) < PATHS_MIN:
            return None
        rankings = self._rankings
        if ways not in rankings:
            if len(rankings) >= RANKINGS_MAX:
                rankings.clear()
                self._loads.unwatch()
            rankings[ways] = Ranking(self._loads, ways) if can_rank(self._loads, ways) else None
        return rankings[ways]

    def _striped(self, ways: PathSet, request: Request) -> tuple[int, ...]:
        """Greedily one path after the other, each seeing the stripes before it, none twice."""
        loads = self._loads
        stripes = min(self._stripes, len(ways.usable))
        share, size_bytes = FLOW // stripes, request.size_bytes // stripes
        ranking = self._ranking(ways)
        left = list(range(len(ways.usable)))
        chosen: list[int] = []
        for _ in range(stripes):
            if ranking is None:
                among = [ways.usable_links[position] for position in left]
                position = left.pop(least_loaded(loads, among, size_bytes, request.rotation))
            else:
                position = ranking.best(request.rotation, sorted(chosen))
            loads.shift(ways.usable_links[position], share, size_bytes)
            chosen.append(position)
        for position in chosen:
            loads.shift(ways.usable_links[position], -share, -size_bytes)
        return tuple(ways.usable[position] for position in chosen)
