"""Arrival processes: their mean and burstiness, and what a seed and a rate mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload.arrivals import Arrivals, Constant, Gamma, Poisson, arrival_times_s, parse_arrivals
from ark.workload.streams import Purpose, stream

PROCESSES: list[tuple[Arrivals, float]] = [
    (Poisson(), 1.0),
    (Gamma(3.0), 3.0),
    (Gamma(0.3), 0.3),
    (Constant(), 0.0),
]


@pytest.mark.parametrize(("process", "cv"), PROCESSES)
def test_gaps_have_mean_one_and_their_coefficient_of_variation(process: Arrivals, cv: float) -> None:
    gaps = process.unit_gaps(200_000, stream(1, Purpose.ARRIVALS))
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(1, abs=5 * max(cv, 1e-9) / 200_000**0.5)
    assert gaps.std() == pytest.approx(cv, rel=0.03)


@given(st.floats(0.01, 1000), st.integers(0, 2**32), st.integers(2, 60))
def test_a_rate_stretches_the_pattern_of_its_seed(qps: float, seed: int, count: int) -> None:
    unit = arrival_times_s(Poisson(), qps=1.0, count=count, rng=stream(seed, Purpose.ARRIVALS))
    times = arrival_times_s(Poisson(), qps=qps, count=count, rng=stream(seed, Purpose.ARRIVALS))
    np.testing.assert_allclose(times * qps, unit)
    assert bool(np.all(np.diff(times) >= 0))


def test_streams_of_one_seed_are_independent() -> None:
    draws = np.array([stream(7, purpose).random(20_000) for purpose in Purpose])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5 / 20_000**0.5


@pytest.mark.parametrize("text", ["poisson", "constant", "gamma:2.5", "gamma:0.5", "gamma:1.23456789"])
def test_names_are_read_as_they_are_written(text: str) -> None:
    assert str(parse_arrivals(f" {text.upper()} ")) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weibull", 'no arrival process; known are "poisson"'),
        ("gamma", "no arrival process"),
        ("gamma:x", "no arrival process"),
        ("gamma:nan", "no arrival process"),
        ("gamma:0", "cv 0 is not allowed"),
        ("gamma:1e9", "cv 1e\\+09 is not allowed"),
        ("poisson:3", "no arrival process"),
        ("", "no arrival process"),
    ],
)
def test_other_names_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_arrivals(text)


@pytest.mark.parametrize("qps", [0.0, -1.0, float("nan"), float("inf"), 1e-300])
def test_rates_that_are_none_are_refused(qps: float) -> None:
    with pytest.raises(ConfigError, match=r"^rate "):
        arrival_times_s(Constant(), qps=qps, count=3, rng=stream(0, Purpose.ARRIVALS))


def test_a_negative_seed_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        stream(-1, Purpose.PORTS)
