"""What fabrics do by themselves: the switches' hash of the 5-tuple, with the port that the transfer drew."""

from collections.abc import Sequence

import numpy as np

from ark.fabric.five_tuple import FiveTuple
from ark.fabric.route import route
from ark.fabric.route_flows import route_flows
from ark.fabric.topology import Fabric
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class Ecmp(FixedAtArrival):
    """The path that the real hashes of the fabric give the real 5-tuple."""

    name = "ecmp"

    def __init__(self, fabric: Fabric, transfers: Sequence[Transfer]) -> None:
        columns = [
            (transfer.source.index, transfer.target.index, transfer.sport, transfer.dport)
            for transfer in transfers
        ]
        source, target, sport, dport = np.array(columns, np.int64).reshape(-1, 4).T
        self._paths = route_flows(fabric, source, target, sport, dport)

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The hashed path, at once."""
        return Assignment((int(self._paths[transfer.index]),), (transfer.sport,), now_ns)


class Letflow(Ecmp):
    """LetFlow at flow level: a transfer at line rate never pauses, so it is one flowlet and stays."""

    name = "letflow"


def hashed_path(fabric: Fabric, transfer: Transfer) -> int:
    """Number of the path that ECMP gives a transfer's own port."""
    source, target = transfer.source, transfer.target
    five_tuple = FiveTuple(source.address, target.address, transfer.sport, transfer.dport)
    return route(fabric, five_tuple, source, target).index
