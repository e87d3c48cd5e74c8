"""DRILL (Ghorbani et al., SIGCOMM 2017): each packet to the shortest of a few local queues.

The leaf looks at ``drill_samples`` random uplinks and at the one that was best last time for this target; the
latter wins ties. It knows nothing of queues further on. Where a path has choices behind its first link, they
come with the sample.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.choosing import any_of, take_path
from ark.sim.packet.layout import World
from ark.sim.packet.link import advance


@kernel
def drill(world: World, packet: int, now: int) -> None:
    """A data packet has come to its first leaf."""
    flow = int(world.packets[packet].flow)
    state = world.steerings[flow]
    count = int(state.count)
    best = int(world.remembered[state.memory])
    least = -1
    if best >= 0:
        least = _queued(world, flow, best, now)
    first = any_of(world, count)
    for sample in range(min(world.rules.drill_samples, count)):
        # The second is drawn from all but the first; further ones follow it, so that none comes twice.
        path = first
        if sample == 1:
            first = (first + 1 + any_of(world, count - 1)) % count
            path = first
        elif sample > 1:
            path = (first + sample - 1) % count
        queued = _queued(world, flow, path, now)
        if least < 0 or queued < least:
            least = queued
            best = path
    world.remembered[state.memory] = best
    take_path(world, packet, best)


@kernel
def _queued(world: World, flow: int, path: int, now: int) -> int:
    """Bytes that wait at the leaf's own link of a path."""
    link = int(world.routes[world.choices[world.steerings[flow].first + path] + 1])
    advance(world, link, now - 1)
    return int(world.links[link].queued)
