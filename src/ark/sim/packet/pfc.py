"""The shared buffer of a switch, and the PFC pauses that keep it from running over.

Each ingress port and priority has an account of the bytes that it holds. An account has a small reserve to
itself; beyond that it draws on the shared pool, up to a dynamic threshold, a share of what is free in the
pool (Choudhury and Hahne 1998). A packet beyond the threshold goes to the port's headroom, and the sender of
that priority is paused; it may go on when the headroom is empty and the account is below the threshold by
``hysteresis``. A packet that fits neither is dropped. The rules are those of HPCC's and SimAI's switch. With
``pool_first``, ConWeave's: beyond the threshold the sender is paused, but what still comes draws on the pool
while that has room, and only then on the headroom.

Accounts are debited when a packet leaves its queue, which the kernel works out only when it looks at the link
(``link``). In between an account shows too much, never too little, so "fits without a pause" is always right;
``switch`` brings all links of the switch up to date before it believes anything else.
"""

from ark.sim.compilation import kernel, kernel_part
from ark.sim.packet.events import schedule
from ark.sim.packet.layout import PRIORITIES, SERVICE, World


@kernel
def threshold(world: World, switch: int, link: int, more: int) -> int:
    """Bytes of the pool that an account of ingress port ``link`` may hold, with ``more`` in use than now."""
    pool = world.switches[switch]
    return int(world.links[link].threshold_share * float(max(pool.pool - pool.shared - more, 0)))


@kernel
def credit(world: World, switch: int, account: int, size: int) -> None:
    """Book ``size`` bytes on reserve and pool."""
    pool = world.switches[switch]
    entry = world.accounts[account]
    entry.bytes += size
    beyond = entry.bytes - pool.reserve
    if beyond > 0:
        pool.shared += min(size, beyond)


@kernel_part
def debit(world: World, switch: int, account: int, size: int) -> None:
    """Take ``size`` bytes off: from the headroom first, then from the pool, then from the reserve."""
    pool = world.switches[switch]
    entry = world.accounts[account]
    if entry.headroom > 0:
        from_headroom = min(entry.headroom, size)
        entry.headroom -= from_headroom
        size -= from_headroom
    beyond = entry.bytes - pool.reserve
    if beyond > 0:
        pool.shared -= min(size, beyond)
    entry.bytes -= size


@kernel_part
def release(world: World, switch: int, link: int, priority: int, size: int, now: int) -> None:
    """A packet that had come by ``link`` leaves its queue: debit it, and end the pause if there is room."""
    account = link * PRIORITIES + priority
    debit(world, switch, account, size)
    pool = world.switches[switch]
    if pool.pausing > 0:
        entry = world.accounts[account]
        used = max(entry.bytes - pool.reserve, 0)
        if (
            entry.paused != 0
            and entry.headroom == 0
            and (used == 0 or used + pool.hysteresis <= threshold(world, switch, link, 0))
        ):
            entry.paused = 0
            pool.pausing -= 1
            _order_frame(world, link, priority, now, resume=True)


@kernel
def pause_if_over(world: World, switch: int, link: int, priority: int, now: int) -> None:
    """Pause the sender at the other end of ``link`` if its account is over the threshold."""
    pool = world.switches[switch]
    entry = world.accounts[link * PRIORITIES + priority]
    used = max(entry.bytes - pool.reserve, 0)
    if entry.paused == 0 and (entry.headroom > 0 or used >= threshold(world, switch, link, 0)):
        entry.paused = 1
        pool.pausing += 1
        _order_frame(world, link, priority, now, resume=False)
        if pool.pausing == 1:  # from now on somebody waits for each packet that leaves
            for position in range(pool.first, pool.last):
                watch(world, world.egress[position])


@kernel
def watch(world: World, link: int) -> None:
    """See to it that ``link`` takes its next packet on time, if its switch has paused a sender."""
    line = world.links[link]
    if line.source_switch < 0 or world.switches[line.source_switch].pausing == 0:
        return
    if line.waiting & ~line.paused:
        serve_at(world, link, line.free)


@kernel
def serve_at(world: World, link: int, time: int) -> None:
    """Handle ``link`` at ``time`` at the latest."""
    line = world.links[link]
    if line.service < 0 or line.service > time:
        line.service = time
        schedule(world, time, SERVICE, link)


@kernel
def _order_frame(world: World, link: int, priority: int, now: int, resume: bool) -> None:  # noqa: FBT001
    """Have a PFC frame sent against the direction of ``link``, behind those of this instant.

    Pauses and their ends take turns, so of three in one instant the first is as good as all.
    """
    back = world.links[world.links[link].reverse]
    bit = 1 << priority
    rest = ~bit & 0xFF
    if resume:
        if back.resume_due & bit:  # behind it a pause: both are void
            back.pause_due &= rest
            back.resume_first &= rest
        back.resume_due |= bit
    else:
        if back.pause_due & bit:
            back.resume_due &= rest
        elif back.resume_due & bit:
            back.resume_first |= bit
        back.pause_due |= bit
    serve_at(world, world.links[link].reverse, now)
