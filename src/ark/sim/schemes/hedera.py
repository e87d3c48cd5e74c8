"""Hedera (Al-Fares et al., NSDI 2010): a controller that moves large transfers, once each period.

First the demands of all live transfers are estimated: what each would get if only NICs were limits. Then
global first fit: each large one, in order of arrival, goes to the first path with room for its demand on
every link, and stays where it is if there is none. Until the next period a new transfer goes where its hash
leads.
"""

from collections.abc import Sequence
from typing import Final

from ark.fabric.topology import Fabric
from ark.sim.schemes.ecmp import hashed_path
from ark.sim.schemes.link_counts import LinkCounts
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer

PERIOD_NS: Final = 5_000_000
"""The paper has 5 s; KV transfers last milliseconds."""
LARGE_SHARE: Final = 0.1
"""Demand, as a share of its NIC's rate, from which on a transfer is placed."""
ROUND: Final = 1e-9
"""Shares of a rate that count as nothing."""


class Hedera(FixedAtArrival):
    """ECMP with global first fit behind it."""

    name = "hedera"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer], spread: Sequence[int]) -> None:
        self._fabric = fabric
        self._spread = spread
        self._steering = Steering(fabric, transfers)
        self._counts = LinkCounts(fabric)
        self._live: dict[int, Transfer] = {}
        self._path: dict[int, int] = {}
        self._next_ns: int | None = None

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The hashed path, at once."""
        path = hashed_path(self._fabric, transfer)
        self._live[transfer.index] = transfer
        self._path[transfer.index] = path
        if self._next_ns is None:
            self._next_ns = now_ns + PERIOD_NS
        return Assignment((path,), (transfer.sport,), now_ns)

    def completed(self, now_ns: int, index: int) -> None:  # noqa: ARG002
        """With nothing live the controller rests."""
        del self._live[index], self._path[index]
        if not self._live:
            self._next_ns = None

    def next_deadline(self) -> int | None:
        """The next period, while there is something to move."""
        return self._next_ns

    def tick(self, now_ns: int) -> list[tuple[int, Assignment]]:
        """Place all large transfers anew."""
        if self._next_ns is None or now_ns < self._next_ns:
            return []
        self._next_ns += PERIOD_NS
        room = list(map(float, self._fabric.link_rates_bps))
        moves = []
        for index, demand_bps in self._demands().items():
            transfer = self._live[index]
            fit = self._first_fit(transfer, demand_bps, room)
            assignment = self._steering.assignment(transfer, (fit,), self._spread[index], now_ns)
            path = assignment.paths[0]
            for link in self._counts.links(transfer.source, transfer.target, path):
                room[link] -= demand_bps
            if path != self._path[index]:
                self._path[index] = path
                moves.append((index, assignment))
        return moves

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()

    def _first_fit(self, transfer: Transfer, demand_bps: float, room: list[float]) -> int:
        source, target = transfer.source, transfer.target
        if demand_bps >= LARGE_SHARE * self._nic_rates(transfer)[0]:
            for path in self._fabric.up_paths(source.attachment, target.attachment):
                links = self._counts.links(source, target, path)
                if all(room[link] >= demand_bps * (1 - ROUND) for link in links):
                    return path
        return self._path[transfer.index]

    def _demands(self) -> dict[int, float]:
        """Max-min fair rates of all live transfers if only NICs were limits: what Hedera's rounds come to."""
        open_, rate = set(self._live), dict.fromkeys(self._live, 0.0)
        room: dict[tuple[str, int], float] = {}
        users: dict[tuple[str, int], set[int]] = {}
        for index, transfer in self._live.items():
            out, into = self._nic_rates(transfer)
            for nic, bps in ((("out", transfer.source.index), out), (("in", transfer.target.index), into)):
                room[nic] = bps
                users.setdefault(nic, set()).add(index)
        while open_:
            nic = min(
                (nic for nic in users if users[nic]), key=lambda nic: (room[nic] / len(users[nic]), nic)
            )
            share = room[nic] / len(users[nic])
            for index in sorted(users[nic]):
                rate[index] = share
                open_.discard(index)
                transfer = self._live[index]
                for of in (("out", transfer.source.index), ("in", transfer.target.index)):
                    users[of].discard(index)
                    room[of] -= share
        return rate

    def _nic_rates(self, transfer: Transfer) -> tuple[float, float]:
        rates_bps, ports = self._fabric.link_rates_bps, self._fabric.ports
        return (
            float(sum(rates_bps[link] for link, _ in ports(transfer.source))),
            float(sum(rates_bps[link] for _, link in ports(transfer.target))),
        )
