"""Swift at the sender (Kumar et al., SIGCOMM 2020): the window follows the delay of each ACK.

The target delay is a base, plus a part for each hop, plus a part that grows as the window shrinks (flow
scaling). Below it the window grows by ``swift_additive`` packets a round trip, above it shrinks in proportion
to the excess, at most once a round trip. A window below one packet becomes a pace.
"""

import math

from ark.sim.compilation import kernel
from ark.sim.packet.layout import World
from ark.sim.packet.pacing import pacing_gap


@kernel
def on_delay(world: World, flow: int, delay: int, acked: int, now: int) -> None:
    """An ACK for ``acked`` bytes came ``delay`` after its data was sent."""
    rules = world.rules
    sender = world.flows[flow]
    window = sender.reference
    sender.rounds = 0
    target = target_delay(world, flow)
    if delay < target:
        packets = float(acked) / float(rules.payload)
        if window >= 1.0:
            window += rules.swift_additive * packets / window
        else:
            window += rules.swift_additive * packets
    elif now - sender.decreased >= delay:
        excess = rules.swift_beta * float(delay - target) / float(delay)
        window *= max(1.0 - excess, 1.0 - rules.swift_cut_max)
        sender.decreased = now
    set_window(world, flow, window)


@kernel
def on_loss(world: World, flow: int, timed_out: bool, now: int) -> None:  # noqa: FBT001
    """A packet was lost: cut once a round trip, and fall to the smallest window after several time-outs."""
    rules = world.rules
    sender = world.flows[flow]
    if timed_out:
        sender.rounds += 1
        if sender.rounds >= 5:
            set_window(world, flow, rules.swift_window_min)
            return
    if now - sender.decreased >= sender.base_rtt:
        sender.decreased = now
        set_window(world, flow, sender.reference * (1.0 - rules.swift_cut_max))


@kernel
def target_delay(world: World, flow: int) -> int:
    """Delay, in ps, at which the window neither grows nor shrinks."""
    rules = world.rules
    sender = world.flows[flow]
    hops = 0
    while world.routes[sender.route + hops] >= 0:
        hops += 1
    scaling = rules.swift_scale / math.sqrt(sender.reference) + rules.swift_scale_offset
    scaling = min(max(scaling, 0.0), float(rules.swift_scale_max))
    return int(rules.swift_base + hops * rules.swift_hop + int(scaling))


@kernel
def set_window(world: World, flow: int, window: float) -> None:
    """Let ``window`` packets be in flight; below one packet, pace at that many a base round trip."""
    rules = world.rules
    sender = world.flows[flow]
    window = min(max(window, rules.swift_window_min), rules.swift_window_max)
    sender.reference = window
    sender.allowed = max(int(window * float(rules.payload)), 1)
    gap = pacing_gap(world, sender.line, rules.payload + rules.overhead)
    if window < 1.0:
        gap = max(gap, int(float(sender.base_rtt) / window))
    sender.gap = gap
