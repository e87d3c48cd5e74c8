"""HPCC at the sender (Li et al., SIGCOMM 2019): the rate follows the telemetry that ACKs bring back.

Each hop's utilisation is what it sends plus what waits there, as a share of its rate; the highest of them,
averaged over a round trip, is steered to ``utilisation_target``: multiplicatively if it is above or after
``stages_max`` additive rounds, else additively. The reference rate moves once a round trip, the rate itself
with every ACK. The window is the rate times the base round trip (a variable window in our terms).
"""

from ark.sim.compilation import kernel
from ark.sim.packet.layout import INT_HOPS, World
from ark.sim.packet.pacing import set_rate


@kernel
def on_telemetry(world: World, flow: int, packet: int) -> None:
    """An ACK brings the state of the hops that its data packet met."""
    rules = world.rules
    sender = world.flows[flow]
    if not sender.sampled or world.packets[packet].stops == 0:
        _remember(world, flow, packet)
        sender.sampled = 1
        sender.update_after = sender.next
        return
    _measure(world, flow, packet)
    _remember(world, flow, packet)
    additive = rules.hpcc_additive_share * sender.line
    load = sender.utilisation / rules.utilisation_target
    if load >= 1.0 or sender.rounds >= rules.stages_max:
        rate = sender.reference / load + additive
        rounds = 0
    else:
        rate = sender.reference + additive
        rounds = sender.rounds + 1
    rate = min(max(rate, rules.rate_min), sender.line)
    set_rate(world, flow, rate)
    if world.packets[packet].sequence > sender.update_after:  # a round trip is over
        sender.reference = rate
        sender.rounds = rounds
        sender.update_after = sender.next


@kernel
def _measure(world: World, flow: int, packet: int) -> None:
    """Average the load of the most loaded hop into ``utilisation``."""
    sender = world.flows[flow]
    highest = 0.0
    span = sender.base_rtt
    for hop in range(world.packets[packet].stops):
        old = world.seen[flow * INT_HOPS + hop]
        new = world.stops[packet * INT_HOPS + hop]
        if old.link != new.link or new.time <= old.time:
            continue
        rate = float(world.links[new.link].rate)
        elapsed = new.time - old.time
        sending = float(new.sent - old.sent) * 8e12 / float(elapsed) / rate
        in_flight = rate * float(sender.base_rtt) / 8e12
        utilisation = sending + float(min(new.queued, old.queued)) / in_flight
        if utilisation > highest:
            highest = utilisation
            span = elapsed
    if highest > 0.0:
        weight = float(min(span, sender.base_rtt)) / float(sender.base_rtt)
        sender.utilisation = (1.0 - weight) * sender.utilisation + weight * highest


@kernel
def _remember(world: World, flow: int, packet: int) -> None:
    for hop in range(world.packets[packet].stops):
        old = world.seen[flow * INT_HOPS + hop]
        new = world.stops[packet * INT_HOPS + hop]
        old.time = new.time
        old.sent = new.sent
        old.queued = new.queued
        old.link = new.link
