"""What a decider answers, what it remembers, and what it keeps of each of its own transfers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from ark.control.policy import Request
from ark.control.rows import Drop, Key, Row


class Kind(StrEnum):
    """How the paths of a transfer were chosen."""

    STEERED = "steered"
    """By what is known of the others."""
    FALLBACK = "fallback"
    """``policy="paper"``: at random as all paths are taken, or kept after a lost race; holds nothing."""
    BLIND = "blind"
    """By hash, because too few peers have been heard."""
    UNMANAGED = "unmanaged"
    """Not at all: too short, inside one leaf, one path, or never started. Nothing is announced."""


class Event(StrEnum):
    """What a decision is about."""

    ASSIGNED = "assigned"
    STARTED = "started"
    """A pending transfer is active: its client gets its answer now."""
    MOVED = "moved"
    RENEWED = "renewed"
    """The row says something new (bytes, epoch, a claim given up), the paths are the same."""
    RELEASED = "released"
    EXPIRED = "expired"
    """Reserved ahead and not started in time: the transfer is unmanaged from now on."""


class Decision(Struct, frozen=True, gc=False):
    """What follows from an input for one transfer.

    Parameters
    ----------
    flow
        The transfer.
    event, kind
        What happened, and how its paths were chosen.
    paths
        Path numbers, one a stripe. Of an unmanaged transfer its only path, or ``()`` for "no preference".
    start_ns
        When the transfer may start: later than the input where it is held back (monotonic clock).
    announce
        The row (PUT) or its end (DROP) that peers must be told; already in our own table.
    cause
        The ``cause`` of the input.
    """

    flow: int
    event: Event
    kind: Kind
    paths: tuple[int, ...]
    start_ns: int
    announce: Row | Drop | None
    cause: int


class Input(NamedTuple):
    """One remembered input: which, when, for which transfer, against which rival row, with what outcome."""

    cause: int
    now_ns: int
    name: str
    flow: int
    rival: Key | None
    event: Event
    paths: tuple[int, ...]


@dataclass(slots=True)
class Counters:
    """Counts since the start; several deciders may share one."""

    arrivals: int = 0
    reservations: int = 0
    fallbacks: int = 0
    blind: int = 0
    unmanaged: int = 0
    conflicts: int = 0
    """Times that one of our transfers lost a race."""
    moves: int = 0
    yields: int = 0
    """Claims given up after a lost race (``policy="paper"``)."""
    expired: int = 0
    completed: int = 0


class Transfer(Struct):
    """One of our own transfers; ``row`` is None while it is unmanaged."""

    flow: int
    request: Request
    kind: Kind
    paths: tuple[int, ...]
    start_ns: int
    row: Row | None
    contested: bool = False
    races: int = 0
