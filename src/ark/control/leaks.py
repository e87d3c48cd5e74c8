"""Which of our rows are leaks: not renewed for so long that their client must have forgotten them (rule 14).

Only the owner can tell a leak from a transfer that waits its turn, since it knows all that its NIC has to
send. Peers take its word: each heartbeat renews all rows that it counts, and a row that the owner has no more
shows in the digest. A client that has died is no leak: its socket says so at once.
"""

from collections.abc import Mapping

from ark.control.geometry import PathSets
from ark.control.rows import LEAK_AGE_MIN_NS, Row, leak_age_ns
from ark.control.timers import Deadlines


class Leaks:
    """Ages of our rows.

    Most transfers are over before any row may be a leak, so a young row costs no timer: it stands in the
    order of renewal. What is older has a deadline by the backlog of its NIC, looked at again when it is due,
    as there may be more to send by then.

    Parameters
    ----------
    rows
        Our rows as last announced, by flow; the caller keeps them.
    line_rate_bps
        Rate of a NIC.
    """

    __slots__ = ("_backlogs", "_due", "_line_rate_bps", "_old", "_paths", "_rows", "_young")

    def __init__(self, rows: Mapping[int, Row], paths: PathSets, *, line_rate_bps: int) -> None:
        self._rows = rows
        self._paths = paths
        self._line_rate_bps = line_rate_bps
        self._backlogs: dict[int, int] = {}
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._due: Deadlines[int] = Deadlines()

    def renewed(self, before: Row | None, row: Row, now: int) -> None:
        """A row is announced, in place of ``before``."""
        if before is not None:
            self.gone(before)
        self._young[row.flow] = now
        self._backlogs[row.source] = self._backlogs.get(row.source, 0) + row.size_bytes

    def gone(self, row: Row) -> None:
        """A row is over."""
        if self._young.pop(row.flow, None) is None:
            del self._old[row.flow]
            self._due.cancel(row.flow)
        self._backlogs[row.source] -= row.size_bytes

    def due(self, now: int) -> list[int]:
        """The flows whose rows are leaks by now; the caller ends them."""
        young = self._young
        while young:
            flow, at = next(iter(young.items()))
            if at + LEAK_AGE_MIN_NS > now:
                break
            del young[flow]
            self._old[flow] = at
            self._due.set(flow, self._leaks_at(flow))
        leaked = []
        for flow in self._due.due(now):
            at = self._leaks_at(flow)
            self._due.set(flow, at)
            if at <= now:
                leaked.append(flow)
        return leaked

    def next_deadline(self) -> int | None:
        """When ``due`` has something to do."""
        old = self._due.next_deadline()
        if not self._young:
            return old
        young = next(iter(self._young.values())) + LEAK_AGE_MIN_NS
        return young if old is None else min(young, old)

    def check(self) -> None:
        """Assert that each row has an age and that the backlogs are those of the rows."""
        assert not self._young.keys() & self._old.keys()
        assert self._young.keys() | self._old.keys() == self._rows.keys()
        assert len(self._due) == len(self._old)
        assert all(flow in self._due for flow in self._old)
        times = list(self._young.values())
        assert times == sorted(times)
        backlogs = dict.fromkeys(self._backlogs, 0)
        for row in self._rows.values():
            backlogs[row.source] += row.size_bytes
        assert backlogs == self._backlogs

    def _leaks_at(self, flow: int) -> int:
        row = self._rows[flow]
        age_ns = leak_age_ns(
            row.state,
            backlog_bytes=self._backlogs[row.source],
            line_rate_bps=self._line_rate_bps,
            path_count=len(self._paths.between(row.source, row.target).links),
        )
        return self._old[flow] + age_ns
