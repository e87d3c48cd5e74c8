"""A link with its egress queues: which packet goes next, and when it arrives.

A link is brought up to the present only when something looks at it: a packet joins a queue, or one arrives at
the far end. Nothing joined in between, so what began when is known exactly, and one event a packet and hop
is enough. ``free`` is the time at which the link has sent what has begun; a waiting packet begins then.

Queue 0 is strict, the others take turns packet by packet. ECN is judged when a packet leaves its queue, by
the bytes that stay behind in it (RED, with the marks of the DCQCN paper: none below ``mark_min``, all above
``mark_max``, linear up to ``mark_share`` between).
"""

from typing import Final

import numpy as np

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.chance import draw
from ark.sim.packet.events import schedule
from ark.sim.packet.layout import (
    ACK,
    ARRIVAL,
    DATA,
    HPCC,
    INT_HOPS,
    PAUSE,
    PRIORITIES,
    RESUME,
    World,
)
from ark.sim.packet.pfc import release, serve_at, watch
from ark.sim.packet.pool import give_back, take_packet

PS_OF_A_BYTE: Final = 8 * 10**12
"""Picoseconds in which a link of 1 bit/s sends a byte."""

LOWEST_BIT: Final = np.array([8] + [(n & -n).bit_length() - 1 for n in range(1, 256)])


@kernel
def transmission_time(world: World, link: int, size: int) -> int:
    """Time that ``size`` bytes keep ``link`` busy, cut to whole ticks."""
    time = size * PS_OF_A_BYTE // world.links[link].rate
    return int(time - time % world.rules.tick)


@kernel
def enqueue(world: World, link: int, packet: int, now: int) -> None:
    """A packet joins the egress queue of ``link``; it begins at once if the link is free."""
    line = world.links[link]
    priority = int(world.packets[packet].priority)
    if line.waiting == 0 and line.free <= now and not (line.paused >> priority) & 1 and line.up:
        transmit(world, link, packet, now)
        return
    if not line.up:
        leave_buffer(world, link, packet, now)
        lose(world, link, packet)
        return
    advance(world, link, now - 1)
    _append(world, link, packet, now)
    advance(world, link, now)
    watch(world, link)


@kernel
def advance(world: World, link: int, now: int) -> None:
    """Let all waiting packets begin whose turn had come by ``now``."""
    line = world.links[link]
    while line.free <= now and (line.waiting & ~line.paused):
        _begin_next(world, link)


@kernel
def transmit(world: World, link: int, packet: int, start: int) -> None:
    """``packet`` goes on the wire at ``start``, when the link is free."""
    line = world.links[link]
    entry = world.packets[packet]
    if entry.kind == DATA and entry.payload == world.rules.payload:
        time = line.time_data
    elif ACK <= entry.kind < PAUSE:
        time = line.time_ack
    else:
        time = transmission_time(world, link, int(entry.length))
    line.free = start + time
    entry.arrival = line.free + line.delay
    entry.next = -1
    if line.head < 0:
        line.head = packet
        line.tail = packet
        schedule(world, entry.arrival, ARRIVAL, link)
    else:
        world.packets[line.tail].next = packet
        line.tail = packet
    if line.source_switch >= 0 and entry.kind < PAUSE:
        leave_buffer(world, link, packet, start)
        if entry.kind == DATA:
            _mark(world, link, packet)
            if world.rules.control == HPCC:
                _write_telemetry(world, link, packet, start)
    line.sent_bytes += entry.length


@kernel_part
def leave_buffer(world: World, link: int, packet: int, now: int) -> None:
    """The packet no longer takes room in the switch at the source of ``link``."""
    entry = world.packets[packet]
    if entry.account >= 0:
        release(
            world,
            world.links[link].source_switch,
            int(entry.account),
            int(entry.priority),
            int(entry.length),
            now,
        )
        entry.account = -1


@kernel
def lose(world: World, link: int, packet: int) -> None:
    """Drop the packet and count it."""
    world.links[link].drops += 1
    world.clock.drops += 1
    give_back(world, packet)


@kernel
def on_service(world: World, link: int, now: int) -> None:
    """Send the PFC frames that are due, then let the link go on."""
    line = world.links[link]
    if line.service != now:
        return
    line.service = -1
    advance(world, link, now - 1)
    if line.pause_due | line.resume_due:
        for priority in range(PRIORITIES):
            first = (line.resume_first >> priority) & 1
            if first:
                _append_frame(world, link, RESUME, priority, now)
            if (line.pause_due >> priority) & 1:
                _append_frame(world, link, PAUSE, priority, now)
            if (line.resume_due >> priority) & 1 and not first:
                _append_frame(world, link, RESUME, priority, now)
        line.pause_due = 0
        line.resume_due = 0
        line.resume_first = 0
    advance(world, link, now)
    watch(world, link)


