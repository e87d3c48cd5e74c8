"""Oblivious packet spraying: each packet of a flow takes the next path; each round begins at a random one.

Its receiver keeps what comes out of order (``host``), as transports made for it do: without, go-back-N would
send most packets twice.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.choosing import any_of, take_path
from ark.sim.packet.layout import World


@kernel
def spray(world: World, packet: int) -> None:
    """A data packet has come to its first leaf."""
    state = world.steerings[world.packets[packet].flow]
    count = int(state.count)
    turn = int(state.epoch) % count
    if turn == 0:
        state.path = any_of(world, count)
    state.epoch += 1
    take_path(world, packet, (int(state.path) + turn) % count)
