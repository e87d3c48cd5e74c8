"""All hosts of a simulation on one shared log of rows: the agent's deciders without N replicas (rule 20).

There is one table, in which a row appears ``lag_ns`` after its owner announced it. What a host has
announced since then is an overlay of its own, laid on the table while that host decides and taken off
again. So memory is the live rows and the changes of the last ``lag_ns``, not the number of hosts times the
number of rows; and a test shows every decision equal to that of N deciders with tables of their own.

Stamps are the simulated time. At one instant, rows become visible first, then holds end, then the caller's
inputs count.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from typing import Literal, NamedTuple

from ark.control.decider import Decider
from ark.control.decision import Counters, Decision, Event
from ark.control.geometry import Geometry
from ark.control.policy import Policy
from ark.control.rows import Row
from ark.control.view import Release, view
from ark.errors import ConfigError, LocalProtocolError


class Move(NamedTuple):
    """A transfer that is held back has other paths now."""

    host: int
    flow: int
    paths: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One change in the log: at this time this host set (or, with None, dropped) its row of a flow."""

    at_ns: int
    host: int
    flow: int
    row: Row | None


class Fleet:
    """The controllers of all hosts of a simulation.

    Parameters
    ----------
    geometry
        The network; a ``Fabric`` is one.
    hosts
        Hosts are ``range(hosts)``.
    policy
        ``"ark"``, or ``"paper"`` for Algorithm 1.
    lag_ns
        How much later than a host itself all others see what it does.
    hold_ns
        How long a transfer that lasts over 100 holds waits for news of simultaneous picks; 0 for never.
    release
        ``"any"`` is Algorithm 1 as printed, where the completion of any transfer frees its path; without lag
        only, because with lag what it does depends on the order of messages.
    stripes, moves, min_bytes
        See :class:`ark.control.policy.Policy`.
    line_rate_bps
        Rate of a NIC, by which durations are judged; None for the fastest link.
    seed
        Mixed into the order in which equal paths are tried, and nothing else.
    """

    def __init__(
        self,
        geometry: Geometry,
        *,
        hosts: int,
        policy: Literal["ark", "paper"],
        lag_ns: int = 0,
        hold_ns: int = 0,
        release: Release = "owner",
        stripes: int = 1,
        moves: bool = False,
        min_bytes: int = 0,
        line_rate_bps: int | None = None,
        seed: int = 0,
    ) -> None:
        if release == "any" and (lag_ns or policy != "paper"):
            raise ConfigError('release "any" is for policy "paper" without lag; use release "owner"')
        if lag_ns < 0:
            raise ConfigError(f"lag {lag_ns} ns: must not be negative")
        parameters = Policy(
            name=policy,
            line_rate_bps=max(geometry.link_rates_bps) if line_rate_bps is None else line_rate_bps,
            hold_ns=hold_ns,
            min_bytes=min_bytes,
            stripes=stripes,
            moves=moves,
        )
        knowledge = view(parameters, geometry, release=release, measured=False)
        self.counters = Counters()
        self._table = knowledge.table
        self._chooser = knowledge.chooser
        self._lag_ns = lag_ns
        self._now_ns = 0
        self._deciders = [
            Decider(host, 0, policy=parameters, view=knowledge, counters=self.counters, history=0, salt=seed)
            for host in range(hosts)
        ]
        self._log: deque[Entry] = deque()
        self._overlays: dict[int, dict[int, Entry]] = {}
        self._holds: list[tuple[int, int]] = []
        self._moves: list[Move] = []

    def __len__(self) -> int:
        """Changes that are not visible to all yet."""
        return len(self._log)

    def flow_arrived(
        self, now_ns: int, host: int, flow: int, source: int, target: int, size_bytes: int, spread: int
    ) -> Decision:
        """Choose paths for a transfer of ``host``; see :class:`ark.control.decision.Decision`.

        Of the answer, ``paths`` are path numbers (``()``: no preference), ``start_ns`` is when it may
        start, and ``kind`` how the paths were chosen. If ``start_ns`` is later than ``now_ns``, ask
        ``tick`` for moves up to and including that time before starting it. ``spread`` is a random number
        for the paper's fallback.
        """
        self._advance(now_ns)
        decider = self._look(host)
        decision = decider.flow_arrived(now_ns, now_ns, flow, source, target, size_bytes, spread=spread)
        if decision.start_ns > now_ns:
            heappush(self._holds, (decision.start_ns, host))
        self._publish(now_ns, host, decision)
        return decision

    def segment_ended(self, now_ns: int, host: int, flow: int, bytes_left: int) -> Decision | None:
        """Announce what a transfer still has to send; its new paths if it moves now, None if it stays."""
        self._advance(now_ns)
        decision = self._look(host).segment_ended(now_ns, now_ns, flow, bytes_left)
        self._publish(now_ns, host, decision)
        return decision if decision.event is Event.MOVED else None

    def flow_completed(self, now_ns: int, host: int, flow: int) -> None:
        """A transfer is over."""
        self._advance(now_ns)
        if self._lag_ns:
            self._table.begin()
        decision = self._deciders[host].flow_completed(now_ns, flow)
        self._publish(now_ns, host, decision)

    def next_deadline(self) -> int | None:
        """When ``tick`` may have something to say; None while no transfer is held back.

        Rows that become visible meanwhile are taken in late, but as of their own time.
        """
        if self._moves:
            return self._now_ns
        if not self._holds:
            return None
        due = self._holds[0][0]
        return min(due, self._log[0].at_ns + self._lag_ns) if self._log else due

    def tick(self, now_ns: int) -> list[Move]:
        """Let time pass; the transfers that are still held back and have other paths now."""
        self._advance(now_ns)
        moves, self._moves = self._moves, []
        return moves

    def rows(self) -> Iterable[Row]:
        """The live rows that are visible to all."""
        return iter(self._table)

    def check(self) -> None:
        """Assert the invariants of table, deciders and overlays."""
        self._table.check()
        for host, decider in enumerate(self._deciders):
            self._look(host)
            decider.check()
            self._table.check()
            self._unlook()
        assert all(entry.at_ns + self._lag_ns > self._now_ns for entry in self._log)
        overlaid = [entry for overlay in self._overlays.values() for entry in overlay.values()]
        assert set(map(id, overlaid)) <= set(map(id, self._log))

    def _advance(self, now_ns: int) -> None:
        """Take in, in the order of their times, what becomes visible and what holds end up to ``now_ns``."""
        if now_ns < self._now_ns:
            raise LocalProtocolError(f"time goes back from {self._now_ns} to {now_ns} ns")
        while self._log or self._holds:
            visible_ns = self._log[0].at_ns + self._lag_ns if self._log else now_ns + 1
            over_ns = self._holds[0][0] if self._holds else now_ns + 1
            if min(visible_ns, over_ns) > now_ns:
                break
            if visible_ns <= over_ns:
                self._show(visible_ns)
                continue
            host = heappop(self._holds)[1]
            decider = self._look(host)
            self._publish(over_ns, host, *decider.tick(over_ns))
        self._now_ns = now_ns

    def _show(self, now_ns: int) -> None:
        """Make the changes of one instant visible to all, and let those who lost a race decide again."""
        batch = []
        while self._log and self._log[0].at_ns + self._lag_ns == now_ns:
            batch.append(self._log.popleft())
        # Whoever chose without seeing a row did so after it, or at the same instant: in the batch or the log.
        unseen = [entry for entry in chain(batch, self._log) if entry.row is not None]
        for entry in batch:
            change = self._table.write((entry.host, entry.flow), entry.row)
            overlay = self._overlays.get(entry.host)
            if overlay is not None and overlay.get(entry.flow) is entry:
                del overlay[entry.flow]
                if not overlay:
                    del self._overlays[entry.host]
            if entry.row is None or not self._chooser.claims(change):
                continue
            for host in sorted({other.host for other in unseen if other.host != entry.host}):
                decider = self._deciders[host]
                if not decider.losers(change):
                    continue
                self._look(host)
                decisions = decider.row_changed(now_ns, now_ns, change)
                self._moves.extend(
                    Move(host, decision.flow, decision.paths)
                    for decision in decisions
                    if decision.event is Event.MOVED
                )
                self._publish(now_ns, host, *decisions)

    def _look(self, host: int) -> Decider:
        """Make the table what this host sees: its own changes at once."""
        if self._lag_ns:
            self._table.begin()
            overlay = self._overlays.get(host)
            if overlay is not None:
                for flow, entry in overlay.items():
                    self._table.write((host, flow), entry.row)
        return self._deciders[host]

    def _unlook(self) -> None:
        if self._lag_ns:
            self._table.rollback()

    def _publish(self, now_ns: int, host: int, *decisions: Decision) -> None:
        """Put what a host has announced into the log, for the others to see later, and into its overlay."""
        if not self._lag_ns:
            return
        self._table.rollback()
        for decision in decisions:
            announce = decision.announce
            if announce is not None:
                row = announce if isinstance(announce, Row) else None
                entry = Entry(now_ns, host, decision.flow, row)
                self._log.append(entry)
                self._overlays.setdefault(host, {})[decision.flow] = entry
