"""``policy="paper"``: Algorithm 1, whose table R holds one claim a path for the whole fabric (rule 7).

A path is its number, which in two tiers is its spine; so a transfer between any two leaves takes the spine
from everybody. R is derived from the rows: the owner of a path is the smallest ``(t, host, flow)`` among
the rows that claim it. While messages come in order and losers are rehashed at once, that is Algorithm 1
line by line. Beyond that it repairs two faults of the printed form, both needed for replicas that heard the
same rows in different orders to name the same owner:

- Only its owner releases a claim. Printed, ``R <- R \\ {p}`` also runs at the completion of a fallback
  flow, and lets it clear somebody else's entry. :class:`LiteralClaims` does that, for simulators without
  lag.
- A claim that lost a race is remembered until its owner has moved it or given it up. Printed, it is forgotten
  where the winner was heard first, and stays for ever where the winner was heard and released before.

Departures: a loser that already sends gives up its claim at once and is rehashed at its segment's end; after
two lost races a transfer stays where it is and holds nothing.
"""

from bisect import insort
from collections.abc import Iterable

from ark.control.geometry import PathSets
from ark.control.policy import Pick, Request
from ark.control.rows import Assignment, Change, Row


class Claims:
    """The table R, released by owners only: who holds each path.

    ``taken`` has a set bit for each path that somebody holds, so the smallest free one costs a few
    operations on one integer, whatever K.
    """

    __slots__ = ("_claims", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self._claims: dict[int, list[Assignment]] = {}

    def owner(self, path: int) -> Assignment | None:
        """Who holds a path."""
        claims = self._claims.get(path)
        return claims[0] if claims else None

    def change(self, old: Row | None, new: Row | None) -> None:
        """Follow one row of the table; most changes are news of bytes, which claim nothing."""
        if old is not None and new is not None and _same_claim(old, new):
            return
        if old is not None and not old.fallback:
            for path in old.paths:
                claims = self._claims[path]
                claims.remove(old.assignment)
                if not claims:
                    del self._claims[path]
                    self.taken ^= 1 << path
        if new is not None and not new.fallback:
            for path in new.paths:
                insort(self._claims.setdefault(path, []), new.assignment)
                self.taken |= 1 << path

    def check(self, rows: Iterable[Row]) -> None:
        """Assert that the claims are those of ``rows``."""
        fresh = Claims()
        for row in rows:
            fresh.change(None, row)
        assert (self.taken, self._claims) == (fresh.taken, fresh._claims)


def _same_claim(old: Row, new: Row) -> bool:
    return old.stamp == new.stamp and old.fallback == new.fallback and old.paths == new.paths


class LiteralClaims:
    """The table R as printed: the completion of any transfer clears the path that it took.

    What it holds depends on the order of messages, so it can neither be replicated nor derived from rows;
    it is for simulators without lag.
    """

    __slots__ = ("_owners", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self._owners: dict[int, Assignment] = {}

    def owner(self, path: int) -> Assignment | None:
        """Who holds a path."""
        return self._owners.get(path)

    def change(self, old: Row | None, new: Row | None) -> None:
        """Follow one row of the table: RELEASE, RESERVE, or (the same assignment again) nothing."""
        if new is None:
            assert old is not None
            for path in old.paths:
                self._owners.pop(path, None)
                self.taken &= ~(1 << path)
        elif not new.fallback and (old is None or old.stamp != new.stamp):
            for path in new.paths:
                self._owners.setdefault(path, new.assignment)
                self.taken |= 1 << path

    def check(self, rows: Iterable[Row]) -> None:
        """Assert that every claim is that of a row."""
        live = {row.assignment for row in rows if not row.fallback}
        assert live.issuperset(self._owners.values())
        assert self.taken == sum(1 << path for path in self._owners)


class FirstFree:
    """The chooser of ``policy="paper"``."""

    yields = True
    """A transfer that loses a race while it sends gives up its claim: R names the winner."""

    def __init__(self, paths: PathSets, claims: Claims | LiteralClaims) -> None:
        self._paths = paths
        self._claims = claims

    def pick(self, request: Request) -> Pick:
        """OnFlowArrival, lines 14 to 18: the first free path, or a random one if all are taken."""
        ways = self._paths.open_to(request.source, request.target, request.mask)
        free = ways.mask & ~self._claims.taken
        if free:
            return Pick(((free & -free).bit_length() - 1,), fallback=False)
        return Pick((ways.usable[request.spread % len(ways.usable)],), fallback=True)

    def blind(self, request: Request) -> Pick:
        """A path by hash, which claims nothing."""
        usable = self._paths.open_to(request.source, request.target, request.mask).usable
        return Pick((usable[request.rotation % len(usable)],), fallback=True)

    def repick(self, row: Row, request: Request) -> Pick:  # noqa: ARG002 - a chooser's form
        """OnRemoteUpdate, line 37: OnFlowArrival once more. The winner's claim keeps the old path taken."""
        return self.pick(request)

    def resume(self, request: Request, paths: tuple[int, ...]) -> Pick:  # noqa: ARG002 - a chooser's form
        """A transfer that already runs claims its path again, unless somebody holds it by now."""
        return Pick(paths, fallback=any(self._claims.taken >> path & 1 for path in paths))

    def claims(self, change: Change) -> bool:
        """Whether a change is a RESERVE: a claim with an assignment that was not in the table."""
        old, new = change
        if new is None or new.fallback:
            return False
        return old is None or old.stamp != new.stamp

    def contests(self, own: Row, row: Row) -> bool:
        """Whether both claim one path."""
        return not own.fallback and not set(own.paths).isdisjoint(row.paths)
