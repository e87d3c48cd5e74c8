"""All schemes by name, and their parameters."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from ark.control.policy import HOLD_NS
from ark.control.rows import STRIPES_MAX
from ark.errors import ConfigError, Fault
from ark.fabric.topology import Fabric
from ark.sim.schemes.conga import Conga
from ark.sim.schemes.e_ecmp import EEcmp
from ark.sim.schemes.ecmp import Ecmp, Letflow
from ark.sim.schemes.hedera import Hedera
from ark.sim.schemes.ideal import DRILL_GOODPUT, FASTPASS_DELAY_NS, Pooled
from ark.sim.schemes.leaf_chosen import LeafChosen
from ark.sim.schemes.planned import Planned
from ark.sim.schemes.rerouting import Rerouting
from ark.sim.schemes.round_robin import RoundRobin
from ark.sim.schemes.scheme import Scheme, Transfer
from ark.sim.schemes.static_sports import StaticSports
from ark.sim.schemes.steered import Steered
from ark.sim.schemes.uplinks import Uplinks
from ark.units import quoted
from ark.workload.streams import Purpose, stream

SCHEMES: Final = (
    "ecmp",
    "e-ecmp",
    "round-robin",
    "static-sports",
    "letflow",
    "conga",
    "conweave",
    "drill",
    "spray",
    "plb",
    "hedera",
    "fastpass",
    "ark-uplinks",
    "ark-paper",
    "ark",
    "planned",
    "ideal",
)
"""All schemes, in the order of reports."""

SCHEMES_USUAL: Final = ("ecmp", "round-robin", "ark-paper", "ark", "ideal")
"""What runs where nobody says which."""

Engine = Literal["flow", "packet"]

FLOW_ONLY: Final = frozenset({"plb"})
"""Schemes that packets do not have yet."""

LEAVES_CHOOSE: Final = frozenset({"letflow", "conga", "conweave", "drill", "spray"})
"""Schemes in which leaves choose paths packet by packet; the flow level has something near each of them."""

QUEUE_PAIRS: Final = 4
"""Of ``e-ecmp``: parts of a transfer."""

STRIPE_SEGMENT_BYTES: Final = 16 * 2**20
"""Chunk that a stripe pulls by default. With chunks that are large for the transfer its last one runs alone:
12.5 MB cost 0.4 % of FCT on the real ns-3, 50 MB cost 3 %."""

MOVE_SEGMENT_BYTES: Final = 256 * 2**20
"""Segment after which an unstriped transfer may move by default, 20 ms at 100 Gbit/s. At the paper's QPS 25
64 MiB and 1 GiB gain the same within half a point of FCT; each segment end costs a decision."""


class SchemeOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How schemes are run: ``ark`` and ``ark-paper`` where nothing else is said; the others ignore it.

    Attributes
    ----------
    lag_ns
        How much later than its owner all other hosts see a reservation.
    hold_ns
        How long ``ark`` holds back a transfer to hear of simultaneous picks; None for none without lag, and
        else the default of the agent or the lag, whichever is longer. Algorithm 1 has no hold.
    release
        Of ``ark-paper``: who may free a path. ``any`` is Algorithm 1 read literally.
    stripes, moves
        Of ``ark``: paths a transfer, and whether it moves at segment ends where that helps (PROTOCOL rule 9
        lets it move there, too, when it has lost a race).
    min_bytes
        Transfers below are left to ECMP.
    segment_bytes
        Bytes that a stripe pulls at a time and after which it may move; None for the default of either.
    queue_pairs
        Of ``e-ecmp``: parts of a transfer, each under a port of its own.
    """

    lag_ns: int = 0
    hold_ns: int | None = None
    release: Literal["owner", "any"] = "owner"
    stripes: int = 1
    moves: bool = False
    min_bytes: int = 0
    segment_bytes: int | None = None
    queue_pairs: int = QUEUE_PAIRS

    def faults(self) -> list[Fault]:
        """What is not allowed in these options."""
        found = []
        for name, least, most in (
            ("lag_ns", 0, 10**12),
            ("hold_ns", 0, 10**12),
            ("stripes", 1, STRIPES_MAX),
            ("min_bytes", 0, 2**53),
            ("segment_bytes", 1, 2**53),
            ("queue_pairs", 1, STRIPES_MAX),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                found.append(Fault(name, f"{value} is out of bounds; allowed are {least} to {most}"))
        if self.release == "any" and self.lag_ns:
            found.append(Fault("release", '"any" (Algorithm 1 read literally) works without lag only'))
        return found

    @property
    def effective_hold_ns(self) -> int:
        """The hold of ``ark``."""
        if self.hold_ns is not None:
            return self.hold_ns
        return max(HOLD_NS, self.lag_ns) if self.lag_ns else 0

    @property
    def effective_segment_bytes(self) -> int | None:
        """The segment of ``ark``: none where there is neither a second stripe nor a reason to move."""
        if self.segment_bytes is not None:
            return self.segment_bytes
        if self.stripes > 1:
            return STRIPE_SEGMENT_BYTES
        return MOVE_SEGMENT_BYTES if self.moves_at_segment_ends else None

    @property
    def moves_at_segment_ends(self) -> bool:
        """Whether ``ark`` is asked at segment ends: to move where it helps, or because a race was lost.

        Without lag no race is ever lost.
        """
        return self.moves or self.lag_ns > 0


def chunk_bytes(segment_bytes: int | None, size_bytes: int, stripes: int) -> int | None:
    """Bytes that each of a transfer's stripes pulls at a time; None for all at once.

    This is the segment, but no more than an even share: a transfer shorter than a segment would be in one
    stripe, while all hosts count it on the paths of all.
    """
    if segment_bytes is None or stripes == 1:
        return segment_bytes
    return min(segment_bytes, -(-size_bytes // stripes))


def check_schemes(names: Sequence[str], engine: Engine = "flow") -> None:
    """Refuse a list of schemes that cannot be run.

    Raises
    ------
    ConfigError
        If it is empty, has a name twice, one that is unknown (the nearest is named), or one that the engine
        does not have.
    """
    there = [name for name in SCHEMES if engine == "flow" or name not in FLOW_ONLY]
    faults = []
    if not names:
        faults.append(Fault("schemes", f"none given; there are {', '.join(there)}"))
    for name in dict.fromkeys(names):
        if name not in SCHEMES:
            near = get_close_matches(name, there, n=1)
            what = f'is not known; did you mean "{near[0]}"?' if near else "is not known"
        elif name not in there:
            what = "runs at flow level only; leave --engine packet or the scheme out"
        elif names.count(name) > 1:
            what = "is given twice"
        else:
            continue
        faults.append(Fault("schemes", f"{quoted(name)} {what}; there are {', '.join(there)}"))
    if faults:
        raise ConfigError(*faults)


def make_scheme(
    name: str,
    fabric: Fabric,
    options: SchemeOptions,
    *,
    transfers: Sequence[Transfer],
    seed: int,
    engine: Engine = "flow",
) -> Scheme:
    """A fresh scheme for one run of these transfers.

    Raises
    ------
    ConfigError
        If there is no such scheme in this engine.
    """
    check_schemes([name], engine)
    if name.startswith("ark") and name != "ark-uplinks":
        return _steered(name, fabric, options, transfers, seed)
    if name in LEAVES_CHOOSE and engine == "packet":
        return LeafChosen(name, fabric, transfers)
    makers: dict[str, Callable[[], Scheme]] = {
        "ecmp": lambda: Ecmp(fabric, transfers),
        "e-ecmp": lambda: EEcmp(fabric, transfers, options.queue_pairs, _draw(seed)),
        "round-robin": lambda: RoundRobin(fabric, transfers),
        "static-sports": lambda: StaticSports(fabric, transfers),
        "letflow": lambda: Letflow(fabric, transfers),
        "conga": lambda: Conga(fabric, transfers, _draw(seed)),
        "conweave": lambda: Rerouting("conweave", fabric, transfers, _draw(seed)),
        "drill": lambda: Pooled("drill", goodput=DRILL_GOODPUT),
        "spray": lambda: Pooled("spray"),
        "plb": lambda: Rerouting("plb", fabric, transfers, _draw(seed)),
        "hedera": lambda: Hedera(fabric, transfers, _spread(seed, transfers)),
        "fastpass": lambda: Pooled("fastpass", delay_ns=FASTPASS_DELAY_NS),
        "ark-uplinks": lambda: Uplinks(fabric, transfers, _spread(seed, transfers)),
        "planned": lambda: Planned(fabric, transfers, _spread(seed, transfers)),
        "ideal": Pooled,
    }
    return makers[name]()


def _steered(
    name: str, fabric: Fabric, options: SchemeOptions, transfers: Sequence[Transfer], seed: int
) -> Scheme:
    spread = _spread(seed, transfers)
    if name == "ark-paper":
        return Steered(
            fabric,
            "paper",
            transfers,
            spread,
            lag_ns=options.lag_ns,
            release=options.release,
            min_bytes=options.min_bytes,
            seed=seed,
        )
    return Steered(
        fabric,
        "ark",
        transfers,
        spread,
        lag_ns=options.lag_ns,
        hold_ns=options.effective_hold_ns,
        stripes=options.stripes,
        moves=options.moves,
        segment_ends=options.moves_at_segment_ends,
        min_bytes=options.min_bytes,
        segment_bytes=options.effective_segment_bytes,
        seed=seed,
    )


def _draw(seed: int) -> np.random.Generator:
    """Random numbers of a scheme that draws as it goes."""
    return stream(seed, Purpose.SPREAD)


def _spread(seed: int, transfers: Sequence[Transfer]) -> list[int]:
    """A random number for each transfer."""
    numbers: list[int] = _draw(seed).integers(0, 2**62, len(transfers)).tolist()
    return numbers
