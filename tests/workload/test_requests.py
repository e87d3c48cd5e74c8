"""Requests: their rate, and the stretching of their times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload.requests import Requests, mean_rate


def requests_at(times: list[float]) -> Requests:
    ones = np.ones(len(times), dtype=np.int64)
    return Requests(np.array(times), ones * 9, ones, ones * 2, "a test")


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30).map(sorted), st.floats(1e-3, 1e3))
def test_at_rate_gives_that_rate(times: list[float], qps: float) -> None:
    requests = requests_at(times)
    if times[-1] - times[0] < 1e-3:
        return
    assert requests.at_rate(qps).qps == pytest.approx(qps)


def test_the_first_ones_and_their_new_tokens() -> None:
    two = requests_at([0.0, 1.0, 5.0]).first(2)
    assert len(two) == 2
    assert two.qps == 1.0
    assert two.new_tokens.tolist() == [7, 7]


def test_a_rate_needs_two_times() -> None:
    assert mean_rate([3.0]) == 0
    assert mean_rate([3.0, 3.0]) == float("inf")
    for times in ([1.0], [1.0, 1.0]):
        with pytest.raises(ConfigError, match="no rate to scale to 5 requests/s"):
            requests_at(times).at_rate(5)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_factors_that_are_none_are_refused(factor: float) -> None:
    with pytest.raises(ConfigError, match="is not a positive number"):
        requests_at([0.0, 1.0]).stretched(factor)
    with pytest.raises(ConfigError, match="is not a positive number"):
        requests_at([0.0, 1.0]).at_rate(factor)


def test_times_stay_within_their_bound() -> None:
    with pytest.raises(ConfigError, match=r"takes more than 1e\+09 s"):
        requests_at([0.0, 1.0]).stretched(1e10)


def test_disorder_and_full_prefixes_are_our_own_mistakes() -> None:
    with pytest.raises(AssertionError):
        requests_at([1.0, 0.0])
    ones = np.ones(1, dtype=np.int64)
    with pytest.raises(AssertionError):
        Requests(np.zeros(1), ones, ones, ones, "prefix as long as the prompt")
