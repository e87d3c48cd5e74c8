"""Times by class."""

from hypothesis import given
from hypothesis import strategies as st

from ark.control.histogram import Times, decades_ns


def test_bounds_are_round() -> None:
    assert decades_ns(1_000, 2) == (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


@given(st.lists(st.integers(0, 10**12)))
def test_every_time_is_in_the_first_class_that_holds_it(taken_ns: list[int]) -> None:
    times = Times(decades_ns(1_000, 5))
    for one in taken_ns:
        times.add(one)
    for place, bound in enumerate(times.bounds_ns):
        assert sum(times.counts[: place + 1]) == sum(one <= bound for one in taken_ns)
    assert sum(times.counts) == len(taken_ns)
    assert times.total_ns == sum(taken_ns)
