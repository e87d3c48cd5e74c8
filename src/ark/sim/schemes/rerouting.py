"""Schemes that move transfers under way when they meet congestion: PLB and ConWeave, at flow level.

A transfer is *congested* where it shares a link between switches with others, and gets less there than at
either of its NICs. Nothing changes between arrivals, completions and moves; so instead of a look at each
transfer every round trip, the time of its next move is drawn when one of these happens.

PLB (Qureshi et al., SIGCOMM 2022; constants of Linux): after 12 congested round trips in a row a transfer
takes a random path, a long one less often. ConWeave: each round trip a congested transfer looks at two random
paths, and takes the first where it would have fewer neighbours than now; reordering costs nothing. Real
ConWeave also moves where this gains nothing, and transfers then take turns on the worse path.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final, Literal

import numpy as np

from ark.fabric.topology import Fabric
from ark.sim.schemes.ecmp import hashed_path
from ark.sim.schemes.link_counts import LinkCounts
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer

PLB_ROUNDS: Final = 12
"""Linux: ``net.ipv4.tcp_plb_rehash_rounds``; transfers are never idle, where 3 would do."""
REPLY_EXTRA_NS: Final = 4_000
"""ConWeave: queueing that makes a reply late."""

PLB_SHARE: Final = 0.03
"""PLB: a transfer moves no more often than after this share of what it takes alone. Where all paths are
congested a real one of a gigabyte moves a thousand times and more, and gains no more by it."""
RTT_MIN_NS: Final = 1_000
"""No round trip is shorter, whatever a fabric says of its delays."""


class Rerouting(FixedAtArrival):
    """``plb`` or ``conweave``."""

    def __init__(
        self,
        name: Literal["plb", "conweave"],
        fabric: Fabric,
        transfers: Sequence[Transfer],
        draw: np.random.Generator,
    ) -> None:
        self.name = name
        self._fabric = fabric
        self._draw = draw
        self._steering = Steering(fabric, transfers)
        self._counts = LinkCounts(fabric)
        self._live: dict[int, Transfer] = {}
        self._path: dict[int, int] = {}
        self._on_nic: dict[tuple[str, int], int] = {}
        self._neighbours: dict[int, set[int]] = {}
        self._due: dict[int, int] = {}
        self._agenda: list[tuple[int, int]] = []

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The path of the own port, at once."""
        self._live[transfer.index] = transfer
        self._count_nics(transfer, 1)
        path = hashed_path(self._fabric, transfer)
        self._lay(now_ns, transfer, path)
        return Assignment((path,), (transfer.sport,), now_ns)

    def completed(self, now_ns: int, index: int) -> None:
        """Those that shared a link with it may be free now."""
        self._due.pop(index, None)
        links = self._counts.of(index)
        self._counts.drop(index)
        for link in links:
            self._neighbours[link].discard(index)
        self._path.pop(index)
        self._count_nics(self._live.pop(index), -1)
        self._judge(now_ns, links)

    def next_deadline(self) -> int | None:
        """When the next transfer moves, as things are."""
        while self._agenda and self._due.get(self._agenda[0][1]) != self._agenda[0][0]:
            heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else None

    def tick(self, now_ns: int) -> list[tuple[int, Assignment]]:
        """Transfers whose time to move has come."""
        moves = []
        while (due := self.next_deadline()) is not None and due <= now_ns:
            index = self._agenda[0][1]
            del self._due[index]
            transfer = self._live[index]
            wanted = self._better(transfer)
            if wanted is not None:
                spread = int(self._draw.integers(2**31))
                assignment = self._steering.assignment(transfer, (wanted,), spread, now_ns)
                self._lay(now_ns, transfer, assignment.paths[0])
                moves.append((index, assignment))
            else:
                self._judge_one(now_ns, index)
        return moves

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()

    def _lay(self, now_ns: int, transfer: Transfer, path: int) -> None:
        index = transfer.index
        before = self._counts.of(index) if index in self._path else ()
        for link in before:
            self._neighbours[link].discard(index)
        links = self._counts.links(transfer.source, transfer.target, path)
        self._counts.put(index, links)
        for link in links:
            self._neighbours.setdefault(link, set()).add(index)
        self._path[index] = path
        self._due.pop(index, None)
        self._judge(now_ns, (*before, *links))

    def _judge(self, now_ns: int, links: tuple[int, ...]) -> None:
        """See when those on some links are to move, now that their neighbours are others."""
        for index in sorted({index for link in links for index in self._neighbours.get(link, ())}):
            self._judge_one(now_ns, index)
        if len(self._agenda) > 4 * len(self._due) + 64:  # mostly entries that hold no more
            self._agenda = [(due, index) for index, due in self._due.items()]
            heapify(self._agenda)

    def _judge_one(self, now_ns: int, index: int) -> None:
        transfer = self._live[index]
        wait_ns = self._wait_ns(transfer) if self._congested(transfer) else None
        if wait_ns is None:
            self._due.pop(index, None)
        elif index not in self._due or self.name == "conweave":  # PLB goes on counting
            self._due[index] = now_ns + wait_ns
            heappush(self._agenda, (now_ns + wait_ns, index))

    def _congested(self, transfer: Transfer) -> bool:
        most, _ = self._counts.load(self._counts.of(transfer.index))
        crowd = max(self._counts.on(link) for link in self._counts.of(transfer.index)) if most else 0
        rates_bps = self._fabric.link_rates_bps
        out = max(rates_bps[link] for link, _ in self._fabric.ports(transfer.source))
        into = max(rates_bps[link] for _, link in self._fabric.ports(transfer.target))
        at_nics = max(self._nic(transfer, "out") / out, self._nic(transfer, "in") / into)
        return crowd > 1 and most > at_nics

    def _wait_ns(self, transfer: Transfer) -> int | None:
        """Time to the next move of a congested transfer; None where it finds nothing better."""
        rtt_ns = self._rtt_ns(transfer)
        if self.name == "plb":
            return max(PLB_ROUNDS * rtt_ns, int(PLB_SHARE * self._alone_ns(transfer)))
        usable, good = self._good(transfer)
        if not good:
            return None
        chance = 1 - (1 - len(good) / len(usable)) ** 2
        return int(self._draw.geometric(chance)) * (rtt_ns + REPLY_EXTRA_NS)

    def _better(self, transfer: Transfer) -> int | None:
        """The path to move to; None to stay."""
        usable, good = self._good(transfer)
        among = usable if self.name == "plb" else good
        return among[int(self._draw.integers(len(among)))] if among else None

    def _good(self, transfer: Transfer) -> tuple[tuple[int, ...], list[int]]:
        """All paths, and those on which the transfer would have fewer neighbours than now."""
        source, target = transfer.source, transfer.target
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        mine = set(self._counts.of(transfer.index))
        now = self._crowd(mine, mine)
        return usable, [
            path for path in usable if self._crowd(set(self._counts.links(source, target, path)), mine) < now
        ]

    def _crowd(self, links: set[int], mine: set[int]) -> float:
        """Most transfers per bit/s on some links if the transfer on ``mine`` were on them."""
        rates_bps, on = self._fabric.link_rates_bps, self._counts.on
        return max(((on(link) + (link not in mine)) / rates_bps[link] for link in links), default=0.0)

    def _rtt_ns(self, transfer: Transfer) -> int:
        links = self._fabric.paths(transfer.source, transfer.target)[0].links
        return max(2 * sum(self._fabric.links[link].delay_ns for link in links), RTT_MIN_NS)

    def _alone_ns(self, transfer: Transfer) -> float:
        rate_bps = max(self._fabric.link_rates_bps[link] for link, _ in self._fabric.ports(transfer.source))
        return transfer.size_bytes * 8e9 / rate_bps

    def _nic(self, transfer: Transfer, side: str) -> int:
        return self._on_nic.get((side, transfer.source.index if side == "out" else transfer.target.index), 0)

    def _count_nics(self, transfer: Transfer, step: int) -> None:
        for key in (("out", transfer.source.index), ("in", transfer.target.index)):
            self._on_nic[key] = self._on_nic.get(key, 0) + step
