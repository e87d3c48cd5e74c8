"""Means over seeds, reductions between schemes, and how sure and how scattered both are.

One seed is one draw of the whole workload, and single draws differ by several points. So a reduction is one
of the means over *all* seeds (not the mean of reductions), its confidence interval comes from resampling
seeds, and both schemes of a pair are resampled together, because they saw the same traffic.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 4000
"""Bootstrap resamples: the 2.5 % point then rests on 100 of them."""

_GENERATOR_SEED: Final = 20_260_817  # fixed: the same results give the same intervals
_SPREAD: Final = (10.0, 50.0, 90.0)
_CONFIDENCE: Final = (2.5, 97.5)

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over all seeds: its value, its 95 % confidence interval, and single seeds' percentiles.

    ``low`` and ``high`` are NaN with one seed: nothing can be said about others.
    """

    value: float
    low: float
    high: float
    p10: float
    p50: float
    p90: float
    seeds: int

    @property
    def has_interval(self) -> bool:
        """Whether there were seeds enough for a confidence interval."""
        return self.seeds > 1


def mean_over_seeds(values: Values) -> Estimate:
    """Mean of one figure over seeds; ``values`` is float64[seed].

    Source: percentile bootstrap, Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.
    """
    resampled = values[_resamples(values.size)].mean(axis=1)
    return _estimate(float(values.mean()), resampled, values)


def reduction_over_seeds(base: Values, other: Values) -> Estimate:
    """By which share ``other`` is lower than ``base`` (0.27 = 27 % lower; negative = higher).

    Both are float64[seed] in the same order of seeds. The value is that of the means over all seeds, the
    percentiles are those of single seeds.
    """
    if base.shape != other.shape:
        raise ValueError(f"pairs need the same seeds, got {base.size} and {other.size}")
    picks = _resamples(base.size)
    resampled = 1.0 - other[picks].mean(axis=1) / base[picks].mean(axis=1)
    return _estimate(float(1.0 - other.mean() / base.mean()), resampled, 1.0 - other / base)


def _resamples(seeds: int) -> NDArray[np.int64]:
    if seeds < 1:
        raise ValueError("no seeds, no statistics")
    return np.random.default_rng(_GENERATOR_SEED).integers(0, seeds, (RESAMPLES, seeds))


def _estimate(value: float, resampled: Values, singles: Values) -> Estimate:
    low, high = np.percentile(resampled, _CONFIDENCE) if singles.size > 1 else (np.nan, np.nan)
    p10, p50, p90 = np.percentile(singles, _SPREAD)
    return Estimate(value, float(low), float(high), float(p10), float(p50), float(p90), singles.size)
