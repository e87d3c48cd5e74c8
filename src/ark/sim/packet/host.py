"""What a host does with a packet that arrives: the receiver of data, and the sender that gets its ACK.

RoCE in the form of HPCC's and SimAI's NIC: an ACK for every packet, go-back-N. A packet out of order is
dropped and asked for again by a NACK, at most one per ``nack_interval`` for the same byte; the sender then
goes back to the first byte that is not acknowledged. A receiver that is made for sprayed packets keeps them
(``reordering``). Beyond ns-3, a duplicate is acknowledged once more and a
flow whose ACKs stay away for ``timeout`` goes back as well, so that a lost tail or a lost ACK ends nothing.
"""

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.dcqcn import on_cnp
from ark.sim.packet.events import schedule
from ark.sim.packet.hpcc import on_telemetry
from ark.sim.packet.layout import ACK, DCQCN, HPCC, NACK, SWIFT, TIMEOUT, World
from ark.sim.packet.link import enqueue
from ark.sim.packet.nic import leave, serve
from ark.sim.packet.pool import give_back
from ark.sim.packet.reordering import keep
from ark.sim.packet.swift import on_delay, on_loss


@kernel_part
def on_data(world: World, packet: int, now: int) -> None:
    """Data has come to its receiver, which turns the packet round as an ACK or NACK, or drops it."""
    rules = world.rules
    entry = world.packets[packet]
    receiver = world.flows[entry.flow]
    if entry.marked:
        receiver.marks += 1
    entry.kind = ACK
    if rules.reorder_span:
        keep(world, packet)
    elif entry.sequence > receiver.expected:
        if receiver.nack_sequence == receiver.expected and now < receiver.nack_until:
            give_back(world, packet)
            return
        receiver.nack_sequence = receiver.expected
        receiver.nack_until = now + rules.nack_interval
        receiver.nacks += 1
        entry.kind = NACK
        if rules.nack_cnp:
            entry.marked = 1
    else:
        receiver.expected = max(receiver.expected, entry.sequence + entry.payload)
    if entry.marked and rules.cnp_interval:
        if now < receiver.cnp_until:
            entry.marked = 0
        else:
            receiver.cnp_until = now + rules.cnp_interval
    entry.sequence = receiver.expected
    entry.length = rules.ack_size
    entry.hop = receiver.back
    if rules.ack_priority >= 0:
        entry.priority = rules.ack_priority
    enqueue(world, world.routes[entry.hop], packet, now)


@kernel_part
def on_ack(world: World, packet: int, now: int) -> None:
    """An ACK or NACK has come to the sender."""
    entry = world.packets[packet]
    flow = int(entry.flow)
    sender = world.flows[flow]
    if not sender.active:
        give_back(world, packet)
        return
    nic = int(sender.nic)
    acked = entry.sequence - sender.acked
    if acked > 0:
        sender.acked = entry.sequence
        sender.next = max(sender.next, sender.acked)
        sender.deadline = now + world.rules.timeout
        world.clock.progress = now
    if sender.acked >= sender.length:
        complete(world, flow, now)
    else:
        if sender.acked == sender.limit and acked > 0:
            world.clock.reported = flow
        if entry.kind == NACK:
            sender.next = sender.acked
        _control(world, flow, packet, max(acked, 0), now)
    give_back(world, packet)
    serve(world, nic, now)


@kernel
def on_timeout(world: World, flow: int, now: int) -> None:
    """No new ACK has come by the deadline that the flow had when the event was made."""
    sender = world.flows[flow]
    if not sender.active or sender.next == sender.acked:
        sender.timeout_armed = 0
        return
    if now >= sender.deadline:
        sender.timeouts += 1
        sender.next = sender.acked
        sender.deadline = now + world.rules.timeout
        if world.rules.control == SWIFT:
            on_loss(world, flow, True, now)
        serve(world, int(sender.nic), now)
    schedule(world, sender.deadline, TIMEOUT, flow)


@kernel
def _control(world: World, flow: int, packet: int, acked: int, now: int) -> None:
    """Hand the ACK to whatever governs the flow's rate."""
    control = world.rules.control
    entry = world.packets[packet]
    if control == DCQCN:
        if entry.marked:
            on_cnp(world, flow, now)
    elif control == HPCC:
        if entry.kind == ACK:
            on_telemetry(world, flow, packet)
    elif control == SWIFT:
        if entry.kind == NACK:
            on_loss(world, flow, False, now)
        else:
            on_delay(world, flow, now - entry.sent, acked, now)


@kernel
def complete(world: World, flow: int, now: int) -> None:
    """All bytes are acknowledged: the flow leaves its NIC, and the caller is told."""
    sender = world.flows[flow]
    sender.finish = now
    sender.active = 0
    world.clock.live -= 1
    world.clock.reported = flow
    leave(world, int(sender.nic), flow)
