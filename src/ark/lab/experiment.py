"""The paper's workload in the lab: the same traffic for every scheme, real bytes, real agents."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ark import __version__
from ark.errors import ConfigError
from ark.lab.agents import PolicyName
from ark.lab.counters import Counters
from ark.lab.lab import Lab
from ark.lab.machine import Meter, spoiled
from ark.lab.orders import Done, Order
from ark.lab.outcome import (
    Emulated,
    LinkBytes,
    elsewhere,
    kinds_of,
    links_used,
    paths_taken,
    spine_series,
)
from ark.lab.pattern import checksum, pattern
from ark.lab.scaled import Scaled
from ark.lab.settle import settled
from ark.lab.shaping import GOODPUT, MSS
from ark.sim.flow.model import FlowModel
from ark.sim.flow.wiring import Wiring
from ark.sim.results import RunResult
from ark.sim.serving import ttft
from ark.sim.traffic import PresetWorkload, Traffic, make_traffic
from ark.units import NS_PER_S
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


def run_all(lab: Lab, experiment: LabExperiment) -> Iterator[Emulated]:
    """Every run of the experiment, in the order of ``runs``; agents are started and stopped as needed.

    Raises
    ------
    LabError
        If an agent or a process of a host does not start, or ends.
    """
    lab.crew.start()
    data = memoryview(pattern())
    for scheme in experiment.schemes:
        policy = POLICIES.get(scheme)
        if policy is not None:
            lab.agents.start(policy)
            lab.agents.wait()
        for qps in experiment.qps:
            for seed in experiment.seeds:
                yield _run(lab, experiment, scheme, qps, seed, data)
        lab.agents.stop()


def orders_of(
    experiment: LabExperiment, traffic: Traffic, data: memoryview, *, steered: bool
) -> dict[str, list[Order]]:
    """What each host is told to send; with a port of its own draw unless ARK is asked."""
    flows, fabric = traffic.flows, experiment.fabric
    sizes = fabric.sizes(flows.size_bytes).tolist()
    orders: dict[str, list[Order]] = {}
    for index, (src, dst) in enumerate(zip(flows.src, flows.dst, strict=True)):
        order = Order(
            index,
            fabric.lab.nic(dst).host,
            fabric.lab.nic(dst).address,
            sizes[index],
            int(flows.start_ns[index]),
            None if steered else int(flows.sport[index]),
            checksum(data, index, sizes[index]),
        )
        orders.setdefault(src, []).append(order)
    return orders


def _run(
    lab: Lab, experiment: LabExperiment, scheme: str, qps: float, seed: int, data: memoryview
) -> Emulated:
    traffic = experiment.traffic(qps, seed)
    steered = scheme in POLICIES
    orders = orders_of(experiment, traffic, data, steered=steered)
    if steered:
        targets = {src: sorted({order.target for order in its}) for src, its in orders.items()}
        lab.crew.warm(targets)
    counters = Counters(lab.made, links_used(experiment.fabric.lab, traffic.flows))
    meter = Meter([*lab.crew.processes, *lab.agents.processes])
    try:
        done = lab.crew.run(orders, counters.read)
        busy = meter.busy()
        time_s, sent = counters.series()
    finally:
        counters.close()
    unsettled = settled(lab.agents) if steered else ""
    counted = LinkBytes(counters.links, time_s, sent)
    result, paths = _result(experiment, scheme, qps, seed, traffic, done)
    sizes = experiment.fabric.sizes(traffic.flows.size_bytes)
    late_p95_s = float(np.percentile([one.late_ns for one in done], 95)) / NS_PER_S
    return Emulated(
        result=result,
        bytes=counted,
        busy=busy,
        kinds=kinds_of(done),
        failed=[
            f"transfer {one.transfer} ({traffic.flows.src[one.transfer]} to "
            f"{traffic.flows.dst[one.transfer]}): {one.error}"
            for one in done
            if one.error
        ],
        strayed=sum(one.path not in {None, path} for one, path in zip(done, paths, strict=True)),
        elsewhere_share=elsewhere(
            experiment.fabric.lab,
            traffic.flows,
            sizes,
            [path if one.path is None else one.path for one, path in zip(done, paths, strict=True)],
            counted,
        ),
        retransmits=sum(one.retransmits for one in done),
        late_p95_s=late_p95_s,
        spoiled=spoiled(busy, late_p95_s, float(result.fct_ns.mean()) / NS_PER_S),
        unsettled=unsettled,
    )


def _result(
    experiment: LabExperiment, scheme: str, qps: float, seed: int, traffic: Traffic, done: list[Done]
) -> tuple[RunResult, list[int]]:
    """The run in the form of the simulators, and the path of each transfer."""
    fabric, flows = experiment.fabric.lab, traffic.flows
    paths = paths_taken(fabric, flows, done).tolist()
    spines = [
        next(one for one in fabric.paths(fabric.nic(src), fabric.nic(dst)) if one.index == path).spine or ""
        for src, dst, path in zip(flows.src, flows.dst, paths, strict=True)
    ]
    fct_ns = np.array([one.fct_ns for one in done], np.int64)
    reserve_ns = np.array([one.reserve_ns for one in done], np.int64)
    result = RunResult(
        scheme=scheme,
        engine="emulated",
        fabric=fabric.name,
        qps=qps,
        seed=seed,
        requests=len(flows),
        load=traffic.load,
        lag_s=0.0,
        ttft_model="additive",
        flows=replace(flows, size_bytes=experiment.fabric.sizes(flows.size_bytes)),
        fct_ns=fct_ns,
        reserve_ns=reserve_ns,
        path=[str(path) for path in paths],
        sport=[str(one.source_port) for one in done],
        spine=spines,
        ttft=None,
        spine_series=spine_series(fabric, spines, flows, done),
        config=experiment.describe(),
    )
    return with_ttft(result, experiment, traffic), paths


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
