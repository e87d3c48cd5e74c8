"""How a host puts a transfer on a wanted path: by a source port of which it knows where it leads.

A host makes a path map of each peer. An engine has all hosts of the fabric, so it learns the ports of many
pairs of NICs at once, few ports of each, and makes the whole map only of a pair for which these were too few.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.fabric.pathmap import path_map
from ark.fabric.roce import SPORTS
from ark.fabric.route_flows import route_flows
from ark.fabric.topology import Fabric
from ark.sim.schemes.ecmp import hashed_path
from ark.sim.schemes.scheme import Assignment, Transfer

PAIRS_KEPT: Final = 16_384
"""Pairs of NICs whose ports are kept (under 1 KiB each); beyond, those learned first are dropped."""

PAIRS_LEARNED: Final = 1024
"""Transfers ahead whose pairs are learned together: enough to hide what one call costs."""

TRIES_PER_PATH: Final = 4
"""Ports tried for each path: 98 % of all paths then have one."""

Pair = tuple[int, int, int]
"""Indices of two NICs, and the destination port."""


class PortBook:
    """Source ports by pair of NICs and path."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._ports = np.empty(0, np.int64)
        self._led: dict[Pair, NDArray[np.int32]] = {}
        self._mapped: dict[Pair, dict[int, tuple[int, ...]]] = {}

    def knows(self, transfer: Transfer) -> bool:
        """Whether the ports of this transfer's pair have been learned."""
        return _pair(transfer) in self._led

    def learn(self, transfers: Sequence[Transfer]) -> None:
        """Learn where some ports of the pairs of these transfers lead."""
        pairs = [pair for pair in dict.fromkeys(map(_pair, transfers)) if pair not in self._led]
        if not len(self._ports):
            first = transfers[0]
            paths = len(self._fabric.up_paths(first.source.attachment, first.target.attachment))
            tries = min(max(16, TRIES_PER_PATH * paths), len(SPORTS))
            self._ports = np.array(SPORTS[:: len(SPORTS) // tries][:tries])
        source, target, dport = np.repeat(np.array(pairs, np.int64), len(self._ports), axis=0).T
        led = route_flows(self._fabric, source, target, np.tile(self._ports, len(pairs)), dport)
        self._led.update(zip(pairs, led.reshape(len(pairs), -1), strict=True))
        while len(self._led) > PAIRS_KEPT:
            del self._led[next(iter(self._led))]

    def port(self, transfer: Transfer, path: int, spread: int) -> int | None:
        """A port that leads to ``path``, any one by ``spread``; None if no RoCE port does."""
        (found,) = (self._led[_pair(transfer)] == path).nonzero()
        if len(found):
            return int(self._ports[found[spread % len(found)]])
        mapped = self._map(transfer).get(path, ())
        return mapped[spread % len(mapped)] if mapped else None

    def _map(self, transfer: Transfer) -> dict[int, tuple[int, ...]]:
        pair = _pair(transfer)
        found = self._mapped.get(pair)
        if found is None:
            whole = path_map(self._fabric, transfer.source, transfer.target, dport=transfer.dport)
            found = self._mapped[pair] = dict(zip(whole.paths, whole.kept, strict=True))
            if len(self._mapped) > PAIRS_KEPT:
                del self._mapped[next(iter(self._mapped))]
        return found


@lru_cache(maxsize=2)
def port_book(fabric: Fabric) -> PortBook:
    """The book of a fabric, which all runs on it in this process share: what it says is always the same."""
    return PortBook(fabric)


class Steering:
    """Turns wanted paths into assignments; where no port leads there, it is the own port's path."""

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer]) -> None:
        self._fabric = fabric
        self._transfers = transfers
        self._book = port_book(fabric)
        self._missed = 0

    def assignment(
        self, transfer: Transfer, paths: tuple[int, ...], spread: int, start_ns: int
    ) -> Assignment:
        """The assignment nearest to ``paths``; ``spread`` picks among the ports of each path."""
        if not self._book.knows(transfer):
            index = transfer.index
            self._book.learn(self._transfers[index : index + PAIRS_LEARNED])
        taken, ports = list(paths), []
        for stripe, path in enumerate(paths):
            port = self._book.port(transfer, path, spread)
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


def _pair(transfer: Transfer) -> Pair:
    return transfer.source.index, transfer.target.index, transfer.dport
