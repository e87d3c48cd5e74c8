"""Rule 16: stamps keep causal order whatever the wall clocks do."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ark.control.clock import AHEAD_MAX_NS, HybridClock

walls = st.integers(0, 2**62)


@given(st.lists(walls, min_size=2))
def test_stamps_grow_even_when_the_wall_clock_steps_back(readings: list[int]) -> None:
    clock = HybridClock()
    stamps = [clock.stamp(wall) for wall in readings]
    assert all(late > early for early, late in pairwise(stamps))
    assert all(stamp >= wall for stamp, wall in zip(stamps, readings, strict=True))


def test_a_stamp_is_the_wall_time_where_nothing_forbids_it() -> None:
    clock = HybridClock()
    assert clock.stamp(1000) == 1000
    assert clock.stamp(5000) == 5000
    assert clock.stamp(4000) == 5001


@given(walls, walls, walls)
def test_what_follows_a_merged_stamp_is_greater_than_it(sender_wall: int, heard_at: int, later: int) -> None:
    stamp = HybridClock().stamp(sender_wall)
    receiver = HybridClock()
    merged = receiver.merge(stamp, heard_at)
    assert merged == (stamp <= heard_at + AHEAD_MAX_NS)
    if merged:
        assert receiver.stamp(later) > stamp
    else:
        assert receiver.stamp(later) == max(later, 1)


def test_a_clock_goes_on_after_the_last_stamp_of_its_former_life() -> None:
    assert HybridClock(last=10**18).stamp(5) == 10**18 + 1
