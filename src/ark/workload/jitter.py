"""Arrival times that a trace gives only in batches, and their spreading over the batch.

Mooncake's traces stamp requests every 3 s, BurstGPT's every second. Taken as they are, the requests of one
batch arrive at the same instant, which is a harder test for a network than what really happened; spread
evenly at random they are milder. Neither is the truth, so reports say which was run.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.units import format_time
from ark.workload.streams import Purpose, stream

Floats = NDArray[np.float64]

_SHARE_OF_TIMES_MAX: Final = 0.9
"""A trace is batched if it has fewer distinct times than this share of its requests."""


def is_batched(arrived_s: Floats) -> bool:
    """Whether many requests share their time of arrival with others."""
    return len(arrived_s) > 1 and len(np.unique(arrived_s)) < _SHARE_OF_TIMES_MAX * len(arrived_s)


def batch_note(arrived_s: Floats) -> str:
    """How the times of a batched trace are batched, for reports."""
    times, sizes = np.unique(arrived_s, return_counts=True)
    return (
        f"{len(arrived_s)} requests arrive at only {len(times)} distinct times, up to {sizes.max()} at once, "
        f"{format_time(batch_width_s(times))} apart"
    )


def batch_width_s(times: Floats) -> float:
    """Seconds between batches: the median gap between distinct, sorted times; 0 for a single one."""
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def spread_batches(arrived_s: Floats, seed: int) -> Floats:
    """Times spread uniformly at random from each batch's stamp to the next, at most one batch width: sorted.

    Requests keep their order. A single batch stays as it is, since nothing says how wide it is.
    """
    times, batch = np.unique(arrived_s, return_inverse=True)
    width = batch_width_s(times)
    room = np.minimum(np.append(np.diff(times), width), width)
    offset = stream(seed, Purpose.JITTER).random(len(arrived_s))
    # Sorted within each batch, so that the order of rows in the file stays the order of arrival.
    offset = offset[np.lexsort((offset, batch))]
    return np.asarray(times[batch] + offset * room[batch])
