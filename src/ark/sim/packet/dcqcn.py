"""DCQCN at the sender (Zhu et al., SIGCOMM 2015), in the form that Mellanox NICs and ns-3 give it.

::

    line rate ── first CNP ──> congested: alpha = 1, a look every ``cut_interval``
    look, with a CNP since the last one: target = rate, rate = rate (1 - alpha / 2), stage = 0, timer restarts
    timer (and byte counter, if any):    stage < F: rate = (rate + target) / 2            fast recovery
                                         stage = F: target += additive, then the same     additive increase
                                         stage > F: target += hyper, then the same        hyper increase
    alpha, every ``alpha_interval``:     alpha = (1 - g) alpha + g (a CNP came in the interval ? 1 : 0)

Departures, each a constant: where ``clamp_target`` is 0, a cut that follows a cut keeps the target; with
``cut_interval`` 0 each CNP cuts at once (the paper: the receiver spaces CNPs), and then steps alpha.

Alpha is not stepped by events: between CNPs its steps are powers, worked out when it is next used. Looks are
events only when a CNP has come since the last one; without one they would do nothing.
"""

from ark.sim.compilation import kernel
from ark.sim.packet.events import schedule
from ark.sim.packet.layout import CUT, INCREASE, World
from ark.sim.packet.pacing import set_rate


@kernel
def on_cnp(world: World, flow: int, now: int) -> None:
    """The receiver says that packets are being marked."""
    rules = world.rules
    sender = world.flows[flow]
    if not sender.congested:
        sender.congested = 1
        sender.alpha = 1.0
        sender.alpha_due = now + rules.alpha_interval
        sender.alpha_cnp = 0
        sender.cut_origin = now + rules.look_offset
        set_rate(world, flow, sender.rate * rules.first_cnp_share)
        sender.target = sender.rate
    else:
        step_alpha(world, flow, now)
        sender.alpha_cnp = 1
    if rules.cut_interval == 0:
        _cut(world, flow, now)
        sender.alpha += rules.gain * (1.0 - sender.alpha)
        sender.alpha_cnp = 0
        sender.alpha_due = now + rules.alpha_interval
        return
    sender.cut_cnp = 1
    if not sender.cut_armed:
        sender.cut_armed = 1
        looks = max((now - sender.cut_origin) // rules.cut_interval + 1, 1)
        schedule(world, sender.cut_origin + looks * rules.cut_interval, CUT, flow)


@kernel
def on_look(world: World, flow: int, now: int) -> None:
    """The time of a look at whether CNPs have come."""
    sender = world.flows[flow]
    sender.cut_armed = 0
    if sender.active and sender.cut_cnp:
        sender.cut_cnp = 0
        step_alpha(world, flow, now)
        _cut(world, flow, now)


@kernel
def on_increase_timer(world: World, flow: int, now: int) -> None:
    """The increase timer is due, unless a cut has restarted it since."""
    rules = world.rules
    sender = world.flows[flow]
    if not sender.active:
        sender.increase_armed = 0
        return
    if sender.increase_due <= now:
        _increase(world, flow, sender.stage, sender.byte_stage if rules.increase_bytes else sender.stage)
        sender.stage += 1
        sender.increase_due = now + rules.increase_interval
    schedule(world, sender.increase_due, INCREASE, flow)


@kernel
def count_bytes(world: World, flow: int, size: int) -> None:
    """The byte counter: raise the rate after each ``increase_bytes`` sent since the last cut."""
    rules = world.rules
    sender = world.flows[flow]
    if not sender.congested:
        return
    sender.byte_count += size
    if sender.byte_count >= rules.increase_bytes:
        sender.byte_count -= rules.increase_bytes
        _increase(world, flow, sender.stage, sender.byte_stage)
        sender.byte_stage += 1


@kernel
def step_alpha(world: World, flow: int, now: int) -> None:
    """Bring alpha up to ``now``: the first step knows of a CNP, those after it saw none."""
    rules = world.rules
    sender = world.flows[flow]
    if now < sender.alpha_due:
        return
    steps = (now - sender.alpha_due) // rules.alpha_interval + 1
    alpha = (1.0 - rules.gain) * sender.alpha
    if sender.alpha_cnp:
        alpha += rules.gain
    if steps > 1:
        alpha *= (1.0 - rules.gain) ** float(steps - 1)
    sender.alpha = alpha
    sender.alpha_cnp = 0
    sender.alpha_due += steps * rules.alpha_interval


@kernel
def _cut(world: World, flow: int, now: int) -> None:
    rules = world.rules
    sender = world.flows[flow]
    if rules.clamp_target or sender.stage > 0 or sender.byte_stage > 0:
        sender.target = sender.rate
    kept = 1.0 - min(sender.alpha / 2.0, rules.cut_max)
    set_rate(world, flow, max(rules.rate_min, sender.rate * kept))
    sender.stage = 0
    sender.byte_stage = 0
    sender.byte_count = 0
    sender.increase_due = now + rules.increase_interval
    if not sender.increase_armed:
        sender.increase_armed = 1
        schedule(world, sender.increase_due, INCREASE, flow)


@kernel
def _increase(world: World, flow: int, stage: int, byte_stage: int) -> None:
    rules = world.rules
    sender = world.flows[flow]
    if min(stage, byte_stage) > rules.recovery_stages:
        sender.target += rules.hyper + rules.hyper_share * sender.line
    elif max(stage, byte_stage) >= rules.recovery_stages:
        sender.target += rules.additive + rules.additive_share * sender.line
    sender.target = min(sender.target, sender.line)
    set_rate(world, flow, (sender.rate + sender.target) / 2.0)
