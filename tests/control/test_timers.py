"""Deadlines: like a dictionary that is searched, but faster, and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from ark.control.timers import Deadlines

steps_of_a_test = st.lists(
    st.tuples(st.sampled_from(["set", "cancel", "due"]), st.integers(0, 4), st.integers(0, 20)), max_size=300
)


@given(steps_of_a_test)
def test_deadlines_equal_a_searched_dictionary(steps: list[tuple[str, int, int]]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    expected: dict[int, int] = {}
    for step, key, at in steps:
        if step == "set":
            deadlines.set(key, at)
            expected[key] = at
        elif step == "cancel":
            deadlines.cancel(key)
            expected.pop(key, None)
        else:
            due = deadlines.due(at)
            assert sorted(due) == sorted(key for key, when in expected.items() if when <= at)
            times = [expected.pop(key) for key in due]
            assert times == sorted(times)
        deadlines.check()
        assert len(deadlines) == len(expected)
        assert all(key in deadlines for key in expected)
        assert deadlines.next_deadline() == min(expected.values(), default=None)


def test_moving_one_deadline_forever_takes_no_memory() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("first", -1)
    for at in range(10_000):
        deadlines.set("moved", at)
        deadlines.check()
    assert deadlines.due(10_000) == ["first", "moved"]
