"""The controller of one host: what it decides and what it says, as one state machine without I/O.

A :class:`Controller` joins a ``Decider`` (which paths) and a ``Replica`` (what the others have reserved). The
shell tells it what happens, with both times, and does what the returned :class:`Output` says; then it arms
one timer for ``next_deadline``. The agent, the simulated cluster of ``ark.testing`` and the tests run this
class.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ark.control.clock import HybridClock
from ark.control.decider import HISTORY, Decider
from ark.control.decision import Decision, Event, Input, Kind
from ark.control.geometry import EVERY_PATH, Geometry
from ark.control.halves import HalvedGeometry
from ark.control.leaks import Leaks
from ark.control.outbox import Send
from ark.control.policy import Policy
from ark.control.randomness import Randomness
from ark.control.replica import Replica, ReplicaConfig
from ark.control.reports import Report, Trouble
from ark.control.rows import Drop, Row
from ark.control.stream import ROWS_MAX
from ark.control.view import View, view
from ark.control.wire import Keys
from ark.errors import ConfigError, LocalProtocolError

LET_GO_MAX: Final = ROWS_MAX
"""Running transfers remembered that are not managed (leaked, or arrived while another used our id, or beyond
what a host may announce). Full: the oldest is forgotten, and its end is then the end of an unknown
transfer."""


class Output(Struct, gc=False):
    """What the shell must do, in this order."""

    cause: int
    """Id of the input."""
    decisions: list[Decision] = []
    """Answers for clients (assign, start, move): pass them on first, nothing of the rest may delay them."""
    epoch: int | None = None
    """Write it down before anything is sent."""
    sends: list[Send] = []
    """Datagrams for the network."""
    reports: list[Report] = []
    """For the log and for people."""


class Occurrence(NamedTuple):
    """One remembered input: its id, when, what, and from where (the address of a datagram)."""

    cause: int
    now: int
    name: str
    source: str


class Consequence(NamedTuple):
    """What an input meant for one transfer; ``occurrence`` is None once it has left the ring."""

    occurrence: Occurrence | None
    outcome: Input


class Controller:
    """Decides for the transfers that one host sends, and keeps in touch with its peers.

    Every input takes ``now`` (monotonic ns, for timers and leases) and ``wall_ns`` (for stamps only), and has
    an id, its cause, that all its consequences carry. What a client does is answered and noted, and nothing
    more: what peers are told of it is due at once, by ``tick``, so that it can't delay the answer.

    Parameters
    ----------
    config
        Who we are and whom we hear.
    policy
        How paths are chosen.
    geometry
        The fabric.
    epoch
        Of this life, from ``epoch.first_epoch``.
    randomness
        For nonces, jitter, and the random path of a fallback.
    now
        Monotonic time of the start.
    peers_expected
        Number of other hosts, for telling when too few are heard; None for those configured.

    Raises
    ------
    ConfigError
        If the policy needs all rows and the subjects give only those of some leaves.
    """

    __slots__ = (
        "_announced", "_cause", "_draws", "_heard", "_leaks", "_let_go", "_randomness", "clock", "decider",
        "peers_expected", "recent", "replica", "view",
    )  # fmt: skip

    def __init__(
        self,
        config: ReplicaConfig,
        policy: Policy,
        geometry: Geometry,
        epoch: int,
        *,
        randomness: Randomness,
        now: int,
        peers_expected: int | None = None,
    ) -> None:
        if config.leaves and policy.name == "paper":
            raise ConfigError(
                'policy "paper" reserves a path for the whole fabric and must hear all rows: use one subject'
            )
        self.clock = HybridClock()
        self.replica = Replica(config, epoch, geometry, clock=self.clock, randomness=randomness, now=now)
        self.view: View = view(policy, HalvedGeometry(geometry) if config.leaves else geometry)
        self.decider = Decider(config.host, epoch, policy=policy, view=self.view)
        self.peers_expected = len(config.peers or ()) if peers_expected is None else peers_expected
        self.recent: deque[Occurrence] = deque(maxlen=HISTORY)
        self._randomness = randomness
        self._draws = policy.name == "paper"  # others take no random path
        self._cause = 0
        self._heard = 0
        self._announced: dict[int, Row] = {}
        self._leaks = Leaks(self._announced, self.view.paths, line_rate_bps=policy.line_rate_bps)
        self._let_go: dict[int, None] = {}
        self.decider.peers_changed(0, self.peers_expected)

    def flow_arrived(
        self,
        now: int,
        wall_ns: int,
        flow: int,
        source: int,
        target: int,
        size_bytes: int,
        *,
        ahead: bool = False,
        mask: int = EVERY_PATH,
    ) -> Output:
        """A transfer wants paths from attachment ``source`` to ``target``; see ``Decider.flow_arrived``.

        Raises
        ------
        LocalProtocolError
            If the flow is already here.
        """
        output = self._begin(now, "flow_arrived")
        if self._is_let_go(flow):
            self._leave_alone(output, flow, Event.ASSIGNED, now)
        else:
            stamp = self.clock.stamp(wall_ns)
            spread = self._randomness.getrandbits(32) if self._draws else 0
            decision = self.decider.flow_arrived(
                now, stamp, flow, source, target, size_bytes,
                spread=spread, ahead=ahead, mask=mask, cause=output.cause,
            )  # fmt: skip
            self._follow(output, decision, now)
        return output

    def flow_resumed(
        self,
        now: int,
        wall_ns: int,
        flow: int,
        source: int,
        target: int,
        size_bytes: int,
        paths: tuple[int, ...],
        *,
        mask: int = EVERY_PATH,
    ) -> Output:
        """A client tells us of a transfer that runs already, on ``paths``, since we have restarted (rule 15).

        Raises
        ------
        LocalProtocolError
            If the flow is already here, or the paths are not between these attachments.
        """
        output = self._begin(now, "flow_resumed")
        if self._is_let_go(flow):
            self._leave_alone(output, flow, Event.ASSIGNED, now)
        else:
            stamp = self.clock.stamp(wall_ns)
            decision = self.decider.flow_resumed(
                now, stamp, flow, source, target, size_bytes, paths, mask=mask, cause=output.cause
            )
            self._follow(output, decision, now)
        return output

    def flow_started(self, now: int, wall_ns: int, flow: int) -> Output:  # noqa: ARG002 - an input's form
        """A transfer that was reserved ahead begins.

        Raises
        ------
        LocalProtocolError
            If there is no such flow.
        """
        output = self._begin(now, "flow_started")
        if flow in self._let_go:
            self._leave_alone(output, flow, Event.STARTED, now)
        else:
            self._follow(output, self.decider.flow_started(now, flow, cause=output.cause), now)
        return output

    def segment_ended(
        self, now: int, wall_ns: int, flow: int, bytes_left: int, *, mask: int | None = None
    ) -> Output:
        """A segment of a transfer has been sent: what is left is announced, and it may move; see
        ``Decider.segment_ended``.

        Raises
        ------
        LocalProtocolError
            If there is no such flow, or it has not started.
        """
        output = self._begin(now, "segment_ended")
        if flow in self._let_go:
            self._leave_alone(output, flow, Event.RENEWED, now)
        else:
            stamp = self.clock.stamp(wall_ns)
            decision = self.decider.segment_ended(now, stamp, flow, bytes_left, mask=mask, cause=output.cause)
            self._follow(output, decision, now)
        return output

    def flow_completed(self, now: int, wall_ns: int, flow: int) -> Output:  # noqa: ARG002 - an input's form
        """A transfer is over, or was given up.

        Raises
        ------
        LocalProtocolError
            If there is no such flow.
        """
        output = self._begin(now, "flow_completed")
        if flow in self._let_go:
            del self._let_go[flow]
            self._leave_alone(output, flow, Event.RELEASED, now)
        else:
            self._follow(output, self.decider.flow_completed(now, flow, cause=output.cause), now)
        return output

    def message_received(self, now: int, wall_ns: int, data: bytes, address: str) -> Output:
        """A datagram came from ``address``; whatever is wrong with it is counted, never raised."""
        output = self._begin(now, "message_received", address)
        self.replica.receive(data, address, now, wall_ns)
        return self._settle(output, now, wall_ns)

    def reconfigure(
        self,
        now: int,
        wall_ns: int,
        *,
        keys: Keys,
        peers: Mapping[int, str] | None,
        peers_expected: int | None = None,
    ) -> Output:
        """Use other keys and hear other hosts from now on; arguments as of ``ReplicaConfig`` and ours.

        All else goes on: own rows, the streams and rows of hosts that stay, and what is under way to them.
        """
        output = self._begin(now, "reconfigure")
        self.replica.reconfigure(keys, peers)
        self.peers_expected = len(peers or ()) if peers_expected is None else peers_expected
        self._heard = self.replica.heard
        self.decider.peers_changed(self._heard, self.peers_expected)
        return self._settle(output, now, wall_ns)

    def tick(self, now: int, wall_ns: int) -> Output:
        """Time has passed: end holds, leases and leaks, send what is due."""
        output = self._begin(now, "tick")
        self.replica.tick(now)
        self._settle(output, now, wall_ns)
        for decision in self.decider.tick(now, cause=output.cause):
            self._follow(output, decision, now)
        for flow in self._leaks.due(now):
            self._leak(output, flow, now)
        return self._settle(output, now, wall_ns)

    def next_deadline(self) -> int:
        """When to call ``tick``, monotonic ns; there is always a next heartbeat."""
        deadlines = (self.decider.next_deadline(), self._leaks.next_deadline())
        return min([self.replica.next_deadline(), *(at for at in deadlines if at is not None)])

    def why(self, flow: int) -> list[Consequence]:
        """What the remembered inputs meant for one of our transfers, oldest first."""
        occurrences = {occurrence.cause: occurrence for occurrence in self.recent}
        return [Consequence(occurrences.get(entry.cause), entry) for entry in self.decider.why(flow)]

    def check(self) -> None:
        """Assert the invariants of all parts, and that what we announce is what we decided."""
        self.replica.check()
        self.decider.check()
        self.view.table.check()
        self._leaks.check()
        host = self.replica.config.host
        own = {row.flow: row for row in self.view.table if row.host == host}
        assert own == self._announced
        assert self.replica.epoch == self.decider.epoch
        assert len(self._let_go) <= LET_GO_MAX

    def _begin(self, now: int, name: str, source: str = "") -> Output:
        self._cause += 1
        self.recent.append(Occurrence(self._cause, now, name, source))
        return Output(self._cause)

    def _settle(self, output: Output, now: int, wall_ns: int) -> Output:
        """Let decisions follow from what became known, and be known to the others, until nothing more
        follows."""
        while True:
            heard = self.replica.take(now)
            output.sends += heard.sends
            output.reports += heard.reports
            if heard.epoch is not None:
                output.epoch = heard.epoch
                for decision in self.decider.renew(now, heard.epoch, cause=output.cause):
                    self._announce(decision.announce, now)
            for change in heard.changes:
                self._apply(output, change, now, wall_ns)
            if self.replica.heard != self._heard:
                self._heard = self.replica.heard
                self.decider.peers_changed(self._heard, self.peers_expected)
            if heard.epoch is None and not heard.changes:
                return output

    def _apply(self, output: Output, change: Row | Drop, now: int, wall_ns: int) -> None:
        """Bring a peer's row into the table, and decide again where that is called for."""
        table = self.view.table
        if isinstance(change, Drop):
            table.remove(change.host, change.flow)
            return
        applied = table.put(change)
        if applied is not None:
            stamp = self.clock.stamp(wall_ns)
            for decision in self.decider.row_changed(now, stamp, applied, cause=output.cause):
                self._follow(output, decision, now)

    def _follow(self, output: Output, decision: Decision, now: int) -> None:
        """Pass a decision on to the client, and tell the others of it."""
        output.decisions.append(decision)
        self._announce(decision.announce, now)

    def _announce(self, announce: Row | Drop | None, now: int) -> None:
        if isinstance(announce, Row):
            self._leaks.renewed(self._announced.get(announce.flow), announce, now)
            self._announced[announce.flow] = announce
            self.replica.announce(announce, now)
        elif announce is not None:
            row = self._announced.pop(announce.flow)
            self._leaks.gone(row)
            self.replica.withdraw(row, now)

    def _is_let_go(self, flow: int) -> bool:
        """Whether a transfer that arrives now must be left alone; it is then remembered."""
        if flow in self._let_go:
            raise LocalProtocolError(f"flow {flow} has arrived already")
        if not self.replica.cloned and len(self._announced) < ROWS_MAX:
            return False
        self._let(flow)
        return True

    def _let(self, flow: int) -> None:
        if len(self._let_go) >= LET_GO_MAX:
            del self._let_go[next(iter(self._let_go))]
        self._let_go[flow] = None

    def _leave_alone(self, output: Output, flow: int, event: Event, now: int) -> None:
        output.decisions.append(Decision(flow, event, Kind.UNMANAGED, (), now, None, output.cause))

    def _leak(self, output: Output, flow: int, now: int) -> None:
        """A transfer of ours was not renewed in time: its client seems to have forgotten it (rule 14)."""
        row = self._announced[flow]
        self.replica.counters.leaks += 1
        self.replica.report(Trouble.LEAK, row.host, f"flow {flow}, {row.size_bytes} bytes announced", now)
        decision = self.decider.flow_completed(now, flow, cause=output.cause)
        self._announce(decision.announce, now)
        self._let(flow)
        output.decisions.append(replace(decision, event=Event.EXPIRED, kind=Kind.UNMANAGED, paths=()))
