"""The paper's prompt lengths: the published vector of Vidur's generator, and the law's own rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload.zipf import zipf_constants, zipf_values


def test_constants_of_vidurs_generator() -> None:
    law = zipf_constants(1000, 55000, 0.7)
    assert law.ranks == 54001
    assert law.zeta == pytest.approx(84.840569, abs=5e-7)
    assert law.eta == pytest.approx(0.96453182, abs=5e-9)


def test_draws_of_vidurs_generator() -> None:
    uniform = np.random.RandomState(42).random_sample(1000)
    tokens = zipf_values(uniform, value_min=1000, value_max=55000, theta=0.7)
    assert tokens[:8].tolist() == [3477, 46908, 20926, 11560, 1198, 1198, 1018, 35066]
    assert round(float(tokens.mean()), 1) == 13621.6
    assert tokens.dtype == np.int64


@given(
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=50),
    st.integers(0, 5000),
    st.integers(2, 5000),
    st.floats(0.01, 0.99),
)
def test_values_stay_in_range_and_never_decrease(
    uniform: list[float], low: int, span: int, theta: float
) -> None:
    values = zipf_values(np.sort(np.array(uniform)), value_min=low, value_max=low + span, theta=theta)
    assert values.min() >= low
    assert values.max() <= low + span
    assert bool(np.all(np.diff(values) >= 0))


@pytest.mark.parametrize(
    ("low", "high", "theta"),
    [(1000, 1001, 0.7), (-1, 10, 0.7), (0, 2**40, 0.7), (1, 10, 1.0), (1, 10, 0.0), (1, 10, float("nan"))],
)
def test_what_is_no_law_is_refused(low: int, high: int, theta: float) -> None:
    with pytest.raises(ConfigError, match=r"Zipf .* not allowed"):
        zipf_constants(low, high, theta)
