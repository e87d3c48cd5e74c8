"""Leaves that choose the path of each packet: which scheme does it, and where in the network it acts.

The first leaf is the switch that a packet reaches from its NIC, the last one that from which it goes to a
NIC. A path is chosen as a whole, by the first leaf; a flow's paths stand in the table of choices. ACKs and
NACKs keep the path that the fabric's hash gives them, as in ConWeave's ns-3, which all of these follow.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.conga import conga_on_the_way
from ark.sim.packet.conweave import conweave_at_first, conweave_at_last, conweave_hears
from ark.sim.packet.drill import drill
from ark.sim.packet.flowlets import letflow
from ark.sim.packet.layout import CONGA, CONWEAVE, DATA, DRILL, LETFLOW, PAUSE, REPLY, SPRAY, World
from ark.sim.packet.spraying import spray


@kernel
def balance(world: World, link: int, packet: int, now: int) -> bool:
    """Treat a packet that came into a switch by ``link``; False if it is not to be forwarded now."""
    entry = world.packets[packet]
    from_nic = world.links[link].source_nic >= 0
    to_nic = world.routes[entry.hop + 1] < 0
    if entry.kind != DATA:
        if to_nic and REPLY <= entry.kind < PAUSE:
            conweave_hears(world, packet, now)
            return False
        return True
    if (from_nic and to_nic) or world.steerings[entry.flow].count == 0:
        return True
    balancer = world.rules.balancer
    if balancer == CONGA:
        conga_on_the_way(world, packet, from_nic, to_nic, now)
    elif from_nic:
        _choose(world, balancer, packet, now)
    elif to_nic and balancer == CONWEAVE:
        return bool(conweave_at_last(world, link, packet, now))
    return True


@kernel
def _choose(world: World, balancer: int, packet: int, now: int) -> None:
    """Choose the path of a data packet at its first leaf."""
    if balancer == LETFLOW:
        letflow(world, packet, now)
    elif balancer == DRILL:
        drill(world, packet, now)
    elif balancer == SPRAY:
        spray(world, packet)
    elif balancer == CONWEAVE:
        conweave_at_first(world, packet, now)
