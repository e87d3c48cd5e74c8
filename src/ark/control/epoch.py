"""The number of a host's life: greater after every restart, whatever its disk and its clock say.

A host starts in the greater of (stored + 1) and its wall clock in nanoseconds. Where both lie (a new disk and
a clock set back), a peer that remembers a greater epoch says so and the newcomer jumps over it.
"""

from typing import Final

from ark.errors import LocalProtocolError

EPOCH_MAX: Final = 2**63 - 1
"""Largest epoch on the wire: wall time in nanoseconds reaches it in the year 2262."""


def first_epoch(stored: int | None, wall_ns: int) -> int:
    """The epoch of a host that starts now; ``stored`` is the last one it wrote down, None if it has none.

    Raises
    ------
    LocalProtocolError
        If no epoch is left below 2⁶³, or the wall clock is negative (before 1970).
    """
    if wall_ns < 0:
        raise LocalProtocolError(f"the wall clock reads {wall_ns} ns, before 1970; set this host's clock")
    epoch = wall_ns if stored is None else max(stored + 1, wall_ns)
    if epoch > EPOCH_MAX:
        raise LocalProtocolError(f"stored epoch {stored} or wall clock {wall_ns} ns leaves none below 2**63")
    return epoch


def jump_over(own: int, known: int) -> int | None:
    """The epoch to go on in when a peer knows ``known`` of us; None if it gives no reason or no room to jump.

    An epoch at the very end is not jumped over: a faulty clock (or a peer that lies) has used up the numbers,
    which only a person can mend, by another host id.
    """
    if known <= own or known >= EPOCH_MAX:
        return None
    return known + 1
