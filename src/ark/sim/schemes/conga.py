"""CONGA at flow level: a transfer never pauses, so it is one flowlet and chooses once, at its start.

It looks at a few neighbouring paths and takes one with the least congestion, equal ones at random. What is
known of a link is its meter: it follows the link's use with the time constant of CONGA's DRE, in 8 levels. A
leaf knows its own uplink; of the link down to the other leaf only if a transfer the other way brings news.
``ark.sim.packet.conga`` is the packet by packet version, with the same constants.
"""

from collections.abc import Sequence
from math import exp
from typing import Final

import numpy as np

from ark.fabric.topology import Fabric
from ark.sim.schemes.link_counts import LinkCounts
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer

TAU_NS: Final = 250_000
"""Interval of 50 us over a decay of 0.2."""
LEVELS: Final = 8
SAMPLES: Final = 4


class Conga(FixedAtArrival):
    """One choice by metered links."""

    name = "conga"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer], draw: np.random.Generator) -> None:
        self._fabric = fabric
        self._draw = draw
        self._steering = Steering(fabric, transfers)
        self._counts = LinkCounts(fabric)
        self._meters: dict[int, tuple[int, float]] = {}
        self._between: dict[tuple[int, int], int] = {}
        self._pairs: dict[int, tuple[int, int]] = {}

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The least congested of a few paths, at once."""
        source, target = transfer.source, transfer.target
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        start = int(self._draw.integers(max(len(usable) - SAMPLES, 0) + 1))
        sampled = usable[start : start + SAMPLES]
        told = self._between.get((target.attachment, source.attachment), 0) > 0
        levels = [self._level(now_ns, self._counts.links(source, target, path), told) for path in sampled]
        equals = [path for path, level in zip(sampled, levels, strict=True) if level == min(levels)]
        wanted = equals[int(self._draw.integers(len(equals)))]
        assignment = self._steering.assignment(transfer, (wanted,), int(self._draw.integers(2**31)), now_ns)
        self._meter(now_ns, self._counts.links(source, target, assignment.paths[0]))
        self._counts.put(transfer.index, self._counts.links(source, target, assignment.paths[0]))
        pair = self._pairs[transfer.index] = source.attachment, target.attachment
        self._between[pair] = self._between.get(pair, 0) + 1
        return assignment

    def completed(self, now_ns: int, index: int) -> None:
        """Its links' meters begin to fall, if nobody else is on them."""
        self._meter(now_ns, self._counts.of(index))
        self._counts.drop(index)
        self._between[self._pairs.pop(index)] -= 1

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()

    def _level(self, now_ns: int, links: tuple[int, ...], told: bool) -> int:  # noqa: FBT001
        known = links if told else links[:1]
        return int(LEVELS * max([self._value(now_ns, link) for link in known], default=0.0))

    def _value(self, now_ns: int, link: int) -> float:
        """What a link's meter shows: 1 is a link that has long been full."""
        since_ns, value = self._meters.get(link, (0, 0.0))
        used = 1.0 if self._counts.on(link) else 0.0
        return used + (value - used) * exp(-(now_ns - since_ns) / TAU_NS)

    def _meter(self, now_ns: int, links: tuple[int, ...]) -> None:
        """Write down meters before their links' use changes."""
        for link in links:
            self._meters[link] = now_ns, self._value(now_ns, link)
