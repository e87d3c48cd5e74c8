"""How schemes and parts of TTFT look and what they are called, the same in each figure, table and sentence.

Every scheme differs from the others in colour, lightness, marker *and* dashes: people with any colour vision
tell them apart, and so does a grey print. The colours are those of Okabe and Ito ("Color Universal Design",
2008), the two blues darkened and lightened so that all differ in lightness.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Look:
    """One scheme: its name for people, one sentence that explains it, and how its line is drawn."""

    label: str
    sentence: str
    colour: str
    marker: str
    dashes: tuple[float, ...]  # on, off, … in points; () = solid


LOOKS: Final = {
    "ecmp": Look(
        "ECMP",
        "What switches do today: a hash of each transfer's addresses and ports picks its path, whatever else "
        "is on that path.",
        "#D55E00",
        "o",
        (),
    ),
    "round-robin": Look(
        "round robin",
        "Each host takes the next path for each next transfer, without knowing what other hosts do.",
        "#8A8A8A",
        "^",
        (7, 2, 1.5, 2),
    ),
    "ark-paper": Look(
        "ARK (paper)",
        "ARK as published: each transfer reserves one whole spine, for the whole fabric; when all spines are "
        "reserved, it falls back to a random path.",
        "#3D9BD9",
        "s",
        (5, 2),
    ),
    "ark": Look(
        "ARK",
        "ARK as built here: each transfer takes the path whose busiest link carries the fewest transfers, "
        "and tells all other hosts.",
        "#00406E",
        "D",
        (),
    ),
    "ideal": Look(
        "ideal",
        "A bound, no scheme: all uplinks of a leaf act as one link of the summed rate, so no choice of paths "
        "can do better.",
        "#111111",
        "x",
        (1, 1.8),
    ),
}
"""The schemes by the names of the command line, in the order in which reports show them."""

_SPARE: Final = (
    ("#CC79A7", "v", (3, 1.5)),
    ("#009E73", "P", (6, 2, 2, 2)),
    ("#B8A800", "X", (2, 2)),
    ("#6A3D9A", "<", (8, 2)),
)


def look(scheme: str) -> Look:
    """How to draw and describe ``scheme``; one that this table does not know gets a look of its own name."""
    known = LOOKS.get(scheme)
    if known is not None:
        return known
    colour, marker, dashes = _SPARE[sum(scheme.encode()) % len(_SPARE)]
    return Look(scheme, f'The load-balancing scheme "{scheme}".', colour, marker, dashes)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of TTFT: its name for people and how its piece of a bar is drawn."""

    label: str
    colour: str
    hatch: str


PARTS: Final = {
    "queue": Part("waiting for a prefill GPU", "#BFBFBF", ""),
    "prefill": Part("prefill", "#E8D9A8", ""),
    "reserve": Part("reserving a path", "#111111", ""),
    "alone": Part("transfer, bytes at line rate", "#7FB8E0", "///"),
    "shared": Part("transfer, sharing links", "#D55E00", "xxx"),
    "decode1": Part("first decode step", "#7A9E7E", ""),
}
