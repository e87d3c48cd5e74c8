"""All runs of an experiment, over all cores, in a fixed order whatever the number of cores."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Final

from ark.sim.experiment import Experiment, run_point
from ark.sim.results import RunResult
from ark.sim.traffic import PresetWorkload

AHEAD: Final = 4
"""Runs a core that may wait finished for an earlier one: bounds the memory, whatever the sweep."""

FEW_RUNS: Final = 4
"""So few flow-level runs are done here: a process that starts costs about as much as one of them."""

Progress = Callable[[int, int, str], None]
"""Told after each run: how many are done, of how many, and which."""

_experiment: Experiment | None = None
"""The experiment of this worker process."""


def run_all(
    experiment: Experiment, on_progress: Progress | None = None, *, processes: int | None = None
) -> Iterator[RunResult]:
    """Every run of the experiment, in the order of ``Experiment.runs``.

    ``processes`` is the number of worker processes; by default one a core that this process may use, and none
    for a handful of flow-level runs. Results are the same for any number.

    Raises
    ------
    ConfigError
        If the experiment cannot be run; all faults at once, before anything runs.
    SimulationError
        If an engine broke an invariant of its own.
    """
    experiment.check()
    runs = experiment.runs()
    told = on_progress or (lambda done, total, what: None)  # noqa: ARG005 - the form of a progress callback
    if processes is None:
        few = FEW_RUNS if experiment.engine == "flow" else 1
        processes = 0 if len(runs) <= few else min(usable_cores(), len(runs))
    results = _one_by_one(experiment) if processes == 0 else _in_workers(experiment, processes)
    for done, result in enumerate(results, start=1):
        told(done, len(runs), _what(result))
        yield result


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_by_one(experiment: Experiment) -> Iterator[RunResult]:
    for scheme, qps, seed in experiment.runs():
        yield run_point(experiment, scheme, qps, seed)


def _in_workers(experiment: Experiment, processes: int) -> Iterator[RunResult]:
    _compile_once(experiment)
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_adopt, initargs=(experiment,)
    )
    waiting: deque[Future[RunResult]] = deque()
    try:
        for run in experiment.runs():
            waiting.append(_submit(pool, run))
            if len(waiting) >= AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, run: tuple[str, float | None, int]) -> Future[RunResult]:
    """Hand a run to the pool, which starts its next worker now if it has not got all.

    A worker inherits that an interrupt waits until ``_adopt``: one in its first second, which it spends on
    imports, would end it with a traceback of Python's own.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_run, *run)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _compile_once(experiment: Experiment) -> None:
    """Compile the kernel here, or find it compiled, so that the workers don't all compile it at once."""
    tiny = Experiment(
        workload=PresetWorkload(requests=1), schemes=("ideal",), engine=experiment.engine, scale=1000
    )
    run_point(tiny, "ideal", 1.0, 0)


def _adopt(experiment: Experiment) -> None:
    global _experiment  # noqa: PLW0603 - a worker process has one experiment, handed over once
    _experiment = experiment
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends it at once, and without a word
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent has been killed: nobody else would, and it would wait for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(scheme: str, qps: float | None, seed: int) -> RunResult:
    assert _experiment is not None, "a worker is started with its experiment"
    return run_point(_experiment, scheme, qps, seed)


def _what(result: RunResult) -> str:
    point = "" if result.qps is None else f", QPS {result.qps:g}"
    return f"{result.scheme}{point}, seed {result.seed}"
