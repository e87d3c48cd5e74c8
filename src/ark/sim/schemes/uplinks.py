"""Half of ARK: reserve the own leaf's uplinks, and look at nothing beyond the spine.

Each transfer takes the path whose first link between switches has the fewest live transfers of all hosts on
that leaf, seen at once; equal ones by a random number. What meets it on the way down is left to chance.
"""

from collections.abc import Sequence

from ark.fabric.topology import Fabric
from ark.sim.schemes.link_counts import LinkCounts
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class Uplinks(FixedAtArrival):
    """The least used uplink."""

    name = "ark-uplinks"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer], spread: Sequence[int]) -> None:
        self._fabric = fabric
        self._spread = spread
        self._steering = Steering(fabric, transfers)
        self._counts = LinkCounts(fabric)

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The path over the least used uplink, at once."""
        source, target, spread = transfer.source, transfer.target, self._spread[transfer.index]
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        turned = [usable[(place + spread) % len(usable)] for place in range(len(usable))]
        best = min(turned, key=lambda path: self._counts.load(self._counts.links(source, target, path)[:1]))
        assignment = self._steering.assignment(transfer, (best,), spread, now_ns)
        taken = self._counts.links(source, target, assignment.paths[0])
        self._counts.put(transfer.index, taken)
        return assignment

    def completed(self, now_ns: int, index: int) -> None:  # noqa: ARG002
        """The uplink has one transfer fewer."""
        self._counts.drop(index)

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()
