"""The event heap: what happens next.

A binary heap of (time, order, what). ``order`` counts the events scheduled, so what was scheduled first goes
first among equals, as in ns-3. An event is never taken out before its time: its owner remembers when the live
one is due, and ignores the others.

The handler of an event nearly always schedules another, so the top is left in place (``clock.vacancy``)
while it is handled, and the first event scheduled takes its place: one walk down the heap instead of two.
"""

from typing import Final

from ark.sim.compilation import kernel
from ark.sim.packet.layout import World

KIND_BITS: Final = 3
ORDER_SHIFT: Final = 28
"""Bits of index and kind: 33 million flows. Leaves 35 bits for the order."""
SLOT_MASK: Final = (1 << ORDER_SHIFT) - 1
KIND_MASK: Final = (1 << KIND_BITS) - 1


@kernel
def schedule(world: World, time: int, kind: int, index: int) -> None:
    """Let ``kind`` happen to ``index`` at ``time``."""
    clock = world.clock
    word = (clock.order << ORDER_SHIFT) | (index << KIND_BITS) | kind
    clock.order += 1
    if clock.vacancy:
        clock.vacancy = 0
        _sink(world, clock.pending, time, word)
    else:
        clock.pending += 1
        _rise(world, clock.pending - 1, time, word)


@kernel
def remove_top(world: World) -> None:
    """Take out the event that was handled, if nothing has taken its place."""
    clock = world.clock
    if clock.vacancy:
        clock.vacancy = 0
        clock.pending -= 1
        last = clock.pending
        if last > 0:
            _sink(world, last, world.when[last], world.what[last])


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
