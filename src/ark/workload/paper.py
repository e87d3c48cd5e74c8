"""The workload of the ARK paper: Zipf prompt lengths under Poisson arrivals."""

from typing import Final

import numpy as np

from ark.errors import ConfigError
from ark.workload.arrivals import Arrivals, Poisson, arrival_times_s
from ark.workload.requests import Requests
from ark.workload.streams import Purpose, stream
from ark.workload.zipf import zipf_values

TOKENS_MIN: Final = 1_000
TOKENS_MAX: Final = 52_600
THETA: Final = 0.7
REQUESTS_MAX: Final = 10_000_000
"""Most requests of one synthetic workload; each costs about 100 bytes before the simulation starts."""


def paper_requests(
    *,
    qps: float,
    requests: int,
    seed: int,
    arrivals: Arrivals | None = None,
    tokens_min: int = TOKENS_MIN,
    tokens_max: int = TOKENS_MAX,
    theta: float = THETA,
) -> Requests:
    """Requests as in section 4.1 of the paper: rank-Zipf prompts, Poisson arrivals.

    One output token each: the paper's TTFT ends with the first. The first n requests of a seed are the same
    however many are asked for.

    Raises
    ------
    ConfigError
        If the rate, the count or the law's parameters are not allowed.

    Source
    ------
    ARK paper, section 4.1 (alpha = 0.7, mean ∼13,300 tokens, 125 MB to 6.7 GB at 128 KB a token). The paper
    does not print the bounds; 1,000..52,600 tokens give its sizes and mean.
    """
    checked_count(requests)
    uniform = stream(seed, Purpose.TOKENS).random(requests)
    return Requests(
        arrived_s=arrival_times_s(
            arrivals or Poisson(), qps=qps, count=requests, rng=stream(seed, Purpose.ARRIVALS)
        ),
        prompt_tokens=zipf_values(uniform, value_min=tokens_min, value_max=tokens_max, theta=theta),
        output_tokens=np.ones(requests, dtype=np.int64),
        prefix_tokens=np.zeros(requests, dtype=np.int64),
        origin=f"paper (Zipf {theta:g}, {tokens_min}..{tokens_max} tokens, {arrivals or Poisson()} arrivals)",
    )


def checked_count(requests: int) -> int:
    """The count itself, if a synthetic workload can have that many requests.

    Raises
    ------
    ConfigError
        If it is below 1 or above ``REQUESTS_MAX``.
    """
    if not 1 <= requests <= REQUESTS_MAX:
        raise ConfigError(f"{requests} requests are not allowed; give 1 to {REQUESTS_MAX}")
    return requests
