"""Random schedules of faults against real controllers: no invariant may break at any event.

``ARK_SCHEDULES`` says how many; ``make test-long`` runs 10,000.
"""

import os

import pytest

from ark.testing import Failure, Schedule, random_schedule, run, shrink

CLOSELY = 100
"""Schedules with all checks after every event."""

SCHEDULES = int(os.environ.get("ARK_SCHEDULES", "1000"))
BLOCK = 50


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLOSELY, BLOCK))
def test_no_event_breaks_an_invariant(first: int) -> None:
    play(range(first, first + BLOCK), check_every=1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SCHEDULES, BLOCK))
def test_no_schedule_breaks_an_invariant(first: int) -> None:
    play(range(first, min(SCHEDULES, first + BLOCK)), check_every=32)


def play(seeds: range, *, check_every: int) -> None:
    def again(schedule: Schedule) -> Failure | None:
        return run(schedule, check_every=check_every)

    for seed in seeds:
        failure = again(random_schedule(seed))
        if failure is not None:
            pytest.fail(str(shrink(failure, again)))
