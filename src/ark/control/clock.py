"""Stamps that respect cause and effect on hosts whose clocks disagree.

A stamp is wall time in nanoseconds, pushed forward where needed so that it is greater than every stamp its
host has given or accepted (a hybrid-logical clock whose counter lives in the lowest nanoseconds). So the
answer to an assignment always has the greater stamp, and two concurrent ones are ordered alike everywhere by
(stamp, host, flow). It reads no clock: wall time is passed in. It never times a lease; that is for the
monotonic clock.

Source: Kulkarni et al., "Logical Physical Clocks", OPODIS 2014, with the logical part folded into the time.
"""

from typing import Final

from ark.units import NS_PER_S

AHEAD_MAX_NS: Final = NS_PER_S
"""A peer's stamp further ahead of our wall clock than this is not merged: one host with a clock years ahead
would otherwise drag every other host's stamps along, for good."""


class HybridClock:
    """Gives stamps that grow strictly and follow all merged ones.

    Parameters
    ----------
    last:
        A stamp that the first one must exceed, for example the last one that was stored before a restart.
    """

    __slots__ = ("last",)

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def stamp(self, wall_ns: int) -> int:
        """A new stamp: the wall time, or one more than the last stamp where the clock has not got there."""
        self.last = max(self.last + 1, wall_ns)
        return self.last

    def merge(self, stamp: int, wall_ns: int) -> bool:
        """Follow a peer's stamp; False (and nothing merged) if it is more than a second ahead of
        ``wall_ns``."""
        if stamp - wall_ns > AHEAD_MAX_NS:
            return False
        self.last = max(self.last, stamp)
        return True
