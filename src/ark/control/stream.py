"""One host's rows under one subject, as their sender counts them and as a receiver takes them in.

Every PUT and DROP of a stream has a seq. A receiver applies what it gets in any order: per row the greater
seq wins, and no seq counts twice. What is missing shows as a gap, what went wrong otherwise as a different
digest at equal seq; both are mended by a snapshot. Here is no time, no network and no other host: who may
speak, in which epoch, and when to ask for a snapshot is the replica's.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ark.control.wire import Numbered, Put, encode_message, encode_numbered
from ark.errors import PeerProtocolError

ROWS_MAX: Final = 16_384
"""Rows of one stream: a host with so many transfers at once is broken. Full: a further flow's PUT is
refused."""

GAPS_MAX: Final = 32
"""Runs of seqs held beyond a gap. Full: the oldest gap is given up, a snapshot will fill it."""

TOMBSTONES_MAX: Final = 4096
"""DROPs remembered against late PUTs. Full: all gaps are given up, and with them the PUTs that may be
late."""

WINDOW: Final = 1024
"""Datagram numbers looked back on: a datagram overtaken by so many others of its stream counts as a
replay."""


class Held(NamedTuple):
    """A row as a stream holds it: the seq that last wrote it, its contents, its part of the digest."""

    seq: int
    put: Put
    mark: int


def mark(seq: int, part: bytes) -> int:
    """A row's part of its stream's digest: 64 bits of BLAKE2b over its bytes in a snapshot.

    ``part`` is the encoded PUT.
    """
    return int.from_bytes(hashlib.blake2b(encode_numbered(seq, part), digest_size=8).digest(), "big")


class OutStream:
    """The sender's side: numbers what it says and keeps what a snapshot would hold.

    A row enters the digest when that is next asked for, with a heartbeat: most are over before.
    """

    __slots__ = ("_digest", "_marks", "_unmarked", "number", "rows", "seq")

    def __init__(self) -> None:
        self.seq = 0
        self.number = 0
        self.rows: dict[int, Numbered] = {}
        self._digest = 0
        self._marks: dict[int, int] = {}
        self._unmarked: set[int] = set()

    @property
    def digest(self) -> int:
        """XOR of the marks of all rows."""
        for flow in self._unmarked:
            row = self.rows[flow]
            self._marks[flow] = new = mark(row.seq, encode_message(row.put))
            self._digest ^= new
        self._unmarked.clear()
        return self._digest

    def put(self, put: Put) -> int:
        """Hold the row and return the seq of this PUT."""
        self.seq += 1
        flow = put.flow
        self._unmark(flow)
        self.rows[flow] = Numbered(self.seq, put)
        self._unmarked.add(flow)
        return self.seq

    def drop(self, flow: int) -> int:
        """Let go of the row and return the seq of this DROP."""
        self.seq += 1
        del self.rows[flow]
        self._unmark(flow)
        self._unmarked.discard(flow)
        return self.seq

    def next_number(self) -> int:
        """The number of the next datagram of this stream."""
        self.number += 1
        return self.number

    def check(self) -> None:
        """Assert that what is in the digest are marks of rows, and that no row is ahead of its stream."""
        digest = 0
        for flow, known in self._marks.items():
            row = self.rows[flow]
            assert known == mark(row.seq, encode_message(row.put))
            digest ^= known
        assert digest == self._digest
        assert self._marks.keys() | self._unmarked == self.rows.keys()
        assert len(self._marks) + len(self._unmarked) == len(self.rows)
        assert all(row.seq <= self.seq and flow == row.put.flow for flow, row in self.rows.items())

    def _unmark(self, flow: int) -> None:
        if flow in self._marks:
            self._digest ^= self._marks.pop(flow)


class ReplayWindow:
    """Which datagram numbers of a stream have been seen: the greatest and a bit for each of the last ones.

    Source: the anti-replay window of IPsec, RFC 4303 §3.4.3.
    """

    __slots__ = ("_seen", "newest")

    def __init__(self) -> None:
        self.newest = 0
        self._seen = 0

    def accept(self, number: int) -> bool:
        """True for a number never accepted before and not too old to tell; it then counts as seen."""
        ahead = number - self.newest
        if ahead > 0:
            self._seen = ((self._seen << ahead) | 1) & _WINDOW_MASK if ahead < WINDOW else 1
            self.newest = number
            return True
        bit = 1 << -ahead
        if -ahead >= WINDOW or self._seen & bit:
            return False
        self._seen |= bit
        return True


_WINDOW_MASK: Final = (1 << WINDOW) - 1


class Difference(NamedTuple):
    """What a snapshot changed: rows that are new (True) or different (False), and flows whose row is gone."""

    puts: list[tuple[Held, bool]]
    drops: list[int]


class InStream:
    """The receiver's side of one stream of one epoch.

    Attributes
    ----------
    through:
        All seqs up to this one are in (received, or covered by a snapshot, or given up).
    rows:
        The sender's live rows by flow.
    given_up:
        The greatest seq that was given up without having been received, or 0: until a snapshot of that seq or
        a later one is in, the rows may be incomplete, and an earlier one must not be applied.
    """

    __slots__ = (
        "_held_from", "_runs", "_tombstones", "digest", "given_up", "rows", "suspect", "through", "told",
        "window",
    )  # fmt: skip

    def __init__(self) -> None:
        self.through = 0
        self.given_up = 0
        self.told = 0
        self.suspect = False
        self.digest = 0
        self.rows: dict[int, Held] = {}
        self.window = ReplayWindow()
        self._held_from: int | None = None
        self._runs: list[list[int]] = []
        self._tombstones: dict[int, int] = {}

    @property
    def newest(self) -> int:
        """The greatest seq that is in."""
        return self._runs[-1][1] if self._runs else self.through

    @property
    def whole(self) -> bool:
        """Whether the rows are those of the sender at ``through``, as far as numbers can tell."""
        return not self._runs and not self.given_up

    @property
    def behind(self) -> bool:
        """Whether only a snapshot, or messages that are late, can bring the sender's rows here."""
        return self.suspect or not self.whole or self.through < self.told

    @property
    def tombstones(self) -> Mapping[int, int]:
        """Flows whose DROP (its seq) still guards against a late PUT."""
        return self._tombstones

    def covers(self, seq: int) -> bool:
        """Whether this seq is in: received, in a snapshot, or given up."""
        return seq <= self.through or any(low <= seq <= high for low, high in self._runs)

    def put(self, seq: int, put: Put, *, full: bool = False) -> Held | None:
        """Take in a PUT; the row if it is now the newest of its flow, None if that changes nothing.

        ``full`` says that the receiver has no room for a further row of anybody's.

        Raises
        ------
        PeerProtocolError
            If there is no room for a further row.
        """
        # Looked up first: this very PUT may be the last that its tombstone waits for.
        dropped = self._tombstones.get(put.flow, 0)
        if not self._enter(seq):
            return None
        before = self.rows.get(put.flow)
        if (before is not None and before.seq > seq) or dropped > seq:
            return None
        if before is None and (full or len(self.rows) >= ROWS_MAX):
            # Its seq counts as in: the digest will differ until there is room and a snapshot comes.
            raise PeerProtocolError(f"no room for a row beside the {len(self.rows)} of its stream")
        self._tombstones.pop(put.flow, None)
        return self._set(seq, put)

    def drop(self, seq: int, flow: int) -> bool:
        """Take in a DROP; True if it ends a row that is held."""
        if not self._enter(seq):
            return False
        before = self.rows.get(flow)
        if before is not None and before.seq > seq:
            return False
        if before is not None:
            self._remove(flow)
        if seq > self.through or self._held_from is not None:
            self._bury(seq, flow)
        return before is not None

    def hear_of(self, seq: int) -> None:
        """The sender has said that its stream has got to ``seq``."""
        self.told = max(self.told, seq)

    def compare(self, seq: int, rows: int, digest: int) -> Difference | None:
        """Take in a heartbeat: the number of the sender's rows and their digest, at ``seq``.

        No rows at all is a snapshot too, and is applied as one.
        """
        self.hear_of(seq)
        if rows == 0 and (self.behind or self.rows) and seq >= self.newest:
            return self.apply_snapshot(seq, ())
        if self.whole and self.through == seq:
            self.suspect = digest != self.digest or rows != len(self.rows)
        return None

    def hold_tombstones(self) -> None:
        """Keep every DROP from now on until :meth:`release_tombstones`: a snapshot has been asked for.

        A snapshot is older than what arrives while it is under way: without this, a row that it holds and
        that was dropped meanwhile would come back.
        """
        self._held_from = self.newest

    def release_tombstones(self) -> None:
        """No snapshot is under way any more."""
        self._held_from = None
        self._prune()

    def expire(self) -> list[int]:
        """Let go of all rows and return their flows; what has been in stays in, the rest is given up."""
        flows = list(self.rows)
        self.rows = {}
        self.digest = 0
        self._held_from = None
        self.suspect = False
        self._give_up(self.newest)
        return flows

    def apply_snapshot(self, seq: int, rows: Iterable[Numbered]) -> Difference | None:
        """Put the sender's rows as of ``seq`` in place of those held, keeping what is newer than ``seq``.

        Returns None, and changes nothing, for a snapshot so old that a DROP after it may be forgotten here.

        Raises
        ------
        PeerProtocolError
            If a row is newer than its snapshot, a flow comes twice, or there are too many rows.
        """
        told: dict[int, Numbered] = {}
        for row in rows:
            if row.seq > seq or row.put.flow in told or len(told) >= ROWS_MAX:
                raise PeerProtocolError(f"snapshot of seq {seq} breaks its own rules at flow {row.put.flow}")
            told[row.put.flow] = row
        if seq < self.given_up or seq < (self.through if self._held_from is None else self._held_from):
            return None
        gone = [flow for flow, held in self.rows.items() if held.seq <= seq and flow not in told]
        for flow in gone:
            self._remove(flow)
        puts: list[tuple[Held, bool]] = []
        for flow, row in told.items():
            held = self.rows.get(flow)
            if self._tombstones.get(flow, 0) > seq or (held is not None and held.seq > seq):
                continue
            if held is None or held.seq != row.seq or held.put != row.put:
                puts.append((self._set(row.seq, row.put), held is None))
        self.given_up = 0
        self.suspect = False
        self._advance(seq)
        self.release_tombstones()
        return Difference(puts, gone)

    def check(self) -> None:
        """Assert the digest, the order of the runs, and every bound."""
        assert self.digest == _digest(self.rows)
        if self._runs:
            edges = [self.through, *(edge for run in self._runs for edge in run)]
            assert edges == sorted(edges), edges
            assert all(low > before + 1 for (low, _), before in zip(self._runs, edges[::2], strict=False))
        assert len(self._runs) <= GAPS_MAX
        assert len(self._tombstones) <= TOMBSTONES_MAX
        assert not self._tombstones.keys() & self.rows.keys()
        assert len(self.rows) <= 2 * ROWS_MAX

    def _enter(self, seq: int) -> bool:
        """Count ``seq`` as in; False if it already was."""
        if seq <= self.through:
            return False
        if seq == self.through + 1 and not self._runs:
            self.through = seq
            return True
        runs = self._runs
        place = len(runs)
        while place and runs[place - 1][0] > seq:
            place -= 1
        if place and seq <= runs[place - 1][1]:
            return False
        if place and seq == runs[place - 1][1] + 1:
            runs[place - 1][1] = seq
        else:
            runs.insert(place, [seq, seq])
            place += 1
        if place < len(runs) and runs[place][0] == seq + 1:
            runs[place - 1][1] = runs.pop(place)[1]
        if runs[0][0] == self.through + 1:
            self._advance(self.through)
        if len(runs) > GAPS_MAX:
            self._give_up(runs[0][0] - 1)
        return True

    def _advance(self, seq: int) -> None:
        """All seqs up to ``seq`` count as in: join the runs that this reaches, and forget old tombstones."""
        self.through = max(self.through, seq)
        while self._runs and self._runs[0][0] <= self.through + 1:
            self.through = max(self.through, self._runs.pop(0)[1])
        self._prune()

    def _prune(self) -> None:
        if self._tombstones and self._held_from is None:
            through = self.through
            self._tombstones = {flow: seq for flow, seq in self._tombstones.items() if seq > through}

    def _give_up(self, seq: int) -> None:
        """Refuse whatever of the seqs up to ``seq`` is still missing: only a snapshot can bring it."""
        self.given_up = max(self.given_up, seq)
        self._advance(seq)

    def _bury(self, seq: int, flow: int) -> None:
        self._tombstones[flow] = max(seq, self._tombstones.get(flow, 0))
        if len(self._tombstones) > TOMBSTONES_MAX:
            # The snapshot under way can no longer be told from the drops since: it must be a newer one.
            self._held_from = None
            self._give_up(self.newest)

    def _set(self, seq: int, put: Put) -> Held:
        self._remove(put.flow)
        held = Held(seq, put, mark(seq, encode_message(put)))
        self.digest ^= held.mark
        self.rows[put.flow] = held
        return held

    def _remove(self, flow: int) -> None:
        before = self.rows.pop(flow, None)
        if before is not None:
            self.digest ^= before.mark


def _digest(rows: Mapping[int, Held]) -> int:
    digest = 0
    for held in rows.values():
        assert held.mark == mark(held.seq, encode_message(held.put))
        digest ^= held.mark
    return digest
