"""What one host decides for its own transfers: the state machine that the agent and the simulators run.

A :class:`Decider` owns the rows of its host and nothing else. Its inputs are the life of a transfer
(``flow_arrived``, ``flow_started``, ``segment_ended``, ``flow_completed``, ``flow_resumed``), what became
known of others (``row_changed``, after the change is in the table), and time (``tick``). It answers with
:class:`Decision` values: what the client gets, and what is to be announced. Its own row is in the table
when a call returns. Who sends messages, and which of a peer's messages is the newest, is not its business.

::

    (none) ── arrived ──> PENDING ── hold over, or started ──> ACTIVE ── completed ──> gone
       │                     │  └── lost a race: new paths at once        └── lost a race: new paths at the
       │                     └── not started within 30 s: unmanaged           next segment end
       ├── arrived, no hold ─────────────────────────────────> ACTIVE
       └── arrived, nothing to choose or too short: unmanaged

Times are monotonic nanoseconds; ``stamp`` is the wall clock's (hybrid-logical) for an assignment that the
input may cause, and never decreases from call to call. ``cause`` is the caller's id of the input;
consequences keep it.
"""

from collections import deque
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from ark.control.choice import mix
from ark.control.decision import Counters, Decision, Event, Input, Kind, Transfer
from ark.control.geometry import EVERY_PATH
from ark.control.policy import RACES_MAX, Pick, Policy, Request
from ark.control.race import lost_to
from ark.control.rows import PENDING_MAX_NS, Change, Drop, Key, Row, State
from ark.control.view import View
from ark.errors import LocalProtocolError

HISTORY: Final = 1024
"""Inputs remembered for ``why``: minutes of a busy host, about 200 KB. Full: the oldest is forgotten."""


