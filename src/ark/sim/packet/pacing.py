"""Rate and window of a flow: what congestion control sets and the NIC obeys."""

from ark.sim.compilation import kernel
from ark.sim.packet.layout import World
from ark.sim.packet.link import PS_OF_A_BYTE


@kernel
def pacing_gap(world: World, rate: float, size: int) -> int:
    """Time between the beginnings of packets of ``size`` bytes at ``rate``, cut to whole ticks."""
    time = int(float(size) * PS_OF_A_BYTE / rate)
    return int(time - time % world.rules.tick)


@kernel
def set_rate(world: World, flow: int, rate: float) -> None:
    """Let the flow send at ``rate`` from its next packet on; a variable window follows in proportion."""
    rules = world.rules
    sender = world.flows[flow]
    sender.rate = rate
    sender.gap = pacing_gap(world, rate, rules.payload + rules.overhead)
    if sender.window > 0:
        if rules.window_by_rate:
            sender.allowed = max(int(float(sender.window) * rate / sender.line), 1)
        else:
            sender.allowed = sender.window
