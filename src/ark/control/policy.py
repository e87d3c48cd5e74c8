"""What a path policy is asked, what it answers, and its parameters.

A *chooser* is the part in which policies differ: ``ark.control.choice`` (``policy="ark"``) and
``ark.control.paper`` (``policy="paper"``). Everything else of a transfer's life is ``ark.control.decider``'s.
"""

from typing import Final, Literal, NamedTuple, Protocol

from msgspec import Struct

from ark.control.geometry import EVERY_PATH
from ark.control.rows import STRIPES_MAX, Change, Row
from ark.errors import ConfigError
from ark.units import NS_PER_S

HOLD_NS: Final = 1_000_000
"""Default hold: one-way delay and clock skew of a datacenter, with a wide margin (rule 9)."""

HOLDS_PER_TRANSFER: Final = 100
"""A transfer is held back only if it should last more than this many holds: that costs below 1 % (rule 9)."""

SHORT_NS: Final = 10_000_000
"""Transfers shorter than this at line rate are answered at once and not announced, by default (rule 6)."""

RACES_MAX: Final = 2
"""How often one transfer may be assigned anew because it lost a race (rule 8)."""

_BITS_PER_BYTE: Final = 8


class Policy(Struct, frozen=True, kw_only=True):
    """Parameters of the decisions of one host; all hosts of a cluster should have the same.

    Parameters
    ----------
    name
        ``"ark"``, or ``"paper"`` for Algorithm 1.
    line_rate_bps
        Rate of a NIC, by which durations are judged.
    hold_ns
        How long a new transfer is held back to hear of simultaneous ones; 0 for never.
    min_bytes
        Transfers below are not managed; None for 10 ms at line rate.
    stripes
        Paths a transfer; only ``"ark"``.
    moves
        Whether transfers also move at segment ends where that helps; only ``"ark"``.
    """

    name: Literal["ark", "paper"]
    line_rate_bps: int
    hold_ns: int = HOLD_NS
    min_bytes: int | None = None
    stripes: int = 1
    moves: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        faults = []
        if self.name not in {"ark", "paper"}:
            faults.append(f'policy "{self.name}" is unknown; known are "ark" and "paper"')
        if self.line_rate_bps <= 0:
            faults.append(f"line rate {self.line_rate_bps} bit/s: must be positive")
        if self.hold_ns < 0:
            faults.append(f"hold {self.hold_ns} ns: must not be negative")
        if not 1 <= self.stripes <= STRIPES_MAX:
            faults.append(f"{self.stripes} stripes: allowed are 1 to {STRIPES_MAX}")
        if self.name == "paper" and (self.stripes != 1 or self.moves):
            faults.append('policy "paper" has one path and no moves; use "ark" for stripes and moves')
        if faults:
            raise ConfigError(*faults)

    @property
    def managed_bytes(self) -> int:
        """The smallest transfer that is managed, bytes."""
        if self.min_bytes is not None:
            return self.min_bytes
        return self.line_rate_bps * SHORT_NS // (_BITS_PER_BYTE * NS_PER_S)

    def hold_for(self, size_bytes: int) -> int:
        """How long a transfer of this size is held back, ns: the hold, or 0 if it would cost too much."""
        lasts_ns = size_bytes * _BITS_PER_BYTE * NS_PER_S // self.line_rate_bps
        return self.hold_ns if lasts_ns > HOLDS_PER_TRANSFER * self.hold_ns else 0


class Request(NamedTuple):
    """A transfer that needs paths.

    ``rotation`` is its own number for ties (a hash of host and flow), ``spread`` the random number for a
    random path. ``mask`` has a set bit for each path that it can be sent over: none leads over the others.
    """

    source: int
    target: int
    size_bytes: int
    rotation: int
    spread: int
    mask: int = EVERY_PATH


class Pick(NamedTuple):
    """Chosen path numbers, one a stripe; ``fallback`` if they are random and hold nothing."""

    paths: tuple[int, ...]
    fallback: bool


class Chooser(Protocol):
    """The part in which path policies differ. It reads the table through a ledger of its own."""

    @property
    def yields(self) -> bool:
        """Whether a transfer that loses a race while it sends gives up what its row holds."""

    def pick(self, request: Request) -> Pick:
        """Paths for a new transfer."""

    def blind(self, request: Request) -> Pick:
        """Paths for a new transfer while too little of the others is known."""

    def repick(self, row: Row, request: Request) -> Pick | None:
        """Paths for a transfer that may move and whose ``row`` is in the table; None for those it has."""

    def resume(self, request: Request, paths: tuple[int, ...]) -> Pick:
        """How a transfer that already runs on ``paths`` is to be announced."""

    def claims(self, change: Change) -> bool:
        """Whether a change of somebody else's row can make transfers decide again."""

    def contests(self, own: Row, row: Row) -> bool:
        """Whether ``row``, which has the smaller key, claims what ``own`` has."""
