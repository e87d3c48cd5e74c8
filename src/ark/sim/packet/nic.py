"""The sending side of a NIC: which flow sends its next packet, and when.

ACKs go first: they wait in the link's queues, while a data packet is made only when the link is free for it.
Flows take turns packet by packet. One may send if it has bytes, its window has room, its priority is not
paused and its pacing time has come.
"""

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.dcqcn import count_bytes
from ark.sim.packet.events import schedule
from ark.sim.packet.layout import DATA, DCQCN, NEVER, TIMEOUT, WAKE, World
from ark.sim.packet.link import advance, transmit
from ark.sim.packet.pacing import pacing_gap
from ark.sim.packet.pool import take_packet


@kernel
def on_wake(world: World, nic: int, now: int) -> None:
    """The time has come for which the NIC had waited."""
    port = world.nics[nic]
    if port.wake == now:
        port.wake = -1
        serve(world, nic, now)


@kernel
def serve(world: World, nic: int, now: int) -> None:
    """Send one data packet if the link is free and a flow may send, and arrange for the next."""
    port = world.nics[nic]
    if port.tail < 0:
        return
    line = world.links[port.link]
    advance(world, port.link, now)
    if line.free > now:
        _wake_at(world, nic, line.free)
        return
    flow = _choose(world, nic, now)
    if flow >= 0:
        _send(world, nic, flow, now)
    next_ready = _next_ready(world, nic, line.free)
    if next_ready < NEVER:
        _wake_at(world, nic, max(next_ready, line.free))


@kernel
def join(world: World, nic: int, flow: int) -> None:
    """The flow takes its place behind all others of the NIC."""
    port = world.nics[nic]
    flows = world.flows
    if port.tail < 0:
        flows[flow].ring = flow
        port.last = flow
    else:
        flows[flow].ring = flows[port.tail].ring
        flows[port.tail].ring = flow
    port.tail = flow


@kernel
def leave(world: World, nic: int, flow: int) -> None:
    """The flow is complete and no longer takes turns."""
    port = world.nics[nic]
    flows = world.flows
    before = flow
    while flows[before].ring != flow:
        before = flows[before].ring
    if before == flow:
        port.tail = -1
        port.last = -1
        return
    flows[before].ring = flows[flow].ring
    if port.tail == flow:
        port.tail = before
    if port.last == flow:
        port.last = before


@kernel_part
def _has_data(world: World, flow: int, paused: int) -> bool:
    """Whether only its pacing may keep the flow from sending."""
    sender = world.flows[flow]
    has_room = sender.allowed == 0 or sender.next - sender.acked < sender.allowed
    return bool(sender.next < sender.limit and has_room and not (paused >> sender.priority) & 1)


@kernel_part
def _choose(world: World, nic: int, now: int) -> int:
    """The flow whose turn it is, or -1."""
    port = world.nics[nic]
    paused = world.links[port.link].paused
    flow = port.last
    while True:
        flow = world.flows[flow].ring
        if world.flows[flow].ready <= now and _has_data(world, flow, paused):
            return int(flow)
        if flow == port.last:
            return -1


@kernel_part
def _next_ready(world: World, nic: int, soon: int) -> int:
    """Earliest pacing time of the flows that could send; the first that is ``soon`` will do."""
    port = world.nics[nic]
    paused = world.links[port.link].paused
    earliest = NEVER
    flow = port.last
    while True:
        flow = world.flows[flow].ring
        if world.flows[flow].ready < earliest and _has_data(world, flow, paused):
            earliest = int(world.flows[flow].ready)
            if earliest <= soon:
                return earliest
        if flow == port.last:
            return earliest


@kernel_part
def _wake_at(world: World, nic: int, time: int) -> None:
    port = world.nics[nic]
    if port.wake < 0 or port.wake > time:
        port.wake = time
        schedule(world, time, WAKE, nic)


@kernel
def _send(world: World, nic: int, flow: int, now: int) -> None:
    """Make the flow's next packet and put it on the wire."""
    port = world.nics[nic]
    rules = world.rules
    sender = world.flows[flow]
    port.last = flow
    payload = min(rules.payload, sender.limit - sender.next)

    packet = take_packet(world)
    entry = world.packets[packet]
    entry.kind = DATA
    entry.flow = flow
    entry.hop = sender.route
    entry.length = payload + rules.overhead
    entry.payload = payload
    entry.account = -1
    entry.priority = sender.priority
    entry.marked = 0
    entry.stops = 0
    entry.sequence = sender.next
    entry.sent = now

    if rules.timeout and (sender.next == sender.acked or not sender.timeout_armed):
        sender.deadline = now + rules.timeout
        if not sender.timeout_armed:
            sender.timeout_armed = 1
            schedule(world, sender.deadline, TIMEOUT, flow)
    if sender.next < sender.highest:
        sender.retransmits += 1
    sender.next += payload
    sender.highest = max(sender.highest, sender.next)
    sender.sent_packets += 1
    sender.ready = now + (
        sender.gap if payload == rules.payload else pacing_gap(world, sender.rate, int(entry.length))
    )
    if rules.control == DCQCN and rules.increase_bytes:
        count_bytes(world, flow, entry.length)
    transmit(world, port.link, packet, now)
