"""What one run has to carry: the same transfers for every scheme at one (qps, seed)."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ark.errors import ConfigError
from ark.fabric.topology import Fabric
from ark.sim.serving import Serving, TtftModel, in_order_of_sending, serve
from ark.workload.arrivals import Arrivals
from ark.workload.flows import Flows, make_flows
from ark.workload.kv import KvModel
from ark.workload.latency import LatencyModel
from ark.workload.load import offered_load
from ark.workload.presets import preset_qps, preset_requests
from ark.workload.requests import Requests

SAMPLE: Final = 20_000
"""Requests by which the mean transfer of a preset is judged: its error is then about 1 %."""


@dataclass(frozen=True)
class PresetWorkload:
    """Requests drawn anew for each seed from a preset: ``paper``, ``mooncake-conversation``, …

    Without ``arrivals`` they arrive as the preset has it.
    """

    name: str = "paper"
    requests: int = 1000
    arrivals: Arrivals | None = None


@dataclass(frozen=True)
class TraceWorkload:
    """Requests of a trace: each seed draws other pairs and ports, a QPS stretches or squeezes the time."""

    requests: Requests


@dataclass(frozen=True)
class FlowWorkload:
    """Transfers of a flow table; a seed draws the source ports that the table leaves open."""

    flows: Flows


Workload = PresetWorkload | TraceWorkload | FlowWorkload


@dataclass(frozen=True)
class Traffic:
    """The transfers of one run, and the serving behind them if they come from requests.

    ``load`` is that of requests as they arrive (DESIGN "Load"), whatever their prefill then does to it.
    """

    flows: Flows
    serving: Serving | None
    load: float
    origin: str


def make_traffic(
    workload: Workload,
    fabric: Fabric,
    *,
    qps: float | None,
    seed: int,
    kv: KvModel,
    latency: LatencyModel,
    ttft: TtftModel,
    layers: int,
    scale: float,
) -> Traffic:
    """The transfers of one (qps, seed), sizes and times divided by ``scale``.

    Raises
    ------
    ConfigError
        If the workload has no rate that could be changed, or the fabric no NIC on one side.
    """
    if isinstance(workload, FlowWorkload):
        flows = _scaled(workload.flows.with_ports(seed), scale)
        return Traffic(flows, None, _load(flows, fabric), "flow table")
    requests = requests_of(workload, qps=qps, seed=seed)
    sources, targets = nics_of(fabric, fabric.prefill), nics_of(fabric, fabric.decode)
    offered = make_flows(requests, kv, sources, targets, seed)
    load = _load(offered, fabric)
    serving = serve(requests, offered.src, len(sources), latency, ttft, layers)
    flows, serving = in_order_of_sending(offered, serving, scale)
    return Traffic(_smaller(flows, scale), serving, load, requests.origin)


def requests_of(workload: PresetWorkload | TraceWorkload, *, qps: float | None, seed: int) -> Requests:
    """The requests of one (qps, seed); without a QPS at the workload's own rate."""
    if isinstance(workload, PresetWorkload):
        return preset_requests(
            workload.name, requests=workload.requests, seed=seed, qps=qps, arrivals=workload.arrivals
        )
    return workload.requests if qps is None else workload.requests.at_rate(qps)


def own_qps(workload: Workload) -> float | None:
    """The rate that the workload has by itself, requests/s; None for a flow table."""
    if isinstance(workload, PresetWorkload):
        return preset_qps(workload.name)
    return workload.requests.qps if isinstance(workload, TraceWorkload) else None


def mean_transfer_bytes(workload: Workload, kv: KvModel) -> float:
    """Mean size of a transfer, by which a load is made into a QPS.

    Raises
    ------
    ConfigError
        If the workload is a flow table: its times are its own.
    """
    if isinstance(workload, FlowWorkload):
        raise ConfigError("a flow table has times of its own; a load or a QPS cannot be given beside it")
    if isinstance(workload, PresetWorkload):
        workload = replace(workload, requests=SAMPLE)
    return float(np.mean(kv.kv_bytes(requests_of(workload, qps=None, seed=0).new_tokens)))


def nics_of(fabric: Fabric, hosts: tuple[str, ...]) -> list[str]:
    """Names of all NICs of some hosts."""
    return [nic.name for host in hosts for nic in fabric.host(host).nics]


def _load(flows: Flows, fabric: Fabric) -> float:
    """The offered load; 0 where nothing leads up from the leaves, since nothing can be loaded there."""
    return offered_load(flows, fabric) if fabric.prefill_capacity_bps else 0.0


def _scaled(flows: Flows, scale: float) -> Flows:
    start_ns = np.rint(flows.start_ns / scale).astype(np.int64) if scale != 1 else flows.start_ns
    return _smaller(replace(flows, start_ns=start_ns), scale)


def _smaller(flows: Flows, scale: float) -> Flows:
    if scale == 1:
        return flows
    return replace(flows, size_bytes=np.maximum(np.rint(flows.size_bytes / scale), 1).astype(np.int64))
