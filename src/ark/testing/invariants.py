"""What must hold in a cluster at every moment, judged from outside.

The judge reads every datagram as it is sent and so knows what each host has ever said of its rows. What any
replica holds is compared with that record, and never with another part of the same replica.
"""

from dataclasses import dataclass, field

from ark.control.controller import Controller
from ark.control.decision import Decision, Event
from ark.control.halves import whole_flow
from ark.control.policy import RACES_MAX
from ark.control.rows import Row
from ark.control.stream import InStream
from ark.control.wire import Datagram, Drop, Put, direct

Seen = tuple[int, int, int, int, int]
"""What a stream was like when it was looked at: epoch, through, newest, given up, digest."""


class Violation(AssertionError):  # noqa: N818 - it is what it is called
    """An invariant does not hold."""


@dataclass(slots=True)
class Log:
    """All that one host has said in one stream of one epoch: the row or the dropped flow of each seq."""

    said: list[Put | int] = field(default_factory=list)
    states: list[dict[int, int]] = field(default_factory=lambda: [{}])
    """Seq of each live row by flow, after each seq."""
    dropped: dict[int, int] = field(default_factory=dict)
    """Seq of the last DROP of each flow."""

    def add(self, seq: int, what: Put | int) -> None:
        """Take in what was said under ``seq``; it must be the next, or the same as before."""
        if seq <= len(self.said):
            ensure(self.said[seq - 1] == what, "one seq was used for two different messages")
            return
        ensure(seq == len(self.said) + 1, f"seq {seq} follows {len(self.said)}")
        self.said.append(what)
        state = dict(self.states[-1])
        if isinstance(what, Put):
            state[what.flow] = seq
        else:
            state.pop(what, None)
            self.dropped[what] = seq
        self.states.append(state)


def ensure(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that -O does not remove
    """Raise a violation that says ``what`` unless it holds."""
    if not holds:
        raise Violation(what)


class Judge:
    """Records what is said, and checks what is held."""

    __slots__ = ("_logs", "_moved")

    def __init__(self) -> None:
        self._logs: dict[tuple[int, int, str], Log] = {}
        self._moved: dict[tuple[int, int, int], int] = {}

    def hear(self, datagram: Datagram) -> None:
        """A host sends this to everybody."""
        log = self._logs.setdefault((datagram.host, datagram.epoch, datagram.subject), Log())
        seq = datagram.first_seq
        for message in datagram.messages:
            if isinstance(message, Put | Drop):
                log.add(seq, message if isinstance(message, Put) else message.flow)
                seq += 1

    def decided(self, host: int, epoch: int, decision: Decision) -> None:
        """A client gets this answer: a transfer moves a bounded number of times."""
        if decision.event is Event.MOVED:
            key = (host, epoch, decision.flow)
            self._moved[key] = self._moved.get(key, 0) + 1
            ensure(self._moved[key] <= RACES_MAX, f"flow {decision.flow} moved {self._moved[key]} times")

    def check_streams(self, controller: Controller) -> None:
        """Every row held was said by its owner and is not known to be over; none is missing."""
        for peer in controller.replica.peers.values():
            self.check_heard(controller, peer.host, {})

    def check_heard(self, controller: Controller, host: int, seen: dict[tuple[int, str], Seen]) -> None:
        """The same, for what is held of one host; a stream that is as in ``seen`` is not looked at again."""
        own = direct(controller.replica.config.host)
        peer = controller.replica.peers.get(host)
        if peer is None:
            return
        epoch = peer.epoch
        for subject, stream in peer.streams.items():
            if subject == own:
                continue
            now = (epoch, stream.through, stream.newest, stream.given_up, stream.digest)
            if seen.get((host, subject)) != now:
                log = self._logs.get((host, epoch, subject), Log())
                _check_stream(stream, log, f"stream {subject!r} of {host:x}")
                seen[host, subject] = now

    def check_table(self, controller: Controller, said: dict[tuple[int, int], Row]) -> set[int]:
        """Every row of another host in the table is exactly what that host said, and its lease runs.

        ``said`` keeps the rows that have been looked at: a row never changes. Returns their hosts.
        """
        replica = controller.replica
        own, hosts = replica.config.host, set()
        for row in controller.view.table:
            if row.host == own:
                continue
            hosts.add(row.host)
            key = (row.host, row.flow)
            if said.get(key) is not row:
                logs = (self._logs.get((row.host, row.epoch, subject)) for subject in replica.config.listens)
                ensure(
                    any(log is not None and self._is_said(row, log) for log in logs),
                    f"{row} was never said by its owner",
                )
                said[key] = row
        for host in hosts:
            peer = replica.peers.get(host)
            ensure(peer is not None and peer.proven, f"a row of {host:x}, which has proven nothing")
            ensure(replica.is_live(host), f"a row of {host:x}, whose lease is over")
        return hosts

    @staticmethod
    def _is_said(row: Row, log: Log) -> bool:
        if not 0 < row.seq <= len(log.said):
            return False
        put = log.said[row.seq - 1]
        return isinstance(put, Put) and (
            put.flow, put.state, put.paths, put.target, put.size_bytes, put.stamp, put.fallback, put.moves
        ) == (
            whole_flow(row.flow), row.state, row.paths, row.target, row.size_bytes, row.stamp, row.fallback,
            row.moves,
        )  # fmt: skip


def _check_stream(stream: InStream, log: Log, name: str) -> None:
    for flow, held in stream.rows.items():
        ensure(
            held.seq <= len(log.said) and log.said[held.seq - 1] == held.put,
            f"{name}: row {flow} is invented",
        )
        dropped = log.dropped.get(flow, 0)
        ensure(
            dropped < held.seq or dropped <= stream.given_up or not stream.covers(dropped),
            f"{name}: row {flow} is back after its DROP of seq {dropped}",
        )
    if stream.whole:
        held_rows = {flow: held.seq for flow, held in stream.rows.items()}
        ensure(stream.through < len(log.states), f"{name}: seq {stream.through} was never used")
        ensure(
            held_rows == log.states[stream.through], f"{name}: not the sender's rows at seq {stream.through}"
        )
