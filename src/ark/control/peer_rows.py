"""Which of the rows that peers announce count, as changes for the table.

A row is held by its stream as long as its sender has it; it counts while its sender is proven, the row fits
the fabric, and it is renewed before it is a leak. What does not count stays held, so that digests still
agree.
"""

from typing import Final

from ark.control.geometry import Geometry, PathSets
from ark.control.halves import half_drop, half_of
from ark.control.peer import Peer
from ark.control.rows import Drop, Row, State, leak_age_ns
from ark.control.stream import Difference, Held, InStream
from ark.control.timers import Deadlines
from ark.control.wire import Numbered, Put, down, up
from ark.errors import PeerProtocolError

ROWS_MAX: Final = 131_072
"""Rows of all peers together, half of what a table takes: 13 times the 10,000 of a large cluster. Full:
further rows are ignored, and mended by snapshots once there is room."""

RowName = tuple[int, str, int]
"""A peer's row in one of its streams: host, subject, flow."""


class PeerRows:
    """The rows of all peers.

    Attributes
    ----------
    count
        Rows held, whether they count or not.
    misfits
        Rows taken in that do not fit the fabric, or do not belong to their subject.
    """

    __slots__ = (
        "_attachments",
        "_changes",
        "_leaks",
        "_leaves",
        "_line_rate_bps",
        "_paths",
        "count",
        "misfits",
    )

    def __init__(self, geometry: Geometry, *, line_rate_bps: int, leaves: bool) -> None:
        self._paths = PathSets(geometry)
        self._attachments = len(geometry.attachments)
        self._line_rate_bps = line_rate_bps
        self._leaves = leaves
        self._changes: list[Row | Drop] = []
        self._leaks: Deadlines[RowName] = Deadlines()
        self.count = 0
        self.misfits = 0

    def take(self) -> list[Row | Drop]:
        """The changes since the last call, in order."""
        changes, self._changes = self._changes, []
        return changes

    def put(self, peer: Peer, subject: str, stream: InStream, seq: int, put: Put, now: int) -> bool:
        """Take in a PUT; False if it changes nothing.

        Raises
        ------
        PeerProtocolError
            If there is no room for another row.
        """
        before = len(stream.rows)
        held = stream.put(seq, put, full=self.count >= ROWS_MAX)
        self.count += len(stream.rows) - before
        if held is None:
            return False
        self._show(peer, subject, held, now)
        return True

    def drop(self, peer: Peer, subject: str, stream: InStream, seq: int, flow: int) -> bool:
        """Take in a DROP; False if it changes nothing."""
        if not stream.drop(seq, flow):
            return False
        self.count -= 1
        self._hide(peer, subject, flow)
        return True

    def snapshot(
        self, peer: Peer, subject: str, stream: InStream, seq: int, rows: list[Numbered], now: int
    ) -> bool:
        """Apply a snapshot; False if it is too old to be applied.

        Raises
        ------
        PeerProtocolError
            If it contradicts itself, or there is no room for its rows.
        """
        before = len(stream.rows)
        if self.count - before + len(rows) > ROWS_MAX:
            raise PeerProtocolError(f"no room for the {len(rows)} rows of a snapshot")
        difference = stream.apply_snapshot(seq, rows)
        if difference is None:
            return False
        self.differ(peer, subject, difference, now)
        return True

    def differ(self, peer: Peer, subject: str, difference: Difference, now: int) -> None:
        """Follow what a snapshot has changed in a stream."""
        for flow in difference.drops:
            self.count -= 1
            self._hide(peer, subject, flow)
        for held, is_new in difference.puts:
            self.count += is_new
            self._show(peer, subject, held, now)

    def prove(self, peer: Peer) -> None:
        """The peer is no recording: its rows count from now on."""
        peer.proven = True
        for subject, held in peer.counted():
            self._emit(peer, subject, held)

    def clear(self, peer: Peer) -> None:
        """All rows of a peer are gone: its lease or its epoch is over. Its streams keep their seqs."""
        for subject, stream in peer.streams.items():
            for flow in stream.expire():
                self.count -= 1
                self._hide(peer, subject, flow)

    def due(self, now: int) -> list[RowName]:
        """Let the rows that leaked by now no longer count, and return their names."""
        return self._leaks.due(now)

    def leak(self, peer: Peer, subject: str, flow: int) -> Put:
        """A row is a leak: it no longer counts, until its owner renews it."""
        self._hide(peer, subject, flow)
        peer.leaked.add((subject, flow))
        return peer.streams[subject].rows[flow].put

    def next_deadline(self) -> int | None:
        """When ``due`` has something."""
        return self._leaks.next_deadline()

    def check(self, peers: dict[int, Peer]) -> None:
        """Assert that rows are counted right, and that each one that fits has a time when it is a leak."""
        held = [
            (peer, subject, row)
            for peer in peers.values()
            for subject, stream in peer.streams.items()
            for row in stream.rows.values()
        ]
        assert self.count == len(held)
        timed = {
            (peer.host, subject, row.put.flow)
            for peer, subject, row in held
            if (subject, row.put.flow) not in peer.leaked and self._row(peer, subject, row) is not None
        }
        assert len(self._leaks) == len(timed)
        assert all(name in self._leaks for name in timed)

    def _show(self, peer: Peer, subject: str, held: Held, now: int) -> None:
        """A row is new or different."""
        flow = held.put.flow
        peer.leaked.discard((subject, flow))
        row = self._row(peer, subject, held)
        if row is None:
            self.misfits += 1
            self._hide(peer, subject, flow)
            return
        path_count = len(self._paths.between(row.source, row.target).links)
        age_ns = leak_age_ns(row, line_rate_bps=self._line_rate_bps, path_count=path_count)
        self._leaks.set((peer.host, subject, flow), now + age_ns)
        if peer.proven:
            self._changes.append(half_of(row, subject, self._attachments) if self._leaves else row)

    def _emit(self, peer: Peer, subject: str, held: Held) -> None:
        row = self._row(peer, subject, held)
        if row is not None:
            self._changes.append(half_of(row, subject, self._attachments) if self._leaves else row)

    def _hide(self, peer: Peer, subject: str, flow: int) -> None:
        """A row no longer counts, whether or not it did."""
        self._leaks.cancel((peer.host, subject, flow))
        peer.leaked.discard((subject, flow))
        if peer.proven:
            drop = Drop(peer.host, peer.epoch, peer.streams[subject].newest, flow)
            self._changes.append(half_drop(drop, subject) if self._leaves else drop)

    def _row(self, peer: Peer, subject: str, held: Held) -> Row | None:
        """The row that a peer means; None if it fits neither this fabric nor its subject."""
        put = held.put
        row = Row(
            peer.host, peer.epoch, held.seq, put.flow, State(put.state), put.paths, put.source, put.target,
            put.size_bytes, put.stamp, put.fallback, put.moves,
        )  # fmt: skip
        if self._leaves and subject not in {up(put.source), down(put.target)}:
            return None
        return row if self._paths.fits(row) else None
