"""What the replication side counts, and the few things of which it tells a person."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from ark.control.wire import Refusal
from ark.units import NS_PER_S

INTERVAL_NS: Final = 10 * NS_PER_S
"""A report of one kind about one host is repeated no sooner; counters tell how often it happened."""

SUBJECTS_MAX: Final = 1024
"""Pairs of kind and host whose last report is remembered. Full: reports about further ones are only
counted."""


class Ignored(StrEnum):
    """Why the protocol ignored an authentic datagram, or a message in one."""

    OTHER_FABRIC = "other-fabric"
    OWN_ECHO = "own-echo"
    OWN_ID = "own-id"
    UNKNOWN_HOST = "unknown-host"
    WRONG_ADDRESS = "wrong-address"
    WRONG_SUBJECT = "wrong-subject"
    TOO_MANY_PEERS = "too-many-peers"
    TOO_FAST = "too-fast"
    OLD_EPOCH = "old-epoch"
    REPLAYED = "replayed"
    MISPLACED = "misplaced"
    TOO_MANY_ROWS = "too-many-rows"
    UNASKED = "unasked"
    BAD_SNAPSHOT = "bad-snapshot"
    UNPROVEN = "unproven"


class Trouble(StrEnum):
    """What a person should know."""

    CLONE = "another host uses our id"
    CLOCK_AHEAD = "a peer's clock is more than a second ahead of ours"
    OTHER_FABRIC = "a peer describes another fabric"
    WRONG_ADDRESS = "a host id came from an address that is not configured for it"
    LEAK = "a transfer was not renewed and its row was dropped"
    NEW_EPOCH = "a peer knew a greater epoch of ours; we jumped over it"
    LAST_EPOCH = "a peer knows the last epoch there is of ours; give this host another name"


class Report(NamedTuple):
    """One thing to tell: what, about which host, and the value that shows it."""

    trouble: Trouble
    host: int
    detail: str


@dataclass(slots=True)
class ReplicaCounters:
    """Counts since the start; the shell's collector reads them."""

    received: int = 0
    """Datagrams that were taken in."""
    refused: dict[Refusal, int] = field(default_factory=lambda: dict.fromkeys(Refusal, 0))
    ignored: dict[Ignored, int] = field(default_factory=lambda: dict.fromkeys(Ignored, 0))
    puts: int = 0
    drops: int = 0
    leases_ended: int = 0
    epochs_seen: int = 0
    """Restarts of peers."""
    asked: int = 0
    """Requests for a snapshot, repeats included."""
    mended: int = 0
    """Snapshots applied."""
    abandoned: int = 0
    """Snapshots that never became complete."""
    served: int = 0
    """Snapshot requests of peers answered."""
    chunks_sent: int = 0
    turned_away: int = 0
    """Snapshot requests of peers not answered for now: too many, or too fast."""
    leaks: int = 0
    stamps_ahead: int = 0
    clones: int = 0
    jumps: int = 0
    reports_suppressed: int = 0


class Reporter:
    """Passes on each report once in a while, in bounded memory."""

    __slots__ = ("_last", "_ready", "counters")

    def __init__(self, counters: ReplicaCounters) -> None:
        self.counters = counters
        self._ready: list[Report] = []
        self._last: dict[tuple[Trouble, int], int] = {}

    def report(self, trouble: Trouble, host: int, detail: str, now: int) -> None:
        """Tell of a trouble, unless the same was told lately."""
        key = (trouble, host)
        last = self._last.get(key)
        if last is not None and now - last < INTERVAL_NS:
            self.counters.reports_suppressed += 1
            return
        if last is None and len(self._last) >= SUBJECTS_MAX:
            self._last = {known: at for known, at in self._last.items() if now - at < INTERVAL_NS}
            if len(self._last) >= SUBJECTS_MAX:
                self.counters.reports_suppressed += 1
                return
        self._last[key] = now
        self._ready.append(Report(trouble, host, detail))

    def take(self) -> list[Report]:
        """The reports since the last call."""
        ready, self._ready = self._ready, []
        return ready
