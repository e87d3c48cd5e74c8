"""Rows: one reservation of one transfer, and the two messages that change it (PROTOCOL rules 1 to 3, 14).

A :class:`Row` is a *PUT* (RESERVE, MOVE, and each renewal of state or bytes); a :class:`Drop` is a RELEASE.
Both carry the owner's ``(epoch, seq)``; per row the greater wins. Nothing here decides, keeps a table or
knows a wire; the bounds in the types are checked where rows are decoded from bytes.
"""

from enum import IntEnum
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from ark.units import NS_PER_S

STRIPES_MAX: Final = 16
"""Paths that one row may hold: past 4 stripes nothing is gained, 16 leaves room to study it."""

PENDING_MAX_NS: Final = 30 * NS_PER_S
"""How long a reservation may wait for its transfer to start before its owner ends it (rule 9)."""

LEAK_FACTOR: Final = 10
"""A row is a leak at this many times the time that its NIC needs for all it has to send over one path's share
of a line (rule 14)."""

LEAK_AGE_MIN_NS: Final = 3 * NS_PER_S
"""No row is a leak sooner than a lease lasts: until then the lease tells the dead from the slow."""

_BITS_PER_BYTE: Final = 8

Natural = Annotated[int, Meta(ge=0)]
"""A whole number from 0; decoded from at most 64 bits."""
Counter = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A counter, a size in bytes, or a time in nanoseconds."""
Small = Annotated[int, Meta(ge=0, le=2**20 - 1)]
"""An index of a path or an attachment."""


class State(IntEnum):
    """Whether the client has its answer (rule 9); a row that is *gone* is a :class:`Drop`."""

    PENDING = 0
    """Reserved ahead, or in its hold: may still move freely."""
    ACTIVE = 1
    """The client has its answer, which counts as sent: moves at a segment's end, never inside a message."""


class Key(NamedTuple):
    """The name of a row: its owner, and the owner's own counter."""

    host: int
    flow: int


class Assignment(NamedTuple):
    """The order of assignments by which races are decided; the smaller one wins (rule 8)."""

    stamp: int
    host: int
    flow: int


class Row(Struct, frozen=True, array_like=True, gc=False):
    """One transfer's reservation as its owner last announced it: a PUT.

    Parameters
    ----------
    host
        The owner, which is the host whose NIC sends the bytes: the 64-bit hash of its name, or a small int in
        engines.
    epoch
        The owner's epoch; greater after each restart.
    seq
        The owner's count of row changes in this epoch. Each PUT and DROP has its own.
    flow
        The owner's own number of the transfer, never used twice in one epoch.
    state
        Pending or active.
    paths
        Indices of the reserved paths between ``source`` and ``target``, one a stripe, none twice.
    source, target
        Attachments (leaves, or pairs of ToRs) of the sending and of the receiving NIC.
    size_bytes
        Bytes still to send as last announced, at the start and at each segment's end. Nobody extrapolates.
    stamp
        Wall clock (hybrid-logical, ns) of the assignment: new at each choice of paths, at no other change.
    fallback
        The transfer holds nothing under ``policy="paper"``: it took a random path, or has lost its claim.
    moves
        How often the transfer has been assigned anew. A row with moves makes nobody else decide again
        (rule 8), also where the PUT before the move was lost: hence a field of its own.
    """

    host: Natural
    epoch: Counter
    seq: Counter
    flow: Counter
    state: State
    paths: Annotated[tuple[Small, ...], Meta(min_length=1, max_length=STRIPES_MAX)]
    source: Small
    target: Small
    size_bytes: Counter
    stamp: Counter
    fallback: bool = False
    moves: Small = 0

    @property
    def key(self) -> Key:
        """The row's name in every table."""
        return Key(self.host, self.flow)

    @property
    def version(self) -> tuple[int, int]:
        """``(epoch, seq)``: of two versions of one row the greater is the truth."""
        return self.epoch, self.seq

    @property
    def assignment(self) -> Assignment:
        """The place of this choice of paths in the order of all choices."""
        return Assignment(self.stamp, self.host, self.flow)


class Drop(Struct, frozen=True, array_like=True, gc=False):
    """The owner's word that a row is gone: a RELEASE. Fields as in :class:`Row`."""

    host: Natural
    epoch: Counter
    seq: Counter
    flow: Counter

    @property
    def key(self) -> Key:
        """The name of the row that is gone."""
        return Key(self.host, self.flow)

    @property
    def version(self) -> tuple[int, int]:
        """``(epoch, seq)``, compared with those of the row's PUTs."""
        return self.epoch, self.seq


class Change(NamedTuple):
    """What one input did to one row of a table; never both ``None``."""

    old: Row | None
    new: Row | None


def leak_age_ns(state: State, *, backlog_bytes: int, line_rate_bps: int, path_count: int) -> int:
    """Age since its last PUT from which an unrenewed row counts as leaked, ns (rule 14).

    Ten times what all bytes that its NIC has still to send take at ``line_rate_bps / path_count``, plus the
    wait that a pending row is allowed, and never less than :data:`LEAK_AGE_MIN_NS`. The row's own bytes alone
    would be too few: of a thousand transfers at once the last one may wait for all others.
    """
    backlog_ns = backlog_bytes * _BITS_PER_BYTE * NS_PER_S * path_count // line_rate_bps
    wait_ns = PENDING_MAX_NS if state is State.PENDING else 0
    return max(LEAK_AGE_MIN_NS, wait_ns + LEAK_FACTOR * backlog_ns)
