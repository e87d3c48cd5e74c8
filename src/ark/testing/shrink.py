"""Find the few faults and transfers of a failing schedule that it takes to fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ark.testing.cluster import Cluster
from ark.testing.schedule import Schedule

T = TypeVar("T")

RUNS_MAX: Final = 400
"""Runs spent on shrinking: about a minute. Then the smallest schedule so far is the answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a schedule failed; its text is what to paste into a test."""

    schedule: Schedule
    error: Exception

    def __str__(self) -> str:
        kind = type(self.error).__name__
        return f"seed {self.schedule.seed} fails with {kind}: {self.error}\nrun({self.schedule!r})"


def run(schedule: Schedule, *, check_every: int = 1) -> Failure | None:
    """Run a schedule; how it failed, or None if every invariant held. ``check_every`` as of ``Cluster``."""
    try:
        Cluster(schedule, check_every=check_every).run()
    except Exception as error:  # noqa: BLE001 - whatever a controller raises is a failure to be shown
        return Failure(schedule, error)
    return None


def shrink(failure: Failure, again: Callable[[Schedule], Failure | None] = run) -> Failure:
    """The smallest schedule found that still fails with the same kind of error.

    Faults and transfers are left out in ever smaller blocks, as long as that keeps it failing.
    Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", TSE 2002 (ddmin).
    """
    best = failure
    runs = 0

    def fails(schedule: Schedule) -> bool:
        nonlocal best, runs
        runs += 1
        found = again(schedule) if runs <= RUNS_MAX else None
        if found is None or type(found.error) is not type(failure.error):
            return False
        best = found
        return True

    _minimize(best.schedule.faults, lambda faults: fails(replace(best.schedule, faults=faults)))
    _minimize(best.schedule.transfers, lambda transfers: fails(replace(best.schedule, transfers=transfers)))
    return best


def _minimize(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool]) -> None:
    left = tuple(items)
    block = max(1, len(left) // 2)
    while left:
        start = 0
        while start < len(left):
            fewer = left[:start] + left[start + block :]
            if fails(fewer):
                left = fewer
            else:
                start += block
        if block == 1:
            return
        block = max(1, block // 2)
