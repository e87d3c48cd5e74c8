"""CONGA (Alizadeh et al., SIGCOMM 2014): each flowlet to the path whose busiest link was used least.

Every switch meters its links (DRE): bytes sent are added, every ``conga_interval`` a share ``conga_decay`` of
the sum is taken off; the sum over what the link could carry in interval / decay is its congestion, in
``conga_levels`` steps. A packet gathers the most that it meets. The last leaf keeps this for each path, and
each of its packets the other way carries one such value back, where it is forgotten after ``conga_aging``.
The first leaf looks at ``conga_samples`` neighbouring paths and takes one of the least max(own link, told).

In ConWeave's ns-3, which this follows, ACKs carry nothing back: without data the other way a leaf knows its
own links only.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.choosing import any_of, take_path
from ark.sim.packet.flowlets import begins_flowlet
from ark.sim.packet.layout import World
from ark.sim.packet.link import PS_OF_A_BYTE

CONGESTION_MAX = 255


@kernel
def conga_on_the_way(world: World, packet: int, from_nic: bool, to_nic: bool, now: int) -> None:  # noqa: FBT001
    """A data packet is at a switch, which is its first leaf, its last one, or between them."""
    if to_nic:
        _arrive(world, packet, now)
        return
    entry = world.packets[packet]
    label = world.labels[packet]
    if from_nic:
        flow = int(entry.flow)
        if begins_flowlet(world, flow, now):
            world.steerings[flow].path = _best_path(world, flow, now)
        take_path(world, packet, int(world.steerings[flow].path))
        label.congestion = 0
        _bring_back(world, packet, now)
    link = int(world.routes[entry.hop])
    discount(world, link, now)
    world.meters[link].bytes += float(entry.length)
    label.congestion = max(int(label.congestion), _congestion(world, link))


@kernel
def discount(world: World, link: int, now: int) -> None:
    """Take off what the meter of a link has lost by now."""
    meter = world.meters[link]
    step = now // world.rules.conga_interval
    if step > meter.stepped:
        meter.bytes *= (1.0 - world.rules.conga_decay) ** float(step - meter.stepped)
        meter.stepped = step


@kernel
def _congestion(world: World, link: int) -> int:
    """How much a link was used of late, in levels; about ``conga_levels`` is all that it can carry."""
    rules = world.rules
    time = float(rules.conga_interval) / rules.conga_decay
    carried = world.meters[link].bytes * float(PS_OF_A_BYTE) / (float(world.links[link].rate) * time)
    return min(int(carried * float(rules.conga_levels)), CONGESTION_MAX)


@kernel
def _best_path(world: World, flow: int, now: int) -> int:
    """One of the least congested among a few neighbouring paths, at random."""
    rules = world.rules
    state = world.steerings[flow]
    count = int(state.count)
    samples = min(int(rules.conga_samples), count)
    start = any_of(world, count - samples + 1)
    best, least, equals = start, CONGESTION_MAX + 1, 0
    for path in range(start, start + samples):
        link = int(world.routes[world.choices[state.first + path] + 1])
        discount(world, link, now)
        congestion = _congestion(world, link)
        known = world.paths[state.pair + path]
        if known.told_at >= 0 and now - known.told_at <= rules.conga_aging:
            congestion = max(congestion, int(known.told))
        if congestion < least:
            best, least, equals = path, congestion, 1
        elif congestion == least:
            equals += 1
            if any_of(world, equals) == 0:
                best = path
    return best


@kernel
def _bring_back(world: World, packet: int, now: int) -> None:
    """Put the congestion of a random path the other way on a packet that leaves its first leaf."""
    state = world.steerings[world.packets[packet].flow]
    label = world.labels[packet]
    label.about_path = -1
    fresh = 0
    for path in range(state.count):
        known = world.paths[state.back + path]
        if known.met_at >= 0 and now - known.met_at <= world.rules.conga_aging:
            fresh += 1
            if any_of(world, fresh) == 0:
                label.about_path = path
                label.told = known.met


@kernel
def _arrive(world: World, packet: int, now: int) -> None:
    """The last leaf notes what the packet has met, and what it brings."""
    entry = world.packets[packet]
    label = world.labels[packet]
    state = world.steerings[entry.flow]
    here = world.paths[state.pair + entry.path]
    here.met = label.congestion
    here.met_at = now
    if label.about_path >= 0:
        there = world.paths[state.back + label.about_path]
        there.told = label.told
        there.told_at = now
