"""The packet pool: those that are free again are a list through their field ``next``."""

from ark.sim.compilation import kernel_part
from ark.sim.packet.layout import World


@kernel_part
def take_packet(world: World) -> int:
    """Number of a packet that is nobody's; the main loop stops before there are too many."""
    clock = world.clock
    clock.under_way += 1
    packet = int(clock.free)
    if packet >= 0:
        clock.free = world.packets[packet].next
    else:
        packet = int(clock.made)
        clock.made += 1
    return packet


@kernel_part
def give_back(world: World, packet: int) -> None:
    """The packet has arrived or is lost: let another use its record."""
    clock = world.clock
    world.packets[packet].next = clock.free
    clock.free = packet
    clock.under_way -= 1