@kernel
def set_paused(world: World, link: int, priority: int, paused: bool, sent: int, now: int) -> None:  # noqa: FBT001
    """The far end pauses, or resumes, one priority of ``link``, by a frame that it began to send at ``sent``.

    A frame that comes at the instant in which the link is free for its next packet is in time if it set out
    before the packet that has just ended, as in ns-3, where what was scheduled first happens first.
    """
    line = world.links[link]
    in_time = line.free == now and line.head >= 0 and sent < _begin_of_last(world, link)
    advance(world, link, now - 1 if in_time else now)
    bit = 1 << priority
    if paused:
        if line.paused == 0:
            line.paused_since = now
        line.paused |= bit
        line.pauses += 1
    else:
        if line.waiting & ~line.paused == 0:  # it had nothing that it could send till now
            line.free = max(line.free, now)
        if line.paused == bit:
            line.paused_time += now - line.paused_since
        line.paused &= ~bit & 0xFF
        advance(world, link, now)
        watch(world, link)


@kernel
def _begin_of_last(world: World, link: int) -> int:
    """When the last packet on a link, which is still under way, began."""
    line = world.links[link]
    return int(line.free) - transmission_time(world, link, int(world.packets[line.tail].length))


@kernel
def cut(world: World, link: int, now: int) -> None:
    """The link fails: what is on it or waits for it is lost."""
    line = world.links[link]
    advance(world, link, now)
    line.up = 0
    for queue in range(PRIORITIES):
        entry = world.queues[link * PRIORITIES + queue]
        packet = entry.head
        while packet >= 0:
            following = world.packets[packet].next
            leave_buffer(world, link, packet, now)
            lose(world, link, packet)
            packet = following
        entry.head = -1
        entry.bytes = 0
    packet = line.head
    while packet >= 0:
        following = world.packets[packet].next
        lose(world, link, packet)
        packet = following
    line.head = -1
    line.waiting = 0
    line.queued = 0
    line.paused = 0  # a new link starts without pauses
    line.pause_due = 0
    line.resume_due = 0
    line.resume_first = 0


@kernel
def _begin_next(world: World, link: int) -> None:
    """Take the next packet out of the queues and send it when the link is free."""
    line = world.links[link]
    able = int(line.waiting & ~line.paused) & 0xFF
    queue = int(LOWEST_BIT[able])
    if queue != 0 and able & (able - 1):
        later = able & ~((2 << int(line.turn)) - 1)
        if later:
            queue = int(LOWEST_BIT[later])
    entry = world.queues[link * PRIORITIES + queue]
    packet = entry.head
    size = int(world.packets[packet].length)
    entry.head = world.packets[packet].next
    entry.bytes -= size
    line.queued -= size
    line.turn = queue
    if entry.head < 0:
        line.waiting &= ~(1 << queue) & 0xFF
    transmit(world, link, packet, line.free)


@kernel
def _append(world: World, link: int, packet: int, now: int) -> None:
    line = world.links[link]
    packets = world.packets
    priority = int(packets[packet].priority)
    if line.waiting & ~line.paused == 0:  # the first that can go
        line.free = max(line.free, now)
    entry = world.queues[link * PRIORITIES + priority]
    if entry.head < 0:
        entry.head = packet
        line.waiting |= 1 << priority
    else:
        packets[entry.tail].next = packet
    entry.tail = packet
    packets[packet].next = -1
    entry.bytes += packets[packet].length
    line.queued += packets[packet].length


@kernel
def _append_frame(world: World, link: int, kind: int, priority: int, now: int) -> None:
    """A PFC frame for ``priority`` joins the strict queue."""
    packet = take_packet(world)
    frame = world.packets[packet]
    frame.kind = kind
    frame.flow = -1
    frame.hop = priority
    frame.length = world.rules.pfc_size
    frame.payload = 0
    frame.account = -1
    frame.priority = 0
    frame.marked = 0
    _append(world, link, packet, now)


@kernel_part
def _mark(world: World, link: int, packet: int) -> None:
    line = world.links[link]
    if line.queued <= line.mark_min:
        return  # as a rule: no look at the single queue
    left = world.queues[link * PRIORITIES + int(world.packets[packet].priority)].bytes
    if left <= line.mark_min:
        return
    if left <= line.mark_max:
        share = line.mark_share * float(left - line.mark_min) / float(line.mark_max - line.mark_min)
        if draw(world) >= share:
            return
    world.packets[packet].marked = 1
    line.marks += 1
    world.clock.marks += 1


@kernel
def _write_telemetry(world: World, link: int, packet: int, now: int) -> None:
    """HPCC: the switch writes what it knows of the link into the packet."""
    entry = world.packets[packet]
    stop = world.stops[packet * INT_HOPS + entry.stops]
    stop.time = now
    stop.sent = world.links[link].sent_bytes
    stop.queued = world.links[link].queued
    stop.link = link
    entry.stops += 1


__all__ = [
    "advance",
    "cut",
    "enqueue",
    "lose",
    "on_service",
    "serve_at",
    "set_paused",
    "transmission_time",
    "transmit",
]
