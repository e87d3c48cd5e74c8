"""A receiver that keeps packets which come before their turn, as transports for sprayed packets do.

It notes them in a ring of bits, one for each packet beyond the first that is missing; what lies further ahead
than the ring reaches is dropped. Each packet is acknowledged by the first byte that is missing. A lost packet
is sent again after the sender's time-out, with all that follow it. The flow sends all of its bytes at once,
so that every packet but the last is full.
"""

import numpy as np

from ark.sim.compilation import kernel
from ark.sim.packet.layout import REORDER_WORDS, World

WORD_BITS = 64


@kernel
def keep(world: World, packet: int) -> None:
    """Take in a data packet, whatever its place."""
    entry = world.packets[packet]
    flow = int(entry.flow)
    receiver = world.flows[flow]
    payload = int(world.rules.payload)
    number = int(entry.sequence) // payload
    ahead = number - int(receiver.expected) // payload
    if ahead < 0 or ahead >= world.rules.reorder_span or _has(world, flow, number):
        return
    _flip(world, flow, number)
    while receiver.expected < receiver.length and _has(world, flow, int(receiver.expected) // payload):
        _flip(world, flow, int(receiver.expected) // payload)
        receiver.expected = min(receiver.expected + payload, receiver.length)


@kernel
def _has(world: World, flow: int, number: int) -> bool:
    word, bit = _place(flow, number)
    return bool((world.kept[word] >> bit) & np.uint64(1))


@kernel
def _place(flow: int, number: int) -> tuple[int, np.uint64]:
    slot = number % (REORDER_WORDS * WORD_BITS)
    return flow * REORDER_WORDS + slot // WORD_BITS, np.uint64(slot % WORD_BITS)


@kernel
def _flip(world: World, flow: int, number: int) -> None:
    word, bit = _place(flow, number)
    world.kept[word] ^= np.uint64(1) << bit
