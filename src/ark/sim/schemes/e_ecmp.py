"""E-ECMP, also known as QP spreading: a transfer in several queue pairs, each hashed by a port of its own.

Switches hash the queue pair, or each queue pair has another source port: the same to a simulation. The
transfer is cut into equal parts once, and ends with the last of them (Meta, "RDMA over Ethernet for
distributed AI training at Meta scale", SIGCOMM 2024, tried both this and whole messages in turn).
"""

from collections.abc import Sequence

import numpy as np

from ark.fabric.roce import SPORTS
from ark.fabric.route_flows import route_flows
from ark.fabric.topology import Fabric
from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer


class EEcmp(FixedAtArrival):
    """Equal parts under random ports; the first is the transfer's own."""

    name = "e-ecmp"
    segment_bytes = 2**62
    """No part is cut again: a stripe pulls its even share at once."""

    def __init__(
        self, fabric: Fabric, transfers: Sequence[Transfer], count: int, draw: np.random.Generator
    ) -> None:
        self.stripes_max = count
        columns = [(t.source.index, t.target.index, t.sport, t.dport) for t in transfers]
        source, target, sport, dport = np.array(columns, np.int64).reshape(-1, 4).T
        drawn = draw.integers(SPORTS.start, SPORTS.stop, (len(transfers), count - 1))
        self._ports = np.column_stack([sport, drawn])
        sources, targets, dports = (np.repeat(column, count) for column in (source, target, dport))
        paths = route_flows(fabric, sources, targets, self._ports.reshape(-1), dports)
        self._paths = paths.reshape(-1, count)

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The hashed paths of all parts, at once."""
        paths, ports = self._paths[transfer.index].tolist(), self._ports[transfer.index].tolist()
        return Assignment(tuple(paths), tuple(ports), now_ns)
