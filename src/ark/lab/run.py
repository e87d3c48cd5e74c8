"""Runs in the lab: orders to the hosts' processes, counters and clocks, and what came of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from ark.lab.attention import Attention
from ark.lab.counters import Counters
from ark.lab.experiment import POLICIES, LabExperiment, with_ttft
from ark.lab.faults import FaultRun, Schedule
from ark.lab.lab import Lab
from ark.lab.machine import Meter, spoiled
from ark.lab.orders import Done, Order
from ark.lab.outcome import (
    Emulated,
    LinkBytes,
    choices_of,
    elsewhere,
    kinds_of,
    links_used,
    paths_taken,
    spine_series,
)
from ark.lab.pattern import checksum, pattern
from ark.lab.settle import settled
from ark.lab.sightings import sightings
from ark.sim.results import RunResult
from ark.sim.traffic import Traffic
from ark.units import NS_PER_S


def run_all(lab: Lab, experiment: LabExperiment) -> Iterator[Emulated]:
    """Every run of the experiment, in the order of ``runs``; movers must be running, agents come and go.

    Raises
    ------
    LabError
        If an agent or a process of a host does not start, or ends.
    """
    for scheme in experiment.schemes:
        policy = POLICIES.get(scheme)
        if policy is not None:
            lab.agents.start(policy)
            lab.agents.wait()
        for qps in experiment.qps:
            for seed in experiment.seeds:
                yield run_one(lab, experiment, scheme, qps, seed)
        lab.agents.stop()


def run_fault(lab: Lab, experiment: LabExperiment, fault: FaultRun, *, learned: bool = False) -> Emulated:
    """The first QPS and seed under ``ark`` while something breaks and is mended; movers must be running.

    With ``learned`` ports, which watches keep right (``ark.lab.learning``), agents are asked over and over
    when they know of links that are lost.

    Raises
    ------
    LabError
        If an agent or a process of a host does not start, or ends.
    """
    qps, seed = experiment.qps[0], experiment.seeds[0]
    span_s = int(experiment.traffic(qps, seed).flows.start_ns[-1]) / NS_PER_S
    schedule = Schedule(lab, fault, span_s)
    lab.agents.start(POLICIES["ark"], [host for host in lab.agents.hosts if host not in fault.late])
    try:
        lab.agents.wait()
        if not learned or not fault.lost:
            return run_one(lab, experiment, "ark", qps, seed, each_turn=schedule.turn)
        attention = Attention(lab, experiment.fabric.lab, fault, schedule)
        one = run_one(lab, experiment, "ark", qps, seed, each_turn=attention.turn)
        attention.finish()
        return replace(one, relearned=attention.relearned(one.choices))
    finally:
        schedule.finish()
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


def run_one(
    lab: Lab,
    experiment: LabExperiment,
    scheme: str,
    qps: float,
    seed: int,
    *,
    each_turn: Callable[[float], None] = lambda _: None,
) -> Emulated:
    """One scheme on one draw of traffic; the movers run, and for ``ark`` and ``ark-paper`` the agents.

    ``each_turn`` is called over and over with the seconds since the start, at last with infinity.
    """
    traffic = experiment.traffic(qps, seed)
    steered = scheme in POLICIES
    orders = orders_of(experiment, traffic, memoryview(pattern()), steered=steered)
    if steered:
        targets = {src: sorted({order.target for order in its}) for src, its in orders.items()}
        lab.crew.warm(targets)
    counters = Counters(lab.made, links_used(experiment.fabric.lab, traffic.flows))
    meter = Meter([*lab.crew.processes, *lab.agents.processes])

    def turn(now_s: float) -> None:
        counters.read(now_s)
        each_turn(now_s)

    try:
        done = lab.crew.run(orders, turn)
        each_turn(inf)
        busy = meter.busy()
        time_s, sent = counters.series()
    finally:
        counters.close()
    unsettled = settled(lab.agents) if steered else ""
    counted = LinkBytes(counters.links, time_s, sent)
    result, paths = _result(experiment, scheme, qps, seed, traffic, done)
    sizes = experiment.fabric.sizes(traffic.flows.size_bytes)
    meant = [path if one.path is None else one.path for one, path in zip(done, paths, strict=True)]
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
        elsewhere_share=elsewhere(experiment.fabric.lab, traffic.flows, sizes, meant, counted),
        uncounted=sum(
            not seen.is_enough for seen in sightings(experiment.fabric.lab, result, meant, counted)
        ),
        retransmits=sum(one.retransmits for one in done),
        late_p95_s=late_p95_s,
        spoiled=spoiled(busy, late_p95_s, float(result.fct_ns.mean()) / NS_PER_S),
        unsettled=unsettled,
        choices=choices_of(traffic.flows, done) if steered else (),
    )


def _result(
    experiment: LabExperiment, scheme: str, qps: float, seed: int, traffic: Traffic, done: list[Done]
) -> tuple[RunResult, list[int]]:
    """The run in the form of the simulators, and the path of each transfer."""
    fabric, flows = experiment.fabric.lab, traffic.flows
    paths = paths_taken(fabric, flows, done).tolist()
    spines = [
        fabric.path(fabric.nic(src), fabric.nic(dst), path).spine or ""
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
