"""The same transfers as fluids: what a run in the lab would come to if nothing but sharing mattered.

Under ECMP the fluids take the paths that the kernel's hash gave the real ones. Under ARK the simulated agents
choose for themselves, and hear of each other without delay: what differs is what a real control plane, real
TCP and a real machine cost.
"""

from dataclasses import replace

from ark.lab.experiment import MODEL, LabExperiment, with_ttft
from ark.sim.experiment import Experiment, run_point
from ark.sim.results import RunResult
from ark.sim.traffic import FlowWorkload


def twin_of(experiment: LabExperiment, emulated: RunResult) -> RunResult:
    """The flow-level simulation of one run, in full size: times compare as they are."""
    scheme, qps, seed = emulated.scheme, emulated.qps, emulated.seed
    assert qps is not None, "the lab runs at a rate"
    traffic = experiment.traffic(qps, seed)
    flows = traffic.flows
    if scheme == "ecmp":
        flows = replace(flows, path=list(emulated.path))
    simulated = run_point(
        Experiment(
            fabric=experiment.fabric.full,
            workload=FlowWorkload(flows),
            qps=None,
            seeds=(seed,),
            schemes=(scheme,),
            flow_model=MODEL,
        ),
        scheme,
        None,
        seed,
    )
    named = replace(simulated, qps=qps, ttft_model="additive", load=emulated.load)
    return with_ttft(named, experiment, traffic)
