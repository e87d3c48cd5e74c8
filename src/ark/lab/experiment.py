"""What is to run in the lab: the paper's workload, the same traffic for every scheme."""

import os
import platform
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ark import __version__
from ark.errors import ConfigError
from ark.lab.agents import PolicyName
from ark.lab.scaled import Scaled
from ark.lab.shaping import GOODPUT, MSS
from ark.sim.flow.model import FlowModel
from ark.sim.flow.wiring import Wiring
from ark.sim.results import RunResult
from ark.sim.serving import ttft
from ark.sim.traffic import PresetWorkload, Traffic, make_traffic
from ark.workload.kv import KvModel, kv_model
from ark.workload.latency import LATENCY_DEFAULT, LatencyModel, latency_model

POLICIES: Final[dict[str, PolicyName]] = {"ark-paper": "paper", "ark": "ark"}
SCHEMES: Final = ("ecmp", *POLICIES)
"""What the lab can run: the kernel's own ECMP, and agents with either policy."""

MODEL: Final = FlowModel(payload_bytes=MSS, goodput=GOODPUT)
"""The lab's links as fluids."""


@dataclass(frozen=True, kw_only=True)
class LabExperiment:
    """All that decides what runs; without arguments but the fabric it is the paper's at QPS 25."""

    fabric: Scaled
    workload: PresetWorkload = field(default_factory=PresetWorkload)
    qps: tuple[float, ...] = (25.0,)
    seeds: tuple[int, ...] = (0,)
    schemes: tuple[str, ...] = SCHEMES
    kv: KvModel = field(default_factory=lambda: kv_model("llama-3-8b"))
    latency: LatencyModel = field(default_factory=lambda: latency_model(LATENCY_DEFAULT))

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises
        ------
        ConfigError
            If a scheme is none of the lab's, or nothing is to be run.
        """
        for scheme in self.schemes:
            if scheme not in SCHEMES:
                raise ConfigError(f'--schemes: the lab has no "{scheme}"; there are {", ".join(SCHEMES)}')
        if not self.schemes or not self.qps or not self.seeds:
            raise ConfigError("--schemes, --qps, --seeds: nothing to run")

    def runs(self) -> list[tuple[str, float, int]]:
        """(scheme, qps, seed) in the order in which they run: agents start once a scheme."""
        return [(scheme, qps, seed) for scheme in self.schemes for qps in self.qps for seed in self.seeds]

    def traffic(self, qps: float, seed: int) -> Traffic:
        """The transfers of one draw, in full size."""
        return make_traffic(
            self.workload,
            self.fabric.full,
            qps=qps,
            seed=seed,
            kv=self.kv,
            latency=self.latency,
            ttft="additive",
            layers=1,
            scale=1.0,
        )

    def describe(self) -> dict[str, object]:
        """The configuration and what it ran on, as plain data."""
        return {
            "ark": __version__,
            "python": platform.python_version(),
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "engine": "emulated",
            "fabric": self.fabric.full.name,
            "fabric_digest": self.fabric.lab.digest().hex(),
            "hash_seeds": {switch.name: switch.hash.seed for switch in self.fabric.lab.switches},
            "divided_by": float(self.fabric.factor),
            "workload": {
                "preset": self.workload.name,
                "requests": self.workload.requests,
                "own_qps": None,
            },
            "qps": list(self.qps),
            "seeds": list(self.seeds),
            "schemes": list(self.schemes),
            "kv": self.kv.name,
            "latency": self.latency.name,
            "ttft": "additive",
        }


def with_ttft(result: RunResult, experiment: LabExperiment, traffic: Traffic) -> RunResult:
    """The result with the TTFT of its requests: times are those of full size, so nothing is scaled back."""
    assert traffic.serving is not None, "a preset has requests"
    fabric = experiment.fabric.full
    wiring = Wiring(fabric, MODEL, pooled=False)
    flows = traffic.flows
    alone_ns = [
        wiring.alone_ns(fabric.nic(src), fabric.nic(dst), size)
        for src, dst, size in zip(flows.src, flows.dst, flows.size_bytes.tolist(), strict=True)
    ]
    served = ttft(traffic.serving, result.fct_ns, result.reserve_ns, np.array(alone_ns), 1.0)
    return replace(result, ttft=served)
