"""Each NIC takes the paths to an attachment in turn: even in numbers, blind to sizes and to other hosts."""

from collections.abc import Sequence

from ark.fabric.topology import Fabric
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class RoundRobin(FixedAtArrival):
    """The next path after the one that the NIC took last; NICs begin at different ones."""

    name = "round-robin"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer]) -> None:
        self._fabric = fabric
        self._steering = Steering(fabric, transfers)
        self._turns: dict[int, int] = {}

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The path whose turn it is, at once."""
        source, target = transfer.source, transfer.target
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        turn = self._turns.get(source.index, source.index)
        self._turns[source.index] = turn + 1
        return self._steering.assignment(transfer, (usable[turn % len(usable)],), turn, now_ns)

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()
