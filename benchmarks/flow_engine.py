"""How fast the flow-level engine is: one point, a large fabric, a sweep, compiled against interpreted.

Run it as ``python benchmarks/flow_engine.py [point] [large] [sweep] [interpreter]`` (all without names); it
exits with 1 if a budget is missed. CPU times are of this process and its children, best of n where n > 1; a
machine that does other work stretches them by up to half (shared caches and hyper-threads).

Sketch: a paper point has 1000 arrivals and 1000 completions, about 20 live transfers on 4 links each. Filling
rates touches 20 x 4 entries and a heap of 40 links, some 5 us; the Python around an event costs 20 to 50 us,
so 0.05 to 0.1 s. On the large fabric 200 to 400 transfers are live: about 60 us an event, 200,000 events,
12 s, and as much again for the loop; `ark` adds two decisions of 50 us a transfer, 10 s.
"""

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final

from ark.fabric import leaf_spine
from ark.sim.experiment import Experiment, qps_of_load, run_point
from ark.sim.sweep import run_all, usable_cores
from ark.sim.traffic import PresetWorkload

POINT_MAX_S: Final = 0.3
LARGE_MAX_S: Final = 120.0
LARGE_MAX_MIB: Final = 1000.0
SWEEP_MAX_S: Final = 60.0
LARGE_FLOWS: Final = 100_000
SWEEP_QPS: Final = (1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0)


def main(names: list[str]) -> int:
    """Run the named parts and say what came out; 1 if a budget was missed."""
    parts: dict[str, Callable[[], list[bool]]] = {
        "point": point,
        "large": large,
        "sweep": sweep,
        "interpreter": interpreter,
    }
    print(f"{platform.machine()}, Python {platform.python_version()}, {usable_cores()} cores")
    kept = [ok for name in names or parts for ok in parts[name]()]
    return 0 if all(kept) else 1


def say(what: str, value: float, unit: str, most: float) -> bool:
    """Print one figure beside its budget; whether it is kept."""
    kept = value <= most
    print(f"{what:<46} {value:9.3f} {unit:<4} budget {most:g} {unit} {'' if kept else 'MISSED'}", flush=True)
    return kept


def cpu_s() -> float:
    """CPU time of this process and its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def point() -> list[bool]:
    """One paper point: 1000 requests, one scheme, compiled; best of 5."""
    experiment = Experiment()
    kept = []
    for scheme in experiment.schemes:
        run_point(experiment, scheme, 25.0, 0)
        times = []
        for seed in range(5):
            begun = time.process_time()
            run_point(experiment, scheme, 25.0, seed)
            times.append(time.process_time() - begun)
        kept.append(say(f"paper point, {scheme}", min(times), "s", POINT_MAX_S))
    return kept


def large() -> list[bool]:
    """100,000 transfers on 512 hosts, each scheme in a process of its own so that its memory is seen."""
    kept = []
    for scheme in ("ecmp", "ark", "ark-paper"):
        done = subprocess.run(
            [sys.executable, __file__, "--large", scheme], check=True, capture_output=True, text=True
        )
        seconds, mebibytes = map(float, done.stdout.split())
        kept.append(say(f"{LARGE_FLOWS} flows, 512 hosts, load 0.7, {scheme}", seconds, "s", LARGE_MAX_S))
        kept.append(say("    its peak memory", mebibytes, "MiB", LARGE_MAX_MIB))
    return kept


def large_alone(scheme: str) -> None:
    """Print CPU seconds and peak MiB of one scheme on the large fabric."""
    experiment = Experiment(
        fabric=leaf_spine(16, 8, 32), workload=PresetWorkload(requests=LARGE_FLOWS), schemes=(scheme,)
    )
    run_point(Experiment(workload=PresetWorkload(requests=2)), scheme, 1.0, 0)
    begun = time.process_time()
    run_point(experiment, scheme, qps_of_load(experiment, 0.7), 0)
    seconds = time.process_time() - begun
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def sweep() -> list[bool]:
    """7 QPS x 5 schemes x 10 seeds: CPU time over the cores of the budget, all processes included."""
    done = subprocess.run([sys.executable, __file__, "--sweep"], check=True, capture_output=True, text=True)
    wall_s, busy_s = map(float, done.stdout.split())
    print(f"{'7 QPS x 5 schemes x 10 seeds, wall time':<46} {wall_s:9.3f} s", flush=True)
    return [say("    CPU time of all processes / 2 cores", busy_s / 2, "s", SWEEP_MAX_S)]


def sweep_alone(begun: float) -> None:
    """Print wall and CPU seconds of the sweep, the start of all processes included."""
    experiment = Experiment(qps=SWEEP_QPS, seeds=tuple(range(10)))
    runs = sum(1 for _ in run_all(experiment, processes=2))
    assert runs == len(experiment.runs())
    print(time.perf_counter() - begun, cpu_s())


def interpreter() -> list[bool]:
    """How much the compiled kernel gains on a small trace, as a ratio in one run."""
    times = {}
    for disabled in ("0", "1"):
        environment = os.environ | {"NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, __file__, "--small"], check=True, capture_output=True, text=True, env=environment
        )
        times[disabled] = float(done.stdout)
    print(f"{'interpreted / compiled, 300 requests, ideal':<46} {times['1'] / times['0']:9.1f} times")
    return [times["1"] > times["0"]]


def small_alone() -> None:
    """Print CPU seconds of a small point, once compiled."""
    experiment = Experiment(workload=PresetWorkload(requests=300))
    run_point(Experiment(workload=PresetWorkload(requests=2)), "ideal", 1.0, 0)
    begun = time.process_time()
    run_point(experiment, "ideal", 25.0, 0)
    print(time.process_time() - begun)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--large", scheme]:
            large_alone(scheme)
        case ["--sweep"]:
            sweep_alone(time.perf_counter())
        case ["--small"]:
            small_alone()
        case names:
            sys.exit(main(names))
