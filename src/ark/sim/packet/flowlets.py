"""LetFlow (Vanini et al., NSDI 2017): a random path for each flowlet.

A flowlet is what a flow sends without a gap of ``flowlet_gap``. A flow at line rate has no gaps.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.choosing import any_of, take_path
from ark.sim.packet.layout import World


@kernel
def letflow(world: World, packet: int, now: int) -> None:
    """A data packet has come to its first leaf."""
    flow = int(world.packets[packet].flow)
    if begins_flowlet(world, flow, now):
        state = world.steerings[flow]
        state.path = any_of(world, int(state.count))
    take_path(world, packet, int(world.steerings[flow].path))


@kernel
def begins_flowlet(world: World, flow: int, now: int) -> bool:
    """Whether a packet that comes now is the first of a flowlet; it is noted as the last that came."""
    state = world.steerings[flow]
    begins = state.path < 0 or now - state.seen > world.rules.flowlet_gap
    state.seen = now
    return bool(begins)
