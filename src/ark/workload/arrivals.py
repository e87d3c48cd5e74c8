"""When requests arrive: processes that give gaps of mean 1, to be divided by the rate.

Gaps are drawn at unit rate and then divided by the rate, so that the same seed gives the same pattern at
every rate, stretched; a sweep over rates compares like with like.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError
from ark.units import quoted

Floats = NDArray[np.float64]

ARRIVED_S_MAX = 1e9
"""Latest arrival of any workload, about 32 years: in nanoseconds it still fits 64 bits."""


class Arrivals(Protocol):
    """A stationary arrival process of rate 1."""

    def unit_gaps(self, count: int, rng: np.random.Generator) -> Floats:
        """The first ``count`` gaps, each 0 or more, of mean 1: float64[count]."""
        ...


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent exponential gaps."""

    def unit_gaps(self, count: int, rng: np.random.Generator) -> Floats:
        """Exponential gaps: float64[count]."""
        return rng.standard_exponential(count)

    def __str__(self) -> str:
        return "poisson"


@dataclass(frozen=True, slots=True)
class Gamma:
    """Independent gamma gaps of coefficient of variation ``cv``: 1 is Poisson, above bursty, below even."""

    cv: float

    def __post_init__(self) -> None:
        """Refuse what has no such law, or whose gaps would round to nothing.

        Raises
        ------
        ConfigError
            If cv is not between 0.01 and 20.
        """
        if not 0.01 <= self.cv <= 20:
            raise ConfigError(f"gamma arrivals: cv {self.cv:g} is not allowed; give 0.01 to 20")

    def unit_gaps(self, count: int, rng: np.random.Generator) -> Floats:
        """Gamma gaps: float64[count]."""
        shape = self.cv**-2
        return rng.standard_gamma(shape, count) / shape

    def __str__(self) -> str:
        text = f"{self.cv:g}"
        return f"gamma:{text if float(text) == self.cv else repr(self.cv)}"


@dataclass(frozen=True, slots=True)
class Constant:
    """One request every second."""

    def unit_gaps(self, count: int, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - one form for all
        """Ones: float64[count]."""
        return np.ones(count)

    def __str__(self) -> str:
        return "constant"


def parse_arrivals(text: str) -> Arrivals:
    """The process that a person names: ``poisson``, ``constant``, ``gamma:2.5`` (the number is the cv).

    Raises
    ------
    ConfigError
        If the text is none of these.
    """
    name, _, argument = text.strip().lower().partition(":")
    plain: dict[str, Callable[[], Arrivals]] = {"poisson": Poisson, "constant": Constant}
    if not argument and name in plain:
        return plain[name]()
    if name == "gamma":
        try:
            cv = float(argument)
        except ValueError:
            cv = math.nan
        if not math.isnan(cv):
            return Gamma(cv)
    raise ConfigError(
        f'{quoted(text)} is no arrival process; known are "poisson", "constant" and "gamma:CV", as "gamma:2"'
    )


def arrival_times_s(process: Arrivals, *, qps: float, count: int, rng: np.random.Generator) -> Floats:
    """Times of the first ``count`` arrivals in seconds, starting one gap after 0: float64[count], sorted.

    Raises
    ------
    ConfigError
        If the rate is not a positive number, or so low that arrivals come after ``ARRIVED_S_MAX``.
    """
    if not 0 < qps < math.inf:
        raise ConfigError(f"rate {qps:g} is not a positive number of requests per second")
    times = np.cumsum(process.unit_gaps(count, rng))
    if not times[-1] <= ARRIVED_S_MAX * qps:
        raise ConfigError(f"rate {qps:g} is too low: {count} requests take more than {ARRIVED_S_MAX:g} s")
    return times / qps
