"""What a scheme gains: the engines, the schemes, serving (TTFT), experiments and sweeps.

May import everything below it; needs the extra ``ark[sim]`` (Numba).
"""

from ark.sim.experiment import Experiment, qps_of_load, run_point
from ark.sim.flow.model import FlowModel
from ark.sim.results import RESULT_COLUMNS, RunResult, SpineSeries, Ttft
from ark.sim.schemes.catalogue import SCHEMES, SCHEMES_USUAL, SchemeOptions, check_schemes
from ark.sim.sweep import run_all
from ark.sim.traffic import FlowWorkload, PresetWorkload, TraceWorkload, Workload

__all__ = [
    "RESULT_COLUMNS",
    "SCHEMES",
    "SCHEMES_USUAL",
    "Experiment",
    "FlowModel",
    "FlowWorkload",
    "PresetWorkload",
    "RunResult",
    "SchemeOptions",
    "SpineSeries",
    "TraceWorkload",
    "Ttft",
    "Workload",
    "check_schemes",
    "qps_of_load",
    "run_all",
    "run_point",
]
