"""What the schemes gain on the paper's workload and on more leaves: the figures of the design, drawn anew.

Run it as ``python benchmarks/paper_figures.py [--seeds 200] [--quick]``. Each line is a reduction of the mean
FCT over all seeds against ECMP, in percent; where a range is given the figure must lie in it, and the command
exits with 1 where one does not. All cores are used; 200 seeds of everything take about ten minutes on two.
"""

import argparse
import sys
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ark.fabric import leaf_spine
from ark.sim.experiment import Experiment, qps_of_load
from ark.sim.schemes.catalogue import SchemeOptions
from ark.sim.sweep import run_all
from ark.sim.traffic import PresetWorkload

Ranges = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Case:
    """One fabric and load, with the range in percent in which each scheme's reduction must lie."""

    leaves: int
    load: float | None
    seeds_share: float
    ranges: Ranges = field(default_factory=dict)


CASES: Final = (
    Case(2, None, 1.0, {"ark-paper": (23, 30), "ark": (43, 50), "ideal": (51, 56)}),
    Case(8, 0.85, 0.2, {"ark-paper": (-3, 5), "ark": (43, 60)}),
    Case(2, 0.5, 0.2),
    Case(2, 0.85, 0.2),
    Case(4, 0.85, 0.2),
    Case(8, 0.5, 0.2),
    Case(16, 0.85, 0.1),
)
"""DESIGN's table, and the paper's point (QPS 25) before it."""

REQUESTS_PER_LEAF: Final = 500
"""1000 requests on two leaves, as in the paper; as many a leaf on larger fabrics, so that they fill alike."""


def reductions(case: Case, seeds: int) -> tuple[float, dict[str, float]]:
    """QPS, and the reduction in percent of each scheme, stripes included."""
    fabric = leaf_spine(case.leaves, 4, 8)
    workload = PresetWorkload(requests=REQUESTS_PER_LEAF * case.leaves)
    base = Experiment(fabric=fabric, workload=workload, seeds=tuple(range(seeds)))
    qps = 25.0 if case.load is None else qps_of_load(base, case.load)
    means: dict[str, list[float]] = {}
    for stripes, schemes in ((1, ("ecmp", "ark-paper", "ark", "ideal")), (2, ("ark",)), (4, ("ark",))):
        experiment = Experiment(
            fabric=fabric,
            workload=workload,
            seeds=base.seeds,
            qps=(qps,),
            schemes=schemes,
            options=SchemeOptions(stripes=stripes),
        )
        for result in run_all(experiment):
            name = result.scheme if stripes == 1 else f"{result.scheme}, {stripes} stripes"
            means.setdefault(name, []).append(float(result.fct_ns.mean()))
    ecmp = np.mean(means.pop("ecmp"))
    return qps, {name: float(100 * (1 - np.mean(values) / ecmp)) for name, values in means.items()}


def main() -> int:
    """Print every case; 1 if a figure lies outside its range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="only the cases that have a range")
    arguments = parser.parse_args()
    missed = 0
    for case in CASES:
        if arguments.quick and not case.ranges:
            continue
        seeds = max(1, round(arguments.seeds * case.seeds_share))
        qps, found = reductions(case, seeds)
        load = "the paper's" if case.load is None else f"load {case.load}"
        print(f"{case.leaves} leaves, {load}, QPS {qps:.1f}, {seeds} seeds")
        for name, percent in found.items():
            low, high = case.ranges.get(name, (-100.0, 100.0))
            kept = low <= percent <= high
            missed += not kept
            wanted = f"wanted {low:g}..{high:g} %" if name in case.ranges else ""
            print(f"    {name:<16} {percent:6.1f} %  {wanted} {'' if kept else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
