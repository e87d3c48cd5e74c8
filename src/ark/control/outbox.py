"""What a host says of its own rows: streams, batches, heartbeats, and the datagrams that these become.

A row goes out at once while the stream is quiet, and otherwise within the batch time of the datagram
before, with all that came up meanwhile. So a lone reservation is never late, and under load the datagrams
of a host are bounded in number, not the rows in them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ark.control.lease import LEASE_NS
from ark.control.stream import ROWS_MAX, OutStream
from ark.control.timers import Deadlines
from ark.control.wire import ROOM, Beat, Drop, Key, Message, Put, direct, encode_message, seal
from ark.errors import LocalProtocolError

BATCH_NS: Final = 1_000_000
"""Longest time that a row waits for others to share its datagram: small beside the milliseconds of a
transfer."""


class Send(NamedTuple):
    """A datagram to be sent.

    ``host`` is None for what goes to everybody who listens to ``subject``. Otherwise it is meant for that
    host alone, at ``address`` (where it last wrote from) unless the transport knows a better one.
    """

    subject: str
    host: int | None
    address: str
    data: bytes


class Batch:
    """What waits to go out in one stream; it always fits into one datagram, as it is sent when full."""

    __slots__ = ("parts", "rows", "sent_at", "size", "spoke_at", "stream")

    def __init__(self) -> None:
        self.stream = OutStream()
        self.parts: list[bytes] = []
        self.rows = 0
        self.size = 0
        self.sent_at: int | None = None
        self.spoke_at: int | None = None


class Outbox:
    """The sender's side of all streams of one host in its current epoch.

    Streams are opened by their first row and stay until the epoch ends; there are at most as many as subjects
    that this fabric has. Those in ``home`` have heartbeats all the time, any other only while it holds rows
    and for ``idle_ns`` after its last one: then everybody has heard that there are none.
    """

    __slots__ = (
        "_batches", "_direct_number", "_due", "_home", "_ready", "batch_ns", "epoch", "fabric", "host",
        "idle_ns", "key",
    )  # fmt: skip

    def __init__(
        self,
        host: int,
        epoch: int,
        fabric: bytes,
        key: Key,
        home: Iterable[str],
        *,
        batch_ns: int = BATCH_NS,
        idle_ns: int = 2 * LEASE_NS,
    ) -> None:
        self.host = host
        self.fabric = fabric
        self.key = key
        self.batch_ns = batch_ns
        self.idle_ns = idle_ns
        self._batches: dict[str, Batch] = {}
        self._due: Deadlines[str] = Deadlines()
        self._ready: list[Send] = []
        self._direct_number = 0
        self.restart(epoch, home)

    def restart(self, epoch: int, home: Iterable[str]) -> None:
        """Begin all streams anew in another epoch, without rows; the caller puts them again."""
        self.epoch = epoch
        self._home = frozenset(home)
        self._batches = {subject: Batch() for subject in sorted(self._home)}
        self._due = Deadlines()
        self._direct_number = 0

    def stream(self, subject: str) -> OutStream | None:
        """Our side of a stream, if it is open."""
        batch = self._batches.get(subject)
        return None if batch is None else batch.stream

    def subjects(self) -> Iterator[str]:
        """Subjects of the open streams."""
        return iter(self._batches)

    def put(self, subject: str, put: Put, now: int) -> None:
        """Announce a row.

        Raises
        ------
        LocalProtocolError
            If the stream has as many rows as receivers take.
        """
        batch = self._batches.get(subject)
        if batch is None:
            batch = self._batches[subject] = Batch()
        if len(batch.stream.rows) >= ROWS_MAX and put.flow not in batch.stream.rows:
            raise LocalProtocolError(f"{ROWS_MAX} transfers at once are all that a host may announce")
        part = encode_message(put)
        self._make_room(subject, batch, len(part), now)
        batch.stream.put(put)
        self._append(subject, batch, part, now)

    def drop(self, subject: str, flow: int, now: int) -> None:
        """Announce the end of a row."""
        batch = self._batches[subject]
        part = encode_message(Drop(flow))
        self._make_room(subject, batch, len(part), now)
        batch.stream.drop(flow)
        self._append(subject, batch, part, now)

    def beat(self, now: int) -> None:
        """A heartbeat in every stream that is not idle, together with the rows that wait in it."""
        for subject, batch in self._batches.items():
            if not (subject in self._home or batch.stream.rows or self._spoke_lately(batch, now)):
                continue
            beat = encode_message(Beat(len(batch.stream.rows), batch.stream.digest))
            self._make_room(subject, batch, len(beat), now)
            batch.parts.append(beat)
            self._flush(subject, batch, now)

    def direct(self, host: int, address: str, *messages: Message | bytes) -> None:
        """Send something to one host alone, at once; bytes are a message already encoded."""
        parts = [message if isinstance(message, bytes) else encode_message(message) for message in messages]
        subject = direct(host)
        self._direct_number += 1
        data = seal(self.key, self.fabric, self.host, self.epoch, subject, self._direct_number, 1, parts)
        self._ready.append(Send(subject, host, address, data))

    def flush(self, subject: str, now: int) -> None:
        """Send at once what waits in a stream."""
        if subject in self._due:
            self._flush(subject, self._batches[subject], now)

    def tick(self, now: int) -> None:
        """Send what has waited long enough."""
        for subject in self._due.due(now):
            self._flush(subject, self._batches[subject], now)

    def take(self) -> list[Send]:
        """The datagrams that are ready to be sent, in order; the caller has them now."""
        ready, self._ready = self._ready, []
        return ready

    def next_deadline(self) -> int | None:
        """When ``tick`` has something to send."""
        return self._due.next_deadline()

    def check(self) -> None:
        """Assert that what waits fits into one datagram and has a deadline."""
        for subject, batch in self._batches.items():
            batch.stream.check()
            assert batch.size == sum(map(len, batch.parts)) <= ROOM
            assert bool(batch.parts) == (subject in self._due)

    def _spoke_lately(self, batch: Batch, now: int) -> bool:
        return batch.spoke_at is not None and now - batch.spoke_at <= self.idle_ns

    def _make_room(self, subject: str, batch: Batch, size: int, now: int) -> None:
        if batch.size + size > ROOM:
            self._flush(subject, batch, now)

    def _append(self, subject: str, batch: Batch, part: bytes, now: int) -> None:
        batch.parts.append(part)
        batch.spoke_at = now
        batch.rows += 1
        batch.size += len(part)
        if subject not in self._due:
            self._due.set(subject, now if batch.sent_at is None else max(now, batch.sent_at + self.batch_ns))

    def _flush(self, subject: str, batch: Batch, now: int) -> None:
        stream = batch.stream
        first_seq = stream.seq - batch.rows + 1
        data = seal(
            self.key,
            self.fabric,
            self.host,
            self.epoch,
            subject,
            stream.next_number(),
            first_seq,
            batch.parts,
        )
        self._ready.append(Send(subject, None, "", data))
        batch.parts = []
        batch.rows = batch.size = 0
        batch.sent_at = now
        self._due.cancel(subject)
