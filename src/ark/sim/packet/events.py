"""What happens next: a heap of events, in front of lanes of them.

Events are in order of (time, order). ``order`` counts those scheduled, so what was scheduled first goes first
among equals, as in ns-3. An event is never taken out before its time: its owner remembers when the live one
is due, and ignores the others.

Most events are scheduled one of a few times ahead: a packet's time on a link, with or without the link's
delay. Time does not go back, so those of one such ``lead`` are in order as they come: they wait in a lane,
and only its first is in the binary heap. A lane is found by its lead; where another lead has it, the event
goes into the heap alone. So the heap stays small, and most events join and leave it near the top.

The next of the lane takes the place of the first event when that is handled. Where there is none, the place
is left empty (``clock.vacancy``) for the first event that the handler puts into the heap: one walk down the
heap instead of two.
"""

from typing import Final

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.layout import LANES, World

KIND_BITS: Final = 3
LANE_SHIFT: Final = 23
"""Bits of index and kind: a million flows."""
ORDER_SHIFT: Final = 28
"""... and of the lane. Leaves 35 bits for the order."""
SLOT_MASK: Final = (1 << LANE_SHIFT) - 1
KIND_MASK: Final = (1 << KIND_BITS) - 1
LANE_MASK: Final = LANES
NO_LANE: Final = 0


@kernel_part
def schedule(world: World, time: int, kind: int, index: int) -> None:
    """Let ``kind`` happen to ``index`` at ``time``."""
    clock = world.clock
    lead = time - clock.now
    number = 1 + lead % LANES
    lane = world.lanes[number]
    word = (clock.order << ORDER_SHIFT) | (index << KIND_BITS) | kind
    clock.order += 1
    clock.pending += 1
    if lane.busy and lane.lead == lead:
        _wait(world, number, time, word | (number << LANE_SHIFT))
        return
    if not lane.busy:
        lane.busy = 1
        lane.lead = lead
        word |= number << LANE_SHIFT
    if clock.vacancy:
        clock.vacancy = 0
        _sink(world, clock.heap, time, word)
    else:
        clock.heap += 1
        _rise(world, clock.heap - 1, time, word)


@kernel_part
def begin_first(world: World) -> None:
    """The first event is about to be handled: the next of its lane takes its place."""
    clock = world.clock
    clock.pending -= 1
    number = (world.what[0] >> LANE_SHIFT) & LANE_MASK
    lane = world.lanes[number]
    if number != NO_LANE and lane.head >= 0:
        place = int(lane.head)
        event = world.events[place]
        lane.head = event.next
        event.next = clock.events_free
        clock.events_free = place
        _sink(world, clock.heap, event.when, event.what)
    else:
        lane.busy = 0
        clock.vacancy = 1


@kernel_part
def end_first(world: World) -> None:
    """The event was handled: take it out, if nothing has taken its place."""
    clock = world.clock
    if clock.vacancy:
        clock.vacancy = 0
        clock.heap -= 1
        last = clock.heap
        if last > 0:
            _sink(world, last, world.when[last], world.what[last])


@kernel_part
def _wait(world: World, number: int, time: int, word: int) -> None:
    """Join a lane at its end."""
    clock = world.clock
    place = int(clock.events_free)
    if place >= 0:
        clock.events_free = world.events[place].next
    else:
        place = int(clock.events_made)
        clock.events_made += 1
    event = world.events[place]
    event.when = time
    event.what = word
    event.next = -1
    lane = world.lanes[number]
    if lane.head < 0:
        lane.head = place
    else:
        world.events[lane.tail].next = place
    lane.tail = place


@kernel
def _rise(world: World, position: int, time: int, word: int) -> None:
    when, what = world.when, world.what
    while position > 0:
        parent = (position - 1) >> 1
        if when[parent] < time or (when[parent] == time and what[parent] < word):
            break
        when[position] = when[parent]
        what[position] = what[parent]
        position = parent
    when[position] = time
    what[position] = word


@kernel
def _sink(world: World, count: int, time: int, word: int) -> None:
    when, what = world.when, world.what
    position = 0
    child = 1
    while child < count:
        other = child + 1
        if other < count and (
            when[other] < when[child] or (when[other] == when[child] and what[other] < what[child])
        ):
            child = other
        if time < when[child] or (time == when[child] and word < what[child]):
            break
        when[position] = when[child]
        what[position] = what[child]
        position = child
        child = 2 * position + 1
    when[position] = time
    what[position] = word
