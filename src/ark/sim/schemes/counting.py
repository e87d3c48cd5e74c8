"""What schemes have in common that choose one path at arrival, by how many transfers are on each link."""

from abc import abstractmethod
from collections.abc import Sequence

from ark.fabric.topology import Fabric
from ark.sim.schemes.link_counts import LinkCounts
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class Counting(FixedAtArrival):
    """Counts live transfers on all links, seen at once; ``choose`` says which path the next one takes."""

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer], spread: Sequence[int]) -> None:
        self._fabric = fabric
        self._spread = spread
        self._steering = Steering(fabric, transfers)
        self._counts = LinkCounts(fabric)

    @abstractmethod
    def choose(self, transfer: Transfer) -> int:
        """The path for a new transfer."""

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The chosen path, at once."""
        wanted, spread = (self.choose(transfer),), self._spread[transfer.index]
        assignment = self._steering.assignment(transfer, wanted, spread, now_ns)
        taken = self._counts.links(transfer.source, transfer.target, assignment.paths[0])
        self._counts.put(transfer.index, taken)
        return assignment

    def completed(self, now_ns: int, index: int) -> None:  # noqa: ARG002
        """Its links have one transfer fewer."""
        self._counts.drop(index)

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()
