"""The flat arrays in which the flow-level kernel keeps all live transfers.

Only live stripes are in here. They lie densely in places ``0 .. live-1`` (the last one fills the gap when one
ends), so the kernel scans nothing else, and memory follows the most transfers that were ever live at once. A
flow keeps its slot for life. Beside the record arrays there are ``stripe_links[place, hop]`` (the links of a
stripe's path), ``flow_place[slot, number]`` (where each stripe of a flow lies, -1 = ended), scratch space of
the water filling, and the kernel's answers: ``ended[i]`` (slot) and ``asked[i, 0:2]`` (slot, number).

Bytes are whole numbers below 2⁵³ wherever chunks are taken off, so that no rounding piles up.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]
Table = NDArray[np.int32]

STRIPE: Final = np.dtype(
    [
        ("left", np.float64),  # bytes left of its chunk; 0 = waits for bytes to come to be
        ("rate", np.float64),  # bytes/ns, valid until something changes
        ("weight", np.float64),  # in the sharing of links
        ("flow", np.int32),  # slot of its flow
        ("number", np.int32),  # which stripe of its flow
        ("hops", np.int32),  # links on its path
    ],
    align=True,
)

FLOW: Final = np.dtype(
    [
        ("pool", np.float64),  # bytes that no stripe has taken yet
        ("hidden", np.float64),  # bytes that don't exist yet: layers still to be computed
        ("release_ns", np.float64),  # when the next part of them comes to be
        ("every_ns", np.float64),  # from one such part to the next
        ("part", np.float64),  # bytes of such a part
        ("chunk", np.float64),  # most bytes that a stripe takes from the pool at a time
        ("open", np.int32),  # stripes that have not ended
        ("asks", np.int32),  # 1 = stop at the end of each chunk: the scheme may move the stripe
    ],
    align=True,
)

LINK: Final = np.dtype(
    [
        ("rate", np.float64),  # goodput in bytes/ns
        ("room", np.float64),  # scratch: what frozen stripes leave of it
        ("weight", np.float64),  # scratch: sum over its open stripes
        ("open", np.int32),  # scratch: stripes whose water still rises; 0 between two fillings
        ("first", np.int32),  # scratch: where its stripes begin in ``members``
    ],
    align=True,
)

ENTRY: Final = np.dtype([("level", np.float64), ("link", np.int32)], align=True)  # of the heap of links

LIVE: Final = 0
ENDED: Final = 1
ASKED: Final = 2
STALE: Final = 3
"""Places in ``counts``: live stripes, ended flows, stripes at a segment end; 1 = the rates are stale."""


class KernelArguments(NamedTuple):
    """What ``advance`` takes, in order; see the module's text."""

    counts: NDArray[np.int64]
    stripes: Records
    stripe_links: Table
    flows: Records
    flow_place: Table
    links: Records
    members: NDArray[np.int32]
    heap: Records
    ended: NDArray[np.int32]
    asked: Table
