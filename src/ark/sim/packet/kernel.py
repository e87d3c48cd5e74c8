"""The main loop: takes the next event and hands it to what it concerns."""

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.chance import draw
from ark.sim.packet.conweave import on_flush
from ark.sim.packet.dcqcn import on_increase_timer, on_look
from ark.sim.packet.events import KIND_BITS, KIND_MASK, SLOT_MASK, begin_first, end_first, schedule
from ark.sim.packet.host import complete, on_ack, on_data, on_timeout
from ark.sim.packet.layout import (
    ARRIVAL,
    COMPLETED,
    CUT,
    DATA,
    EVENTS_MAX,
    FLUSH,
    FULL,
    INCREASE,
    PACKETS_MAX,
    PAUSE,
    REACHED,
    SERVICE,
    STALLED,
    WAKE,
    World,
)
from ark.sim.packet.link import advance, cut, lose, on_service, set_paused, transmission_time
from ark.sim.packet.nic import join, leave, on_wake, serve
from ark.sim.packet.pool import give_back
from ark.sim.packet.switch import on_switch


@kernel
def run(world: World, until: int) -> int:
    """Handle all events up to ``until``, or up to the first that the caller has to know of.

    Returns one of ``REACHED``, ``COMPLETED``, ``FULL`` and ``STALLED``; called again it goes on from there.
    """
    clock = world.clock
    margin = world.rules.margin
    packets_max = PACKETS_MAX - margin
    events_max = EVENTS_MAX - margin
    clock.reported = -1
    while clock.pending > 0 and world.when[0] <= until:
        if clock.under_way > packets_max or clock.pending > events_max:
            return FULL
        now = world.when[0]
        if clock.live > 0 and now - clock.progress > clock.patience:
            return STALLED
        slot = world.what[0] & SLOT_MASK
        begin_first(world)
        clock.now = now
        clock.events += 1
        clock.history = (clock.history << 7) ^ (clock.history >> 57) ^ now ^ slot
        _dispatch(world, slot & KIND_MASK, slot >> KIND_BITS, now)
        end_first(world)
        if clock.reported >= 0:
            return COMPLETED
    clock.now = max(clock.now, until)
    return REACHED


@kernel
def start_flow(world: World, flow: int, now: int) -> None:
    """The flow may send from ``now`` on."""
    sender = world.flows[flow]
    sender.active = 1
    sender.start = now
    sender.ready = now
    sender.finish = -1
    clock = world.clock
    if clock.live == 0:
        clock.progress = now
    clock.live += 1
    clock.now = now
    join(world, int(sender.nic), flow)
    serve(world, int(sender.nic), now)


@kernel
def resume_flow(world: World, flow: int, now: int) -> None:
    """The flow has got a further segment, or another route."""
    serve(world, int(world.flows[flow].nic), now)


@kernel
def change_nic(world: World, flow: int, nic: int) -> None:
    """The flow sends its packets from now on by another NIC."""
    sender = world.flows[flow]
    if sender.active:
        leave(world, int(sender.nic), flow)
        join(world, nic, flow)
    sender.nic = nic
    if sender.active:
        serve(world, nic, int(world.clock.now))


@kernel
def end_flow(world: World, flow: int, now: int) -> None:
    """The flow has nothing more to send: all that it sent is acknowledged."""
    complete(world, flow, now)
    world.clock.reported = -1


@kernel
def set_link(world: World, link: int, up: bool, now: int) -> None:  # noqa: FBT001
    """A directed link fails, and loses all that is on it, or comes back."""
    line = world.links[link]
    if not up:
        cut(world, link, now)
        return
    line.up = 1
    line.free = max(line.free, now)
    if line.source_nic >= 0:
        serve(world, int(line.source_nic), now)


@kernel
def settle(world: World, now: int) -> None:
    """Bring every link up to ``now``, so that queues and counters can be read."""
    for link in range(world.clock.links):
        advance(world, link, now)


@kernel_part
def _dispatch(world: World, kind: int, index: int, now: int) -> None:
    if kind == ARRIVAL:
        _on_arrival(world, index, now)
    elif kind == WAKE:
        on_wake(world, index, now)
    elif kind == CUT:
        on_look(world, index, now)
    elif kind == INCREASE:
        on_increase_timer(world, index, now)
    elif kind == SERVICE:
        on_service(world, index, now)
    elif kind == FLUSH:
        on_flush(world, index, now)
    else:
        on_timeout(world, index, now)


@kernel_part
def _on_arrival(world: World, link: int, now: int) -> None:
    """The first packet on the link has come to the far end."""
    line = world.links[link]
    packet = line.head
    if packet < 0 or world.packets[packet].arrival != now:
        return  # the link was cut since
    advance(world, link, now)
    entry = world.packets[packet]
    line.head = entry.next
    if line.head >= 0:
        schedule(world, world.packets[line.head].arrival, ARRIVAL, link)
    if line.loss > 0.0 and entry.kind < PAUSE and draw(world) < line.loss:
        lose(world, link, packet)
    elif entry.kind >= PAUSE:
        _on_frame(world, link, packet, now)
    elif line.target_switch >= 0:
        on_switch(world, line.target_switch, link, packet, now)
    elif entry.kind == DATA:
        on_data(world, packet, now)
    else:
        on_ack(world, packet, now)


@kernel
def _on_frame(world: World, link: int, packet: int, now: int) -> None:
    """A PFC frame has come by ``link``: it is about the link the other way."""
    frame = world.packets[packet]
    line = world.links[link]
    back = int(line.reverse)
    sent = now - int(line.delay) - transmission_time(world, link, int(frame.length))
    set_paused(world, back, int(frame.hop), frame.kind == PAUSE, sent, now)
    nic = int(world.links[back].source_nic)
    give_back(world, packet)
    if nic >= 0:
        serve(world, nic, now)
