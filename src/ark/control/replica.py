"""The replicated table of one host: datagrams and ticks in, datagrams and changes of rows out.

A :class:`Replica` keeps our own rows known to the others and the others' rows known to us: membership, replay
windows, epochs, leases, first contact, snapshots. It decides nothing about paths. After any inputs ``take``
returns what follows from them.

What one datagram goes through::

    size, MAC, form ── wire.open_datagram
    fabric ─ own id ─ subject ─ member, address ─ rate ─ epoch ─ replay window     each failure is counted
    lease renewed ── first contact: a nonce is sent, rows are kept but do not count until it is answered
    messages

Nobody relays another's rows, so whatever a peer sends can change its own rows only: every row gets its host
from the signed envelope.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ark.control.clock import HybridClock
from ark.control.geometry import Geometry
from ark.control.histogram import Times, decades_ns
from ark.control.lease import HEARTBEAT_NS, LEASE_NS, Leases
from ark.control.outbox import BATCH_NS, Outbox, Send
from ark.control.own_id import OwnId
from ark.control.peer import Peer
from ark.control.peer_rows import PeerRows
from ark.control.randomness import Randomness
from ark.control.repair import Asks, Serving
from ark.control.reports import Ignored, ReplicaCounters, Report, Reporter, Trouble
from ark.control.rows import Drop, Row
from ark.control.stream import InStream
from ark.control.wire import (
    ALL,
    Answer,
    Ask,
    Beat,
    Challenge,
    Chunk,
    Datagram,
    Keys,
    Message,
    Newer,
    Put,
    RefusedDatagram,
    direct,
    down,
    open_datagram,
    up,
)
from ark.control.wire import Drop as DropMessage
from ark.errors import PeerProtocolError

PEERS_MAX: Final = 16_384
"""Hosts known at once, where anybody with the key may join. Full: the one silent for longest is forgotten (it
then counts as never heard), or the newcomer ignored while none is silent."""

CHALLENGE_NS: Final = 50_000_000
"""Least time between two challenges to one host: repeated until answered, with each of its datagrams."""

NOTICE_NS: Final = 100_000_000
"""Least time between two notices of a greater epoch to one host."""

LAG_BOUNDS_NS: Final = decades_ns(100_000, 5)
"""Classes of lags: 100 µs to 5 s."""


class ReplicaConfig(Struct, frozen=True, kw_only=True):
    """Who we are, whom we hear, and the times.

    Parameters
    ----------
    host
        Our 64-bit id (``wire.host_id`` of our name).
    address
        Our own control address as the transport writes it; "" where it has none (NATS).
    fabric
        Digest of the fabric file, 16 bytes.
    keys
        The cluster's.
    peers
        Control address of each other host, or None where anybody with the key may join (multicast, NATS).
        "" binds a host to no address.
    leaves
        Whether rows go to ``up.<leaf>`` and ``down.<leaf>`` instead of one subject for all.
    home
        Subjects in which we send heartbeats from the start.
    listens
        Subjects that we hear.
    """

    host: int
    address: str
    fabric: bytes
    keys: Keys
    peers: Mapping[int, str] | None = None
    leaves: bool = False
    home: tuple[str, ...] = (ALL,)
    listens: frozenset[str] = frozenset((ALL,))
    lease_ns: int = LEASE_NS
    heartbeat_ns: int = HEARTBEAT_NS
    batch_ns: int = BATCH_NS


class Heard(NamedTuple):
    """What follows from some inputs. Act in this order: the epoch is stored before anything is sent in it."""

    epoch: int | None
    """Our new epoch: store it, then announce all our rows again."""
    changes: list[Row | Drop]
    """Rows of others that are new, different or gone, for the table; by half where subjects are by leaf."""
    sends: list[Send]
    reports: list[Report]


class Replica:
    """Our share of the replicated table.

    Parameters
    ----------
    config
        Who we are.
    epoch
        Of this life, from ``epoch.first_epoch``.
    geometry
        The fabric; rows that do not fit it are kept but never count.
    clock
        Merges the stamps of others; the caller's stamps come from the same one.
    randomness
        For nonces and jitter.
    now
        Monotonic time.

    Attributes
    ----------
    lags
        How long after its assignment each new row of a peer came; the difference of both clocks is in it.
    """

    __slots__ = (
        "_asks", "_beat_at", "_direct", "_leases", "_new_epoch", "_own_id", "_peers", "_randomness",
        "_reporter", "_rows", "_serving", "_silent", "clock", "config", "counters", "heard", "lags", "outbox",
    )  # fmt: skip

    def __init__(
        self,
        config: ReplicaConfig,
        epoch: int,
        geometry: Geometry,
        *,
        clock: HybridClock,
        randomness: Randomness,
        now: int,
    ) -> None:
        self.config = config
        self.clock = clock
        self.counters = ReplicaCounters()
        self.lags = Times(LAG_BOUNDS_NS)
        self.outbox = Outbox(
            config.host, epoch, config.fabric, config.keys.signing, config.home,
            batch_ns=config.batch_ns, idle_ns=2 * config.lease_ns,
        )  # fmt: skip
        self.heard = 0
        self._randomness = randomness
        self._direct = direct(config.host)
        self._peers: dict[int, Peer] = {}
        self._silent: dict[int, None] = {}
        self._leases = Leases(config.lease_ns)
        self._rows = PeerRows(geometry, leaves=config.leaves)
        self._asks = Asks(randomness, self.counters)
        self._serving = Serving(self.counters)
        self._reporter = Reporter(self.counters)
        self._own_id = OwnId(config.host, config.address, config.lease_ns, self._reporter)
        self._beat_at = now + int(config.heartbeat_ns * randomness.random())
        self._new_epoch: int | None = None

    @property
    def epoch(self) -> int:
        """The epoch that we use."""
        return self.outbox.epoch

    @property
    def cloned(self) -> bool:
        """Whether somebody else uses our id: then nothing may be steered."""
        return self._own_id.cloned

    @property
    def peers(self) -> Mapping[int, Peer]:
        """All other hosts that are known, for status and tests."""
        return self._peers

    def is_live(self, host: int) -> bool:
        """Whether a host's lease runs."""
        return host in self._leases

    def reconfigure(self, keys: Keys, peers: Mapping[int, str] | None) -> None:
        """Use other keys (one step of a rotation), and hear other hosts.

        What is known of those who are no members any more is forgotten at once.
        """
        self.outbox.key = keys.signing
        self.config = replace(self.config, keys=keys, peers=peers)
        if peers is not None:
            for host in [host for host in self._peers if host not in peers]:
                self._forget(self._peers[host])

    def listen(self, subject: str) -> None:
        """Hear one more subject from now on."""
        self.config = replace(self.config, listens=self.config.listens | {subject})

    def announce(self, row: Row, now: int) -> None:
        """Tell the others of a row of ours, new or changed."""
        put = Put(
            row.flow, row.state, row.paths, row.source, row.target, row.size_bytes, row.stamp, row.fallback,
            row.moves,
        )  # fmt: skip
        for subject in self._subjects(row):
            self.outbox.put(subject, put, now)

    def withdraw(self, row: Row, now: int) -> None:
        """Tell the others that a row of ours is gone."""
        for subject in self._subjects(row):
            self.outbox.drop(subject, row.flow, now)

    def receive(self, data: bytes, address: str, now: int, wall_ns: int) -> None:
        """Take in one datagram; whatever is wrong with it is counted."""
        try:
            datagram = open_datagram(data, self.config.keys)
        except RefusedDatagram as error:
            self.counters.refused[error.refusal] += 1
            return
        ignored = self._take_in(datagram, address, now, wall_ns)
        if ignored is not None:
            self.counters.ignored[ignored] += 1

    def tick(self, now: int) -> None:
        """Do what is due: leases, heartbeats, requests, chunks."""
        for host in self._leases.expired(now):
            self._expire(self._peers[host])
        self._own_id.tick(now)
        for name in self._asks.due(now):
            peer = self._peers[name[0]]
            ask = self._asks.request(name, peer.streams[name[1]], now)
            if ask is not None:
                self.outbox.direct(peer.host, peer.address, ask)
        self._serving.tick(self.outbox, now)
        if now >= self._beat_at:
            self.outbox.beat(now)
            self._beat_at = now + self.config.heartbeat_ns

    def take(self, now: int) -> Heard:
        """What follows from the inputs since the last call."""
        self.outbox.tick(now)
        epoch, self._new_epoch = self._new_epoch, None
        return Heard(epoch, self._rows.take(), self.outbox.take(), self._reporter.take())

    def report(self, trouble: Trouble, host: int, detail: str, now: int) -> None:
        """Add a report of the caller's to those of the replica."""
        self._reporter.report(trouble, host, detail, now)

    def next_deadline(self) -> int:
        """When ``tick`` and ``take`` have something to do; there is always a next heartbeat."""
        deadlines = (
            self._leases.next_deadline(), self._own_id.next_deadline(), self._asks.next_deadline(),
            self._serving.next_deadline(), self.outbox.next_deadline(),
        )  # fmt: skip
        return min([self._beat_at, *(deadline for deadline in deadlines if deadline is not None)])

    def check(self) -> None:
        """Assert the invariants of all parts, and those between them."""
        self.outbox.check()
        self._leases.check()
        self._asks.check()
        self._serving.check()
        for peer in self._peers.values():
            peer.check()
        self._rows.check(self._peers)
        assert len(self._peers) <= PEERS_MAX
        assert self._silent.keys() | set(self._leases) == self._peers.keys()
        assert len(self._silent) + len(self._leases) == len(self._peers)
        assert self.heard == sum(self._peers[host].proven for host in self._leases)
        for host in self._silent:
            assert not any(stream.rows for stream in self._peers[host].streams.values())
        for host, peer in self._peers.items():
            assert host == peer.host != self.config.host
            assert peer.streams.keys() <= self.config.listens | {self._direct}

    def _subjects(self, row: Row) -> tuple[str, ...]:
        return (up(row.source), down(row.target)) if self.config.leaves else (ALL,)

    def _take_in(self, datagram: Datagram, address: str, now: int, wall_ns: int) -> Ignored | None:
        """What one authentic datagram does; the reason if it is ignored."""
        subject = datagram.subject
        refusal = self._refuse(datagram, address, now)
        if refusal is not None:
            return refusal
        peer = self._peers.get(datagram.host) or self._meet(datagram.host, datagram.epoch, address)
        if peer is None:
            return Ignored.TOO_MANY_PEERS
        refusal = self._refuse_from(peer, datagram, address, now)
        if refusal is not None:
            return refusal
        self.counters.received += 1
        peer.address = address
        self._renew(peer, now)
        if subject == self._direct:
            for message in datagram.messages:
                self._hear_direct(peer, message, now)
        else:
            self._hear_stream(peer, subject, datagram, now, wall_ns)
        if not peer.proven and (peer.challenged_at is None or now - peer.challenged_at >= CHALLENGE_NS):
            peer.challenged_at = now
            self.outbox.direct(peer.host, address, Challenge(peer.nonce))
        return None

    def _refuse(self, datagram: Datagram, address: str, now: int) -> Ignored | None:
        """Why a datagram is none of our business, whatever its sender's state."""
        if datagram.fabric != self.config.fabric:
            self._reporter.report(Trouble.OTHER_FABRIC, datagram.host, datagram.fabric.hex(), now)
            return Ignored.OTHER_FABRIC
        if datagram.host == self.config.host:
            return self._own_id.hear(datagram.epoch, address, self.epoch, now)
        if datagram.subject != self._direct and datagram.subject not in self.config.listens:
            return Ignored.WRONG_SUBJECT
        return self._refuse_member(datagram.host, address, now)

    def _refuse_from(self, peer: Peer, datagram: Datagram, address: str, now: int) -> Ignored | None:
        """Why a datagram of this peer is ignored: too many, of a former life, or seen before."""
        if not peer.allow(now):
            return Ignored.TOO_FAST
        if datagram.epoch < peer.epoch:
            self._tell_epoch(peer, address, now)
            return Ignored.OLD_EPOCH
        if datagram.epoch > peer.epoch:
            self._begin_epoch(peer, datagram.epoch)
        if not peer.stream(datagram.subject).window.accept(datagram.number):
            return Ignored.REPLAYED
        return None

    def _refuse_member(self, host: int, address: str, now: int) -> Ignored | None:
        """Whether a host may speak to us, and from there."""
        members = self.config.peers
        if members is None:
            return None
        bound = members.get(host)
        if bound is None:
            return Ignored.UNKNOWN_HOST
        if bound and bound != address:
            self._reporter.report(Trouble.WRONG_ADDRESS, host, f"{address}, configured is {bound}", now)
            return Ignored.WRONG_ADDRESS
        return None

    def _meet(self, host: int, epoch: int, address: str) -> Peer | None:
        """A host that was never heard before; None if there is no room for it."""
        if len(self._peers) >= PEERS_MAX:
            longest = next(iter(self._silent), None)
            if longest is None:
                return None
            del self._silent[longest], self._peers[longest]
        peer = self._peers[host] = Peer(host, epoch, address, self._randomness.getrandbits(64))
        self._silent[host] = None
        return peer

    def _renew(self, peer: Peer, now: int) -> None:
        host = peer.host
        if host not in self._leases:
            del self._silent[host]
            self.heard += peer.proven
        self._leases.renew(host, now)

    def _expire(self, peer: Peer) -> None:
        """A host's lease is over: its rows are gone, its epoch and seqs are kept.

        It must answer a new nonce before its rows count again: what it sent meanwhile may have been recorded,
        and would pass for new here.
        """
        self.counters.leases_ended += 1
        self.heard -= peer.proven
        self._silent[peer.host] = None
        self._forget_asks(peer)
        self._rows.clear(peer)
        peer.proven = False
        peer.nonce = self._randomness.getrandbits(64)

    def _forget(self, peer: Peer) -> None:
        """A host is no member any more."""
        if peer.host in self._leases:
            self._leases.end(peer.host)
            self.heard -= peer.proven
        else:
            del self._silent[peer.host]
        self._forget_asks(peer)
        self._rows.clear(peer)
        del self._peers[peer.host]

    def _begin_epoch(self, peer: Peer, epoch: int) -> None:
        """A host has restarted: what it said in its former life is void."""
        self.counters.epochs_seen += 1
        self._forget_asks(peer)
        self._rows.clear(peer)
        peer.streams.clear()
        peer.epoch = epoch

    def _forget_asks(self, peer: Peer) -> None:
        for subject in peer.streams:
            self._asks.forget((peer.host, subject))

    def _tell_epoch(self, peer: Peer, address: str, now: int) -> None:
        """Somebody uses an epoch of a host that is over: say so where that came from."""
        if peer.told_at is None or now - peer.told_at >= NOTICE_NS:
            peer.told_at = now
            self.outbox.direct(peer.host, address, Newer(peer.epoch))

    def _hear_direct(self, peer: Peer, message: Message, now: int) -> None:
        """What a peer says to us alone."""
        if isinstance(message, Chunk):
            self._hear_chunk(peer, message, now)
        elif isinstance(message, Challenge):
            self.outbox.direct(peer.host, peer.address, Answer(message.nonce))
        elif isinstance(message, Answer):
            if not peer.proven and message.nonce == peer.nonce:
                self.heard += 1
                self._rows.prove(peer)
                for subject, stream in peer.streams.items():
                    self._want(peer, subject, stream, now)
        elif isinstance(message, Ask):
            if peer.proven:
                self._serving.asked(peer.host, peer.address, message, self.outbox, now)
            else:
                self.counters.ignored[Ignored.UNPROVEN] += 1
        elif isinstance(message, Newer):
            self._hear_newer(message.epoch, peer.host, now)
        else:
            self.counters.ignored[Ignored.MISPLACED] += 1

    def _hear_chunk(self, peer: Peer, chunk: Chunk, now: int) -> None:
        name = (peer.host, chunk.subject)
        rows = self._asks.chunk(peer.host, chunk)
        if rows is None:
            return
        seq = self._asks.done(name, now)
        stream = peer.streams[chunk.subject]
        try:
            self.counters.mended += self._rows.snapshot(peer, chunk.subject, stream, seq, rows)
        except PeerProtocolError:
            self.counters.ignored[Ignored.BAD_SNAPSHOT] += 1
        stream.release_tombstones()

    def _hear_newer(self, known: int, host: int, now: int) -> None:
        """A peer knows a greater epoch of ours."""
        epoch = self._own_id.jump(self.epoch, known, host, now)
        if epoch is not None:
            self._new_epoch = epoch
            self._serving.clear()
            self.outbox.restart(epoch, self.config.home)
            self._beat_at = now

    def _hear_stream(self, peer: Peer, subject: str, datagram: Datagram, now: int, wall_ns: int) -> None:
        """What a peer says to everybody: its rows, and its heartbeat."""
        stream = peer.stream(subject)
        seq = datagram.first_seq
        stream.hear_of(seq - 1)
        for message in datagram.messages:
            if isinstance(message, Put):
                self._hear_put(peer, subject, stream, seq, message, now, wall_ns)
                seq += 1
            elif isinstance(message, DropMessage):
                self.counters.drops += self._rows.drop(peer, subject, stream, seq, message.flow)
                seq += 1
            elif isinstance(message, Beat):
                difference = stream.compare(seq - 1, message.rows, message.digest)
                if difference is not None:
                    self._rows.differ(peer, subject, difference)
            else:
                self.counters.ignored[Ignored.MISPLACED] += 1
        stream.hear_of(seq - 1)
        self._want(peer, subject, stream, now)

    def _hear_put(
        self, peer: Peer, subject: str, stream: InStream, seq: int, put: Put, now: int, wall_ns: int
    ) -> None:
        if not self.clock.merge(put.stamp, wall_ns):
            self.counters.stamps_ahead += 1
            self._reporter.report(Trouble.CLOCK_AHEAD, peer.host, f"{put.stamp - wall_ns} ns", now)
        if put.flow not in stream.rows and seq > stream.newest:
            self.lags.add(max(0, wall_ns - put.stamp))
        try:
            self.counters.puts += self._rows.put(peer, subject, stream, seq, put)
        except PeerProtocolError:
            self.counters.ignored[Ignored.TOO_MANY_ROWS] += 1

    def _want(self, peer: Peer, subject: str, stream: InStream, now: int) -> None:
        """Ask for a snapshot if one is needed; of a host that may be a recording not yet."""
        if peer.proven and subject != self._direct and stream.behind:
            self._asks.want((peer.host, subject), now)
