"""Source ports that are set once for each pair of NICs, so that the pairs are even over the paths.

What an operator can do without any agent: the connections of NIC i to its peers, and those of all peers to
NIC j, lie on different paths as far as there are enough. Which of them are busy at once is left to chance.
"""

from collections.abc import Sequence

from ark.fabric.topology import Fabric
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class StaticSports(FixedAtArrival):
    """Path (i + j) modulo their number for a transfer from NIC i to NIC j."""

    name = "static-sports"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer]) -> None:
        self._fabric = fabric
        self._steering = Steering(fabric, transfers)

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The path of the pair, at once."""
        source, target = transfer.source, transfer.target
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        path = usable[(source.index + target.index) % len(usable)]
        return self._steering.assignment(transfer, (path,), 0, now_ns)

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()
