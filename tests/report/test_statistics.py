import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.report.statistics import mean_over_seeds, reduction_over_seeds

positive = st.floats(0.01, 1e3)
pairs = st.lists(st.tuples(positive, positive), min_size=1, max_size=12)


def test_reduction_is_that_of_the_means_not_the_mean_of_reductions() -> None:
    ours = reduction_over_seeds(np.array([10.0, 1.0]), np.array([5.0, 1.0]))
    assert ours.value == pytest.approx(1 - 6 / 11)  # the mean of reductions would be 25 %
    assert ours.p50 == pytest.approx(0.25)


def test_pairs_stay_pairs_when_seeds_are_resampled() -> None:
    base = np.array([1.0, 10.0, 100.0, 1000.0])
    ours = reduction_over_seeds(base, base * 0.7)
    assert ours.low == pytest.approx(0.3)
    assert ours.high == pytest.approx(0.3)


def test_one_seed_has_no_interval() -> None:
    ours = mean_over_seeds(np.array([2.0]))
    assert ours.value == 2.0
    assert not ours.has_interval
    assert np.isnan(ours.low)


def test_interval_covers_the_true_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    samples = rng.exponential(2.0, (300, 40))
    covered = [
        estimate.low <= 2.0 <= estimate.high for estimate in (mean_over_seeds(values) for values in samples)
    ]
    assert 0.88 <= np.mean(covered) <= 0.98  # 95 % less what the bootstrap loses on skewed samples of 40


def test_other_seeds_are_no_pair() -> None:
    with pytest.raises(ValueError, match="same seeds"):
        reduction_over_seeds(np.ones(2), np.ones(3))


@given(pairs)
def test_estimates_lie_between_the_extremes_of_single_seeds(values: list[tuple[float, float]]) -> None:
    base, other = np.array(values).T
    ours = reduction_over_seeds(base, other)
    singles = 1 - other / base
    slack = 1e-9 * max(1.0, float(np.abs(singles).max()))
    assert singles.min() - slack <= ours.value <= singles.max() + slack
    assert ours.p10 <= ours.p50 <= ours.p90
    if ours.has_interval:
        assert ours.low <= ours.high
    assert (
        ours == reduction_over_seeds(base, other) or len(values) == 1
    )  # the same numbers, the same interval
