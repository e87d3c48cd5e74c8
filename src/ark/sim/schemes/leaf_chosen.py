"""Schemes in which leaves choose the path of each packet: the packet engine's kernel decides."""

from collections.abc import Sequence

from ark.fabric.topology import Fabric
from ark.sim.schemes.ecmp import Ecmp
from ark.sim.schemes.scheme import Transfer


class LeafChosen(Ecmp):
    """Whatever ``ark.sim.packet.leaves`` calls by this name; ACKs go as the transfer's own port has it."""

    def __init__(self, name: str, fabric: Fabric, transfers: Sequence[Transfer]) -> None:
        super().__init__(fabric, transfers)
        self.name = name
        self.balancer = name
