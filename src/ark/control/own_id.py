"""Whether our id is ours alone, and over which epochs of ours we jump.

Another host with our id (a copied configuration) must not steer beside us, nor we beside it. A peer that
knows a greater epoch of ours may remember a life whose disk was lost, and then we jump over it; if that
happens too often, it is another host that lives there.
"""

from typing import Final

from ark.control.epoch import EPOCH_MAX, jump_over
from ark.control.reports import Ignored, Reporter, Trouble
from ark.units import NS_PER_S

JUMP_NS: Final = NS_PER_S
"""Least time between two jumps over a greater epoch of ours: each has all our rows announced anew."""

JUMPS_MAX: Final = 4
"""Jumps in a life that a bad disk and clock explain. More: somebody lives under our id."""

CLONE_LEASES: Final = 10
"""How many leases long a datagram with our id keeps us from steering: a live clone keeps us from it for good,
one recorded datagram does not."""


class OwnId:
    """What is heard of our own id.

    Parameters
    ----------
    host
        Our id.
    address
        The only one that we send from; "" where any may be ours.
    lease_ns
        How long a lease lasts.
    reporter
        Tells of trouble, and counts it.
    """

    __slots__ = ("_address", "_cloned_until", "_host", "_jumped_at", "_jumps", "_lease_ns", "_reporter")

    def __init__(self, host: int, address: str, lease_ns: int, reporter: Reporter) -> None:
        self._host = host
        self._address = address
        self._lease_ns = lease_ns
        self._reporter = reporter
        self._cloned_until: int | None = None
        self._jumps = 0
        self._jumped_at: int | None = None

    @property
    def cloned(self) -> bool:
        """Whether somebody else seems to use our id."""
        return self._cloned_until is not None

    def hear(self, epoch: int, address: str, own: int, now: int) -> Ignored:
        """A datagram with our id, whose epoch is ``own``.

        Our own multicast comes back, also late from a former life; anything else means that there are two of
        us. A live clone at no other address (NATS) and of a smaller epoch sees ours, and stops on its side.
        """
        ours = not self._address or address == self._address
        if ours and epoch <= own:
            return Ignored.OWN_ECHO
        self._see_clone(f"epoch {epoch} from {address or 'nowhere'}, ours is {own}", now)
        return Ignored.OWN_ID

    def jump(self, own: int, known: int, peer: int, now: int) -> int | None:
        """The epoch to go on in, as a peer knows one of ours that may be greater; None to stay."""
        epoch = jump_over(own, known)
        if epoch is None:
            if known >= EPOCH_MAX:
                self._reporter.report(Trouble.LAST_EPOCH, peer, str(known), now)
            return None
        if self.cloned or (self._jumped_at is not None and now - self._jumped_at < JUMP_NS):
            return None
        if self._jumps >= JUMPS_MAX:
            self._see_clone(f"epoch {known} is used by another, after {JUMPS_MAX} jumps", now)
            return None
        self._reporter.counters.jumps += 1
        self._reporter.report(Trouble.NEW_EPOCH, peer, f"{own} to {epoch}", now)
        self._jumped_at = now
        self._jumps += 1
        return epoch

    def tick(self, now: int) -> None:
        """A clone that is no longer heard is forgotten."""
        if self._cloned_until is not None and now >= self._cloned_until:
            self._cloned_until = None

    def next_deadline(self) -> int | None:
        """When ``tick`` has something to do."""
        return self._cloned_until

    def _see_clone(self, detail: str, now: int) -> None:
        self._reporter.counters.clones += 1
        self._cloned_until = now + CLONE_LEASES * self._lease_ns
        self._reporter.report(Trouble.CLONE, self._host, detail, now)
