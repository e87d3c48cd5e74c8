"""A plan by somebody who knows the near future: what a central scheduler could gain over ARK at best.

Transfers that begin within ``HORIZON_NS`` of the first of them are planned together, as if all were live at
once: a bipartite graph of first and last leaves is coloured, no two transfers of one leaf alike, and each
colour goes to the path on which what is live already is in its way least. With leaves and spines, and no more
transfers a leaf than spines, no two meet. Live transfers are never moved.
"""

from collections.abc import Sequence
from typing import Final

from ark.fabric.topology import Fabric
from ark.sim.schemes.counting import Counting
from ark.sim.schemes.edge_colouring import edge_colours
from ark.sim.schemes.scheme import Transfer

HORIZON_NS: Final = 10_000


class Planned(Counting):
    """Paths by edge colouring, batch by batch."""

    name = "planned"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer], spread: Sequence[int]) -> None:
        super().__init__(fabric, transfers, spread)
        self._transfers = transfers
        self._plan: dict[int, int] = {}

    def choose(self, transfer: Transfer) -> int:
        """The planned path."""
        if transfer.index not in self._plan:
            self._make_plan(transfer)
        return self._plan.pop(transfer.index)

    def _make_plan(self, first: Transfer) -> None:
        """Plan all transfers from this one on that begin soon."""
        batch = []
        for transfer in self._transfers[first.index :]:
            if transfer.start_ns > first.start_ns + HORIZON_NS:
                break
            if not transfer.pin and transfer.source.attachment != transfer.target.attachment:
                batch.append(transfer)
        colours = edge_colours([(t.source.attachment, t.target.attachment) for t in batch])
        groups: dict[int, list[Transfer]] = {}
        for transfer, colour in zip(batch, colours, strict=True):
            groups.setdefault(colour, []).append(transfer)
        for group in sorted(groups.values(), key=len, reverse=True):
            self._place(group)
        if first.index not in self._plan:  # it stays in its leaf
            self._plan[first.index] = self._usable(first)[0]

    def _place(self, group: list[Transfer]) -> None:
        """Give one colour to a path: the one whose busiest link is least busy, live and planned counted."""
        common = set(self._usable(group[0])).intersection(*(self._usable(other) for other in group))
        if not common:  # parts of the fabric are down: each for itself
            if len(group) > 1:
                for transfer in group:
                    self._place([transfer])
                return
            common = set(self._usable(group[0]))
        turned = self._spread[group[0].index] % len(common)
        ordered = sorted(common)
        best = min(ordered[turned:] + ordered[:turned], key=lambda path: self._cost(group, path))
        for transfer in group:
            self._plan[transfer.index] = best
            self._counts.put(transfer.index, self._counts.links(transfer.source, transfer.target, best))

    def _cost(self, group: list[Transfer], path: int) -> tuple[float, float]:
        loads = [self._counts.load(self._counts.links(t.source, t.target, path)) for t in group]
        return max(load for load, _ in loads), sum(load for _, load in loads)

    def _usable(self, transfer: Transfer) -> tuple[int, ...]:
        return self._fabric.up_paths(transfer.source.attachment, transfer.target.attachment)