class Decider:
    """Decides for the transfers that one host sends.

    Parameters
    ----------
    host, epoch
        Written into our rows.
    policy
        Its parameters.
    view
        All live rows as this host knows them, made for ``policy`` by ``ark.control.view.view``.
    counters
        Where to count; None for counters of its own.
    history
        How many inputs are remembered.
    salt
        Changes the order in which this host tries equal paths.
    """

    __slots__ = (
        "_assigned", "_blind", "_chooser", "_deadlines", "_managed_bytes", "_paths", "_policy", "_salt",
        "_table", "_transfers", "counters", "epoch", "history", "host", "seq",
    )  # fmt: skip

    def __init__(
        self,
        host: int,
        epoch: int,
        *,
        policy: Policy,
        view: View,
        counters: Counters | None = None,
        history: int = HISTORY,
        salt: int = 0,
    ) -> None:
        self.host = host
        self._salt = mix(salt, host)
        self.epoch = epoch
        self.seq = 0
        self.counters = Counters() if counters is None else counters
        self.history: deque[Input] = deque(maxlen=history)
        self._policy = policy
        self._managed_bytes = policy.managed_bytes
        self._chooser = view.chooser
        self._paths = view.paths
        self._table = view.table
        self._blind = False
        self._transfers: dict[int, Transfer] = {}
        self._assigned: dict[int, Transfer] = {}
        self._deadlines: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._transfers)

    @property
    def blind(self) -> bool:
        """Whether so few peers are heard that paths are chosen by hash."""
        return self._blind

    def peers_changed(self, heard: int, peers: int) -> None:
        """So many of the peers have been heard; with fewer than half, choices are blind (rule 6)."""
        self._blind = 2 * heard < peers

    def flow_arrived(
        self,
        now_ns: int,
        stamp: int,
        flow: int,
        source: int,
        target: int,
        size_bytes: int,
        *,
        spread: int = 0,
        ahead: bool = False,
        mask: int = EVERY_PATH,
        cause: int = 0,
    ) -> Decision:
        """Choose paths for a transfer of ``size_bytes`` from attachment ``source`` to ``target``.

        ``spread`` is a random number for a random path. ``mask`` has a bit for each path that the transfer
        can be sent over: there may be no source port for some. ``ahead`` reserves for a transfer whose start
        ``flow_started`` will tell; otherwise it starts at ``start_ns`` of the answer.

        Raises
        ------
        LocalProtocolError
            If the flow is already here.
        """
        self._refuse_known(flow)
        self.counters.arrivals += 1
        request = Request(source, target, size_bytes, mix(self._salt, flow), spread, mask)
        if not self._is_managed(request):
            return self._leave_alone(now_ns, "flow_arrived", flow, request, cause)
        if self._blind:
            pick, kind = self._chooser.blind(request), Kind.BLIND
            self.counters.blind += 1
        else:
            pick = self._chooser.pick(request)
            kind = self._kind_of(pick)
        hold_ns = PENDING_MAX_NS if ahead else self._policy.hold_for(size_bytes)
        state = State.PENDING if hold_ns else State.ACTIVE
        start_ns = now_ns if ahead else now_ns + hold_ns
        transfer = Transfer(flow, request, kind, pick.paths, start_ns, None)
        self._transfers[flow] = transfer
        if hold_ns:
            heappush(self._deadlines, (now_ns + hold_ns, flow))
        self._assign(transfer, pick, stamp, state)
        return self._decide(now_ns, "flow_arrived", transfer, Event.ASSIGNED, transfer.row, cause)

    def flow_resumed(
        self,
        now_ns: int,
        stamp: int,
        flow: int,
        source: int,
        target: int,
        size_bytes: int,
        paths: tuple[int, ...],
        *,
        mask: int = EVERY_PATH,
        cause: int = 0,
    ) -> Decision:
        """Register a transfer that already runs on ``paths``, after a restart of ours (rule 15).

        Raises
        ------
        LocalProtocolError
            If the flow is already here, or the paths are not between these attachments.
        """
        self._refuse_known(flow)
        self.counters.arrivals += 1
        request = Request(source, target, size_bytes, mix(self._salt, flow), 0, mask)
        if not paths or not self._is_managed(request):
            return self._leave_alone(now_ns, "flow_resumed", flow, request, cause)
        if not set(paths).issubset(self._paths.between(source, target).usable) or len(set(paths)) < len(
            paths
        ):
            raise LocalProtocolError(f"flow {flow} can't run on paths {paths} from {source} to {target}")
        pick = self._chooser.resume(request, paths)
        transfer = Transfer(flow, request, self._kind_of(pick), paths, now_ns, None)
        self._transfers[flow] = transfer
        self._assign(transfer, pick, stamp, State.ACTIVE)
        return self._decide(now_ns, "flow_resumed", transfer, Event.ASSIGNED, transfer.row, cause)

    def flow_started(self, now_ns: int, flow: int, *, cause: int = 0) -> Decision:
        """A transfer that was reserved ahead begins: its paths, fixed until its next segment end.

        Raises
        ------
        LocalProtocolError
            If there is no such flow.
        """
        transfer = self._known(flow)
        row = transfer.row
        if row is None or row.state is State.ACTIVE:
            return self._decide(now_ns, "flow_started", transfer, Event.STARTED, None, cause)
        transfer.start_ns = now_ns
        row = self._announce(transfer, replace(row, state=State.ACTIVE))
        return self._decide(now_ns, "flow_started", transfer, Event.STARTED, row, cause)

    def segment_ended(
        self,
        now_ns: int,
        stamp: int,
        flow: int,
        bytes_left: int,
        *,
        mask: int | None = None,
        cause: int = 0,
    ) -> Decision:
        """Announce what a transfer still has to send, and move it if it lost a race or moves are on.

        ``mask`` has the paths that it can be sent over from now on; None for those of before. A transfer
        that has another one moves too; while there are none at all it stays where it is.

        Raises
        ------
        LocalProtocolError
            If there is no such flow, or it has not started.
        """
        transfer = self._known(flow)
        row = transfer.row
        if row is None:
            return self._decide(now_ns, "segment_ended", transfer, Event.RENEWED, None, cause)
        if row.state is State.PENDING:
            raise LocalProtocolError(f"flow {flow} ended a segment before it started")
        request = transfer.request
        transfer.request = request._replace(
            size_bytes=bytes_left, mask=request.mask if mask is None else mask
        )
        row = replace(row, size_bytes=bytes_left)
        lost = transfer.contested and transfer.races < RACES_MAX
        transfer.contested = False
        if lost or self._policy.moves or (mask is not None and self._is_stranded(transfer)):
            self._table.write(row.key, row)
            if self._reassign(transfer, row, stamp, lost=lost):
                return self._decide(now_ns, "segment_ended", transfer, Event.MOVED, transfer.row, cause)
        row = self._announce(transfer, row)
        return self._decide(now_ns, "segment_ended", transfer, Event.RENEWED, row, cause)

    def flow_completed(self, now_ns: int, flow: int, *, cause: int = 0) -> Decision:
        """Forget a transfer that is over, or was given up; its row is gone.

        Raises
        ------
        LocalProtocolError
            If there is no such flow.
        """
        transfer = self._known(flow)
        self.counters.completed += 1
        del self._transfers[flow]
        drop = self._withdraw(transfer)
        return self._decide(now_ns, "flow_completed", transfer, Event.RELEASED, drop, cause)

    def row_changed(self, now_ns: int, stamp: int, change: Change, *, cause: int = 0) -> list[Decision]:
        """Decide again for transfers of ours that lost a race against somebody's new row (rule 8).

        Call it after ``change`` is in the table. A pending transfer moves at once, an active one when its
        segment ends.
        """
        rival = change.new
        if rival is None:
            return []
        decisions = []
        for transfer in self.losers(change):
            self.counters.conflicts += 1
            row = transfer.row
            assert row is not None
            if row.state is State.PENDING and transfer.races < RACES_MAX:
                paths = transfer.paths
                if self._reassign(transfer, row, stamp, lost=True):
                    event = Event.RENEWED if transfer.paths == paths else Event.MOVED
                    decisions.append(
                        self._decide(now_ns, "row_changed", transfer, event, transfer.row, cause, rival.key)
                    )
                continue
            transfer.contested = True
            if self._chooser.yields:
                self.counters.yields += 1
                transfer.kind = Kind.FALLBACK
                row = self._announce(transfer, replace(row, fallback=True))
                decisions.append(
                    self._decide(now_ns, "row_changed", transfer, Event.RENEWED, row, cause, rival.key)
                )
        return decisions

    def losers(self, change: Change) -> list[Transfer]:
        """Which of our transfers a change of somebody's row beats; touches nothing."""
        rival = change.new
        if rival is None or rival.host == self.host or not self._chooser.claims(change):
            return []
        return lost_to(rival, self._assigned, self._chooser)

    def next_deadline(self) -> int | None:
        """When ``tick`` has something to do, ns on the monotonic clock; None for never."""
        while self._deadlines and not self._is_pending(self._deadlines[0][1]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def tick(self, now_ns: int, *, cause: int = 0) -> list[Decision]:
        """End the holds that are over, and the reservations that were never started (rule 9)."""
        decisions = []
        while (deadline := self.next_deadline()) is not None and deadline <= now_ns:
            transfer = self._transfers[heappop(self._deadlines)[1]]
            row = transfer.row
            assert row is not None
            if transfer.start_ns == deadline:
                row = self._announce(transfer, replace(row, state=State.ACTIVE))
                decisions.append(self._decide(now_ns, "tick", transfer, Event.STARTED, row, cause))
                continue
            self.counters.expired += 1
            drop = self._withdraw(transfer)
            transfer.kind, transfer.paths = Kind.UNMANAGED, ()
            decisions.append(self._decide(now_ns, "tick", transfer, Event.EXPIRED, drop, cause))
        return decisions

    def renew(self, now_ns: int, epoch: int, *, cause: int = 0) -> list[Decision]:
        """Announce all our rows again in a greater epoch (rule 13)."""
        if epoch <= self.epoch:
            raise LocalProtocolError(f"epoch {epoch} does not follow {self.epoch}")
        self.epoch, self.seq = epoch, 0
        decisions = []
        for transfer in self._assigned.values():
            row = transfer.row
            assert row is not None
            row = self._announce(transfer, replace(row, epoch=epoch))
            decisions.append(self._decide(now_ns, "renew", transfer, Event.RENEWED, row, cause))
        return decisions

    def why(self, flow: int) -> list[Input]:
        """The remembered inputs that concern one of our transfers, oldest first."""
        return [entry for entry in self.history if entry.flow == flow]

    def check(self) -> None:
        """Assert the invariants: our rows, the table and the order of assignments agree."""
        managed = {flow: transfer for flow, transfer in self._transfers.items() if transfer.row is not None}
        assert managed == self._assigned
        order = []
        for flow, transfer in self._assigned.items():
            row = transfer.row
            assert row is not None
            assert row == self._table.get(self.host, flow)
            assert (row.host, row.epoch, row.flow, row.paths) == (self.host, self.epoch, flow, transfer.paths)
            assert row.seq <= self.seq
            assert row.moves >= transfer.races <= RACES_MAX
            order.append(row.stamp)
        assert order == sorted(order)
        pending = {flow for flow in self._assigned if self._is_pending(flow)}
        assert pending <= {flow for _, flow in self._deadlines}

    def _is_managed(self, request: Request) -> bool:
        if request.size_bytes < self._managed_bytes or request.source == request.target or self._table.full:
            return False
        return self._paths.open_to(request.source, request.target, request.mask).managed

    def _leave_alone(self, now_ns: int, name: str, flow: int, request: Request, cause: int) -> Decision:
        self.counters.unmanaged += 1
        usable = self._paths.open_to(request.source, request.target, request.mask).usable
        paths = usable if len(usable) == 1 else ()
        transfer = Transfer(flow, request, Kind.UNMANAGED, paths, now_ns, None)
        self._transfers[flow] = transfer
        return self._decide(now_ns, name, transfer, Event.ASSIGNED, None, cause)

    def _kind_of(self, pick: Pick) -> Kind:
        if pick.fallback:
            self.counters.fallbacks += 1
            return Kind.FALLBACK
        self.counters.reservations += 1
        return Kind.STEERED

    def _assign(self, transfer: Transfer, pick: Pick, stamp: int, state: State, moves: int = 0) -> None:
        """Give a transfer paths under a new assignment, and make its row the newest of ours."""
        request = transfer.request
        transfer.paths = pick.paths
        self._assigned.pop(transfer.flow, None)
        self._assigned[transfer.flow] = transfer
        self.seq += 1
        transfer.row = row = Row(
            self.host, self.epoch, self.seq, transfer.flow, state, pick.paths, request.source, request.target,
            request.size_bytes, stamp, pick.fallback, moves,
        )  # fmt: skip
        self._table.write((self.host, transfer.flow), row)

    def _reassign(self, transfer: Transfer, row: Row, stamp: int, *, lost: bool) -> bool:
        """Choose again for a transfer whose ``row`` is in the table; False if it stays as it is."""
        request = transfer.request
        if row.moves or lost:
            request = request._replace(spread=mix(request.spread, row.moves + 1))
        if not self._paths.open_to(request.source, request.target, request.mask).usable:
            return False
        must = self._is_stranded(transfer)
        pick = self._chooser.pick(request) if must else self._chooser.repick(row, request)
        if pick is None:
            return False
        transfer.kind = self._kind_of(pick)
        transfer.races += lost
        transfer.contested = False
        self.counters.moves += pick.paths != transfer.paths
        self._assign(transfer, pick, stamp, row.state, row.moves + 1)
        return True

    def _announce(self, transfer: Transfer, row: Row) -> Row:
        """Say something new in the row of an assignment that stays; the row as announced."""
        self.seq += 1
        transfer.row = row = replace(row, seq=self.seq)
        self._table.write((self.host, transfer.flow), row)
        return row

    def _withdraw(self, transfer: Transfer) -> Drop | None:
        """End a transfer's row; None if it has none."""
        if transfer.row is None:
            return None
        self.seq += 1
        self._table.write((self.host, transfer.flow), None)
        del self._assigned[transfer.flow]
        transfer.row = None
        return Drop(self.host, self.epoch, self.seq, transfer.flow)

    def _decide(
        self,
        now_ns: int,
        name: str,
        transfer: Transfer,
        event: Event,
        announce: Row | Drop | None,
        cause: int,
        rival: Key | None = None,
    ) -> Decision:
        """The decision as an answer, after the input has been remembered with it."""
        flow, paths = transfer.flow, transfer.paths
        self.history.append(Input(cause, now_ns, name, flow, rival, event, paths))
        return Decision(flow, event, transfer.kind, paths, transfer.start_ns, announce, cause)

    def _known(self, flow: int) -> Transfer:
        transfer = self._transfers.get(flow)
        if transfer is None:
            raise LocalProtocolError(f"flow {flow} has not arrived here, or is over")
        return transfer

    def _refuse_known(self, flow: int) -> None:
        if flow in self._transfers:
            raise LocalProtocolError(f"flow {flow} has arrived already")

    def _is_stranded(self, transfer: Transfer) -> bool:
        """Whether nothing leads over one of its paths any more."""
        request = transfer.request
        mask = self._paths.open_to(request.source, request.target, request.mask).mask
        return any(not mask >> path & 1 for path in transfer.paths)

    def _is_pending(self, flow: int) -> bool:
        transfer = self._transfers.get(flow)
        return transfer is not None and transfer.row is not None and transfer.row.state is State.PENDING
