"""Random draws among a flow's paths, and putting a packet on one of them."""

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.chance import draw
from ark.sim.packet.layout import World


@kernel_part
def any_of(world: World, count: int) -> int:
    """A random number from 0 to ``count`` - 1."""
    return min(int(draw(world) * count), count - 1)


@kernel
def take_path(world: World, packet: int, path: int) -> None:
    """Let a packet at the first leaf of its flow take a path; its route begins with the NIC's link."""
    entry = world.packets[packet]
    entry.path = path
    entry.hop = world.choices[world.steerings[entry.flow].first + path] + 1
