"""Independent random streams of one seed, one a purpose.

Sizes, arrivals, pairs and ports of one run come from streams of their own, so that a change to one of them (a
higher rate, another fabric, more schemes) leaves the others as they were. Every scheme of one (qps, seed)
then sees the same traffic.
"""

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of the results and never change or move."""

    TOKENS = 1
    ARRIVALS = 2
    PAIRS = 3
    PORTS = 4
    JITTER = 5
    OUTPUT_TOKENS = 6
    SPREAD = 7


def stream(seed: int, purpose: Purpose) -> np.random.Generator:
    """The generator of one purpose under one seed; calling it twice gives the same numbers twice.

    Raises
    ------
    ValueError
        If the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"a seed is 0 or more, got {seed}")
    return np.random.default_rng([seed, int(purpose)])
