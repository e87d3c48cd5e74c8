"""Token counts from the bounded rank-Zipf law that Vidur uses for prompt lengths, without its scrambling.

Rank 1 is the shortest prompt, so short prompts are the most frequent and the tail is long.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError

SPAN_MAX = 100_000_000
"""Widest range of values; the harmonic sum runs over it once."""


class ZipfConstants(NamedTuple):
    """The numbers that depend only on the range and the exponent."""

    ranks: int
    zeta: float
    exponent: float
    eta: float


@lru_cache(maxsize=32)
def zipf_constants(value_min: int, value_max: int, theta: float) -> ZipfConstants:
    """Harmonic sum and shape constants of the law on ``value_min..value_max``.

    Raises
    ------
    ConfigError
        If the range has fewer than 3 or more than ``SPAN_MAX`` values, starts below 0, or theta is outside
        (0, 1).

    Source
    ------
    Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994, with the departures of
    Vidur's ZipfGenerator: the sum stops at ranks - 1, and the sum of the first two ranks is 1, not 1 +
    2^-theta.
    """
    ranks = value_max - value_min + 1
    if value_min < 0 or not 3 <= ranks <= SPAN_MAX:
        raise ConfigError(
            f"Zipf range {value_min}..{value_max} is not allowed; give 0 <= min, and 3 to {SPAN_MAX} values"
        )
    if not 0 < theta < 1:
        raise ConfigError(f"Zipf theta {theta:g} is not allowed; it lies between 0 and 1, both excluded")
    zeta = float(np.sum(np.arange(1, ranks, dtype=np.float64) ** -theta))
    zeta_of_two = 1.0
    eta = (1 - (2 / ranks) ** (1 - theta)) / (1 - zeta_of_two / (zeta + 1e-8))
    return ZipfConstants(ranks, zeta, 1 / (1 - theta), eta)


def zipf_values(
    uniform: NDArray[np.float64], *, value_min: int, value_max: int, theta: float
) -> NDArray[np.int64]:
    """Map uniform numbers in [0, 1) to values in ``value_min..value_max``, one each: int64, same shape.

    Randomness is passed in, so any generator serves; the map never decreases.

    Raises
    ------
    ConfigError
        As ``zipf_constants``.
    """
    law = zipf_constants(value_min, value_max, theta)
    steps = law.ranks * (law.eta * uniform - law.eta + 1) ** law.exponent
    # Above 1 - 1/ranks the curve can reach ranks itself by rounding: the last value is the last one allowed.
    values = value_min + np.minimum(steps.astype(np.int64), law.ranks - 1)
    scaled = uniform * law.zeta
    values = np.where(scaled < 1 + 0.5**theta, value_min + 1, values)
    return np.where(scaled < 1, value_min, values)
