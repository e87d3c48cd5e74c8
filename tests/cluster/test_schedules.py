"""Random schedules of faults against real controllers: no invariant may break at any event."""

import pytest

from ark.testing import random_schedule, run, shrink

SCHEDULES = 300
BLOCK = 15


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SCHEDULES, BLOCK))
def test_no_schedule_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + BLOCK):
        failure = run(random_schedule(seed))
        if failure is not None:
            pytest.fail(str(shrink(failure)))
