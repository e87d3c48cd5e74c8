"""What an engine asks a scheme, and what the scheme answers: the only thing that both engines know of it.

An engine calls with whole nanoseconds that never decrease. At one instant it first tells of completions and
segment ends, then calls ``tick``, then lets held transfers begin, then lets new ones arrive.
"""

from dataclasses import dataclass
from typing import Protocol

from ark.fabric.parts import Nic


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer: ``index`` is its row in the flow table, ``sport`` the port that it drew.

    Where ``pin`` names paths, one a stripe, no scheme is asked: the transfer uses them from its start.
    """

    index: int
    source: Nic
    target: Nic
    size_bytes: int
    start_ns: int
    sport: int
    dport: int
    pin: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where a transfer goes: one path number and one source port a stripe, and when it may begin to send.

    Each stripe gets an equal share of what one flow would get (its window, its weight at a link).
    """

    paths: tuple[int, ...]
    ports: tuple[int, ...]
    start_ns: int


class Scheme(Protocol):
    """One way to choose paths."""

    @property
    def name(self) -> str:
        """Its name in results."""

    @property
    def pooled(self) -> bool:
        """Whether each leaf's uplinks, and downlinks, count as one link: then paths mean nothing."""

    @property
    def balancer(self) -> str:
        """How leaves choose paths packet by packet (``ark.sim.packet.leaves``); "": they only hash."""

    @property
    def goodput(self) -> float:
        """Share of the network's goodput that it leaves, at flow level: what reordering costs."""

    @property
    def stripes_max(self) -> int:
        """The most stripes that a transfer gets."""

    @property
    def segment_bytes(self) -> int | None:
        """Bytes that a stripe pulls from its transfer at a time; None for all at once."""

    @property
    def moves(self) -> bool:
        """Whether ``segment_ended`` is to be called."""

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """Paths for a new transfer; it begins at ``start_ns``, which is ``now_ns`` unless it is held back."""

    def segment_ended(self, now_ns: int, index: int, bytes_left: int) -> Assignment | None:
        """A stripe is at the end of a segment. New paths for the whole transfer, or None to stay.

        Each stripe takes its new path at its own next segment end, never before.
        """

    def completed(self, now_ns: int, index: int) -> None:
        """The sender knows that its last byte has arrived."""

    def next_deadline(self) -> int | None:
        """When ``tick`` has something to do next."""

    def tick(self, now_ns: int) -> list[tuple[int, Assignment]]:
        """Let time pass; new paths of transfers, by index.

        One that is held back begins when it would; one that is under way moves at once.
        """

    def warnings(self) -> list[str]:
        """What people should know about this run."""


class FixedAtArrival:
    """A scheme whose only decision is the path at arrival; it hears nothing else."""

    pooled = False
    balancer = ""
    goodput = 1.0
    stripes_max = 1
    segment_bytes: int | None = None
    moves = False

    def segment_ended(self, now_ns: int, index: int, bytes_left: int) -> Assignment | None:  # noqa: ARG002
        """Nothing moves."""
        return None

    def completed(self, now_ns: int, index: int) -> None:
        """Nothing is kept."""

    def next_deadline(self) -> int | None:
        """Nothing waits."""
        return None

    def tick(self, now_ns: int) -> list[tuple[int, Assignment]]:  # noqa: ARG002
        """Nothing waits."""
        return []

    def warnings(self) -> list[str]:
        """Nothing to say."""
        return []
