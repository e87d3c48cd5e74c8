"""ConWeave (Song et al., SIGCOMM 2023): leave a slow path in mid-flow, and put the packets in order again.

::

    first leaf   epoch begins ── asks ──> reply in time: the next packet begins a new epoch on the same path
                                          reply late:    this packet is the tail of the old path, those behind
                                                         it are phase 1 and take a new one, until the reply to
                                                         the tail has come; then a new epoch begins
    last leaf    phase 1 before the tail: held back, and let go behind it, or when it should have come
                 any marked packet:       the first leaf is told, and avoids that path for ``path_pause``

A new path is the first of two random ones that is not to be avoided; if both are, the old one stays. The tail
should come as long after a packet of phase 0 as it left after that one, plus ``flush_extra``; where no packet
of phase 0 has come, ``tail_wait`` from now. Rules and constants are those of the authors' ns-3.

Packets held back take no room in the shared buffer, as there.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.admission import forward
from ark.sim.packet.choosing import any_of, take_path
from ark.sim.packet.events import schedule
from ark.sim.packet.layout import ASKS, FLUSH, NEVER, NOTIFY, PLAIN, REPLY, TAIL, World
from ark.sim.packet.link import enqueue
from ark.sim.packet.pool import give_back, take_packet

AT_ONCE_PS = 1_000
"""Held packets follow their tail a nanosecond later."""


@kernel
def conweave_at_first(world: World, packet: int, now: int) -> None:
    """A data packet has come to its first leaf, which labels it and chooses its path."""
    rules = world.rules
    state = world.steerings[world.packets[packet].flow]
    label = world.labels[packet]
    expired = state.path < 0 or now - state.seen > rules.epoch_expiry
    begins = expired or state.stable != 0
    state.stable = 0
    state.seen = now
    label.flag = PLAIN
    if begins:
        state.deadline = now + state.base_rtt + rules.reply_extra
        state.epoch += 1
        state.phase = 0
        state.tail_sent = 0
        label.flag = ASKS
    elif state.deadline < now:
        state.deadline = NEVER
        state.tail_sent = now
        label.flag = TAIL
    if expired:
        state.path = _new_path(world, packet, now)
    label.phase = state.phase
    label.epoch = state.epoch
    label.sent = now
    label.tail = state.tail_sent
    take_path(world, packet, int(state.path))
    if label.flag == TAIL:  # those behind it
        state.phase = 1
        state.path = _new_path(world, packet, now)


@kernel
def _new_path(world: World, packet: int, now: int) -> int:
    """One of two random paths that is not to be avoided; the old one if both are and there is one."""
    state = world.steerings[world.packets[packet].flow]
    count = int(state.count)
    first, second = any_of(world, count), any_of(world, count)
    if world.paths[state.pair + first].busy_until <= now:
        return first
    if world.paths[state.pair + second].busy_until <= now:
        return second
    return first if state.path < 0 else int(state.path)


@kernel
def conweave_hears(world: World, packet: int, now: int) -> None:
    """The first leaf gets what the last one has sent it."""
    entry = world.packets[packet]
    state = world.steerings[entry.flow]
    label = world.labels[packet]
    if entry.kind == NOTIFY:
        world.paths[state.pair + entry.path].busy_until = now + world.rules.path_pause
    elif (
        label.epoch == state.epoch
        and label.phase == state.phase
        and (label.flag == TAIL or (state.deadline != NEVER and now < state.deadline))
    ):
        state.stable = 1
        state.deadline = NEVER
    give_back(world, packet)


@kernel
def conweave_at_last(world: World, link: int, packet: int, now: int) -> bool:
    """A data packet has come by ``link`` to its last leaf; False if it is held back."""
    entry = world.packets[packet]
    flow = int(entry.flow)
    state = world.steerings[flow]
    label = world.labels[packet]
    if label.epoch < state.came_epoch:
        return True
    early = _take_in(world, packet, now)
    if label.phase == 0:
        if state.holding:
            wait = AT_ONCE_PS if label.flag == TAIL else _tail_gap(world, flow) + world.rules.flush_extra
            _let_go_at(world, flow, now + wait)
    elif early:
        since = state.old_came if state.timed else now
        _hold(world, link, packet)
        if not state.holding:
            state.holding = 1
            state.armed = -1
            _let_go_at(world, flow, max(since + _tail_gap(world, flow) + world.rules.flush_extra, now))
    if entry.marked:
        _answer(world, packet, NOTIFY, now)
    if label.flag != PLAIN:
        _answer(world, packet, REPLY, now)
    return not early


@kernel
def _take_in(world: World, packet: int, now: int) -> bool:
    """Learn from a packet's label; True if the packet has overtaken the tail of its epoch."""
    state = world.steerings[world.packets[packet].flow]
    label = world.labels[packet]
    if label.epoch > state.came_epoch:
        state.came_epoch = label.epoch
        state.came_phase = 0
        state.timed = 0
    if label.phase == 0:
        state.old_sent = label.sent
        state.old_came = now
        state.timed = 1
    if label.flag == TAIL and not state.holding:
        state.came_phase = 1
    if label.flag == TAIL or label.phase == 1:
        state.tail_known = label.tail
    return bool(label.phase > state.came_phase)


@kernel
def _tail_gap(world: World, flow: int) -> int:
    """How long after the packet of phase 0 that is known the tail left."""
    state = world.steerings[flow]
    if not state.timed:
        return int(world.rules.tail_wait)
    return max(int(state.tail_known - state.old_sent), 0)


@kernel
def _answer(world: World, packet: int, kind: int, now: int) -> None:
    """Send word of a data packet from the last leaf to the first, the way that the flow's ACKs go."""
    data = world.packets[packet]
    answer = take_packet(world)
    entry = world.packets[answer]
    entry.kind = kind
    entry.flow = data.flow
    entry.hop = world.flows[data.flow].back + 1
    entry.length = world.rules.ack_size
    entry.payload = 0
    entry.account = -1
    entry.priority = 0
    entry.marked = 0
    entry.path = data.path
    world.labels[answer].epoch = world.labels[packet].epoch
    world.labels[answer].flag = world.labels[packet].flag
    world.labels[answer].phase = 1 if world.labels[packet].flag == TAIL else 0
    enqueue(world, int(world.routes[entry.hop]), answer, now)


@kernel
def _hold(world: World, link: int, packet: int) -> None:
    """Keep a packet until its tail has come; it remembers by which link it came."""
    entry = world.packets[packet]
    state = world.steerings[entry.flow]
    entry.account = link
    entry.next = -1
    if state.holding:
        world.packets[state.end].next = packet
    else:
        state.head = packet
    state.end = packet


@kernel
def _let_go_at(world: World, flow: int, time: int) -> None:
    state = world.steerings[flow]
    state.flush = time
    if state.armed < 0 or state.armed > time:
        state.armed = time
        schedule(world, time, FLUSH, flow)


@kernel
def on_flush(world: World, flow: int, now: int) -> None:
    """Held packets have waited long enough, or their tail has come: they follow it."""
    state = world.steerings[flow]
    if state.armed != now or not state.holding:
        return
    state.armed = -1
    if state.flush > now:
        _let_go_at(world, flow, int(state.flush))
        return
    state.holding = 0
    state.came_phase = 1
    packet = int(state.head)
    while packet >= 0:
        entry = world.packets[packet]
        following = int(entry.next)
        link = int(entry.account)
        entry.account = -1
        forward(world, int(world.links[link].target_switch), link, packet, now)
        packet = following
