"""The way of a packet through a switch: it is let into the shared buffer or dropped, and joins its queue.

Packets of the strict priority are neither booked nor refused, as in the public simulators: they are few and
small.
"""

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.layout import PRIORITIES, World
from ark.sim.packet.link import advance, enqueue, lose
from ark.sim.packet.pfc import credit, pause_if_over, threshold


@kernel_part
def forward(world: World, switch: int, link: int, packet: int, now: int) -> None:
    """Send ``packet``, which has come in by ``link``, on its way."""
    entry = world.packets[packet]
    if entry.priority == 0 or _admit(world, switch, link, packet, now):
        enqueue(world, world.routes[entry.hop], packet, now)
    else:
        lose(world, link, packet)


@kernel
def _admit(world: World, switch: int, link: int, packet: int, now: int) -> bool:
    """Book the packet on its ingress port's account; False if there is no room."""
    pool = world.switches[switch]
    entry = world.packets[packet]
    account = link * PRIORITIES + int(entry.priority)
    held = world.accounts[account]
    size = int(entry.length)
    # Booked itself, the packet lowers the threshold, and must not bring about a pause even so.
    used = max(held.bytes + size - pool.reserve, 0)
    if held.headroom == 0 and used < threshold(world, switch, link, size):
        credit(world, switch, account, size)
        entry.account = link
        return True
    for position in range(pool.first, pool.last):  # it may be that the accounts only lag behind
        advance(world, world.egress[position], now - 1)
    allowed = threshold(world, switch, link, 0)
    if world.rules.pool_first:  # the threshold pauses the sender, but refuses nothing while there is room
        allowed = max(allowed, pool.pool - pool.shared + max(held.bytes - pool.reserve, 0))
    over = size + max(held.bytes - pool.reserve, 0) > allowed
    if over and size + held.headroom > world.links[link].headroom:
        return False
    if held.bytes + size > pool.reserve and held.bytes + size - pool.reserve > allowed:
        held.headroom += size
    else:
        credit(world, switch, account, size)
    entry.account = link
    if world.rules.pfc:
        pause_if_over(world, switch, link, int(entry.priority), now)
    return True
