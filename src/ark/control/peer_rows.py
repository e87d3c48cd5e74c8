"""Which of the rows that peers announce count, as changes for the table.

A row is held by its stream as long as its sender has it; it counts while its sender is proven and the row
fits the fabric. What does not count stays held, so that digests still agree.
"""

from typing import Final

from ark.control.geometry import Geometry, PathSets
from ark.control.halves import half_drop, half_of
from ark.control.peer import Peer
from ark.control.rows import Drop, Row, State
from ark.control.stream import Difference, Held, InStream
from ark.control.wire import Numbered, Put, down, up
from ark.errors import PeerProtocolError

ROWS_MAX: Final = 131_072
"""Rows of all peers together, half of what a table takes: 13 times the 10,000 of a large cluster. Full:
further rows are ignored, and mended by snapshots once there is room."""


class PeerRows:
    """The rows of all peers.

    Attributes
    ----------
    count
        Rows held, whether they count or not.
    misfits
        Rows taken in that do not fit the fabric, or do not belong to their subject.
    """

    __slots__ = ("_attachments", "_changes", "_leaves", "_paths", "count", "misfits")

    def __init__(self, geometry: Geometry, *, leaves: bool) -> None:
        self._paths = PathSets(geometry)
        self._attachments = len(geometry.attachments)
        self._leaves = leaves
        self._changes: list[Row | Drop] = []
        self.count = 0
        self.misfits = 0

    def take(self) -> list[Row | Drop]:
        """The changes since the last call, in order."""
        changes, self._changes = self._changes, []
        return changes

    def put(self, peer: Peer, subject: str, stream: InStream, seq: int, put: Put) -> bool:
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
        self._show(peer, subject, held)
        return True

    def drop(self, peer: Peer, subject: str, stream: InStream, seq: int, flow: int) -> bool:
        """Take in a DROP; False if it changes nothing."""
        if not stream.drop(seq, flow):
            return False
        self.count -= 1
        self._hide(peer, subject, flow)
        return True

    def snapshot(self, peer: Peer, subject: str, stream: InStream, seq: int, rows: list[Numbered]) -> bool:
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
        self.differ(peer, subject, difference)
        return True

    def differ(self, peer: Peer, subject: str, difference: Difference) -> None:
        """Follow what a snapshot has changed in a stream."""
        for flow in difference.drops:
            self.count -= 1
            self._hide(peer, subject, flow)
        for held, is_new in difference.puts:
            self.count += is_new
            self._show(peer, subject, held)

    def prove(self, peer: Peer) -> None:
        """The peer is no recording: its rows count from now on."""
        peer.proven = True
        for subject, held in peer.held():
            self._emit(peer, subject, held)

    def clear(self, peer: Peer) -> None:
        """All rows of a peer are gone: its lease or its epoch is over. Its streams keep their seqs."""
        for subject, stream in peer.streams.items():
            for flow in stream.expire():
                self.count -= 1
                self._hide(peer, subject, flow)

    def check(self, peers: dict[int, Peer]) -> None:
        """Assert that rows are counted right."""
        streams = [stream for peer in peers.values() for stream in peer.streams.values()]
        assert self.count == sum(len(stream.rows) for stream in streams)

    def _show(self, peer: Peer, subject: str, held: Held) -> None:
        """A row is new or different."""
        flow = held.put.flow
        row = self._row(peer, subject, held)
        if row is None:
            self.misfits += 1
            self._hide(peer, subject, flow)
            return
        if peer.proven:
            self._changes.append(half_of(row, subject, self._attachments) if self._leaves else row)

    def _emit(self, peer: Peer, subject: str, held: Held) -> None:
        row = self._row(peer, subject, held)
        if row is not None:
            self._changes.append(half_of(row, subject, self._attachments) if self._leaves else row)

    def _hide(self, peer: Peer, subject: str, flow: int) -> None:
        """A row no longer counts, whether or not it did."""
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
