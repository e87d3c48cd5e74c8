"""Requests as a serving system sees them arrive: times and token counts, one array each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError
from ark.workload.arrivals import ARRIVED_S_MAX

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """A stream of requests in order of arrival.

    Attributes
    ----------
    arrived_s : float64[request]
        Seconds from the start of the trace, never decreasing.
    prompt_tokens, output_tokens : int64[request]
    prefix_tokens : int64[request]
        How many of the prompt's first tokens lie in a cache already; always fewer than the prompt.
    origin : str
        Where the requests come from, for reports.
    notes : tuple of str
        What was done to them on the way in (rows sorted, skipped, spread out), for reports.
    """

    arrived_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    prefix_tokens: Ints
    origin: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check our own invariants; readers have told people about theirs before."""
        count = len(self.arrived_s)
        assert all(len(a) == count for a in (self.prompt_tokens, self.output_tokens, self.prefix_tokens))
        assert bool(np.all(np.diff(self.arrived_s) >= 0)), "requests are in order of arrival"
        assert bool(np.all((self.prefix_tokens >= 0) & (self.prefix_tokens < self.prompt_tokens)))

    def __len__(self) -> int:
        return len(self.arrived_s)

    @property
    def new_tokens(self) -> Ints:
        """Prompt tokens that no cache holds yet: int64[request], 1 or more."""
        return self.prompt_tokens - self.prefix_tokens

    @property
    def qps(self) -> float:
        """Mean arrivals per second between the first and the last arrival.

        0 for fewer than two requests, infinite where all arrive at once.
        """
        return mean_rate(self.arrived_s)

    def first(self, count: int) -> "Requests":
        """Only the first ``count`` requests (all of them, if there are fewer)."""
        return replace(
            self,
            arrived_s=self.arrived_s[:count],
            prompt_tokens=self.prompt_tokens[:count],
            output_tokens=self.output_tokens[:count],
            prefix_tokens=self.prefix_tokens[:count],
        )

    def stretched(self, factor: float) -> "Requests":
        """The same requests with all times multiplied by ``factor``; 0.5 doubles the rate.

        Raises
        ------
        ConfigError
            If the factor is not a positive number, or so large that arrivals come after ``ARRIVED_S_MAX``.
        """
        if not 0 < factor < np.inf:
            raise ConfigError(f"time scale {factor:g} is not a positive number; 0.5 doubles the rate")
        if not self.arrived_s[-1] <= ARRIVED_S_MAX / factor:
            raise ConfigError(
                f"{self.origin}: stretched by {factor:g}, it takes more than {ARRIVED_S_MAX:g} s"
            )
        return replace(self, arrived_s=self.arrived_s * factor)

    def at_rate(self, qps: float) -> "Requests":
        """The same requests, their times stretched so that the mean rate is ``qps``.

        Raises
        ------
        ConfigError
            If the rate is not a positive number, or the trace has no rate of its own to scale.
        """
        if not 0 < qps < np.inf:
            raise ConfigError(f"rate {qps:g} is not a positive number of requests per second")
        if not 0 < self.qps < np.inf:
            raise ConfigError(
                f"{self.origin}: {len(self)} requests arrive within no time, so there is no rate to scale to "
                f"{qps:g} requests/s; give a trace with two or more arrival times, or leave the rate out"
            )
        return self.stretched(self.qps / qps)


def mean_rate(times: Floats | Ints | Sequence[float]) -> float:
    """Events per unit of time in a sorted series: (n - 1) over its span.

    Counting gaps, not events, makes the estimate unbiased for a Poisson process observed from its first
    event. 0 for fewer than two events, infinite where all come at once.
    """
    if len(times) < 2:
        return 0.0
    span = float(times[-1] - times[0])
    return (len(times) - 1) / span if span > 0 else float("inf")
