"""Rule 13: the epoch grows at every restart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.control.epoch import EPOCH_MAX, first_epoch, jump_over
from ark.errors import LocalProtocolError

epochs = st.integers(0, EPOCH_MAX - 1)


@given(epochs, epochs)
def test_the_first_epoch_exceeds_the_stored_one_and_the_clock(stored: int, wall_ns: int) -> None:
    epoch = first_epoch(stored, wall_ns)
    assert epoch > stored
    assert epoch >= wall_ns
    assert epoch in (stored + 1, wall_ns)


def test_without_a_stored_epoch_the_clock_gives_it() -> None:
    assert first_epoch(None, 17) == 17


@pytest.mark.parametrize(("stored", "wall_ns"), [(None, -1), (EPOCH_MAX, 0), (None, EPOCH_MAX + 1)])
def test_impossible_clocks_and_stores_are_named(stored: int | None, wall_ns: int) -> None:
    with pytest.raises(LocalProtocolError):
        first_epoch(stored, wall_ns)


@given(epochs, epochs)
def test_a_newcomer_jumps_over_a_greater_epoch_only(own: int, known: int) -> None:
    assert jump_over(own, known) == (known + 1 if known > own else None)


def test_the_last_epoch_cannot_be_jumped_over() -> None:
    assert jump_over(5, EPOCH_MAX) is None
