"""A packet comes to a switch: leaves may choose its path, and the packet goes on."""

from ark.sim.compilation import kernel_part
from ark.sim.packet.admission import forward
from ark.sim.packet.balancing import balance
from ark.sim.packet.layout import NO_BALANCER, World


@kernel_part
def on_switch(world: World, switch: int, link: int, packet: int, now: int) -> None:
    """``packet`` has come in by ``link``."""
    world.packets[packet].hop += 1
    if world.rules.balancer != NO_BALANCER and not balance(world, link, packet, now):
        return
    forward(world, switch, link, packet, now)
