"""An experiment: which schemes run which traffic over which fabric, and one run of it."""

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numba
import numpy as np
from numpy.typing import NDArray

from ark import __version__
from ark.errors import ConfigError, Fault
from ark.fabric.generate import paper_fabric
from ark.fabric.topology import Fabric
from ark.sim.flow.engine import FlowEngine
from ark.sim.flow.model import FlowModel
from ark.sim.flow.wiring import Wiring
from ark.sim.offered import TIME_MAX_NS, TIME_MAX_PACKET_NS, transfers_of
from ark.sim.packet.engine import PacketEngine
from ark.sim.packet.settings import PacketSettings, describe
from ark.sim.packet.settings import preset as packet_preset
from ark.sim.results import RunResult, Ttft
from ark.sim.schemes.catalogue import SCHEMES_USUAL, Engine, SchemeOptions, check_schemes, make_scheme
from ark.sim.schemes.scheme import Transfer
from ark.sim.serving import LAYERS_MAX, TtftModel, layers_of, ttft
from ark.sim.traffic import (
    FlowWorkload,
    PresetWorkload,
    TraceWorkload,
    Traffic,
    Workload,
    make_traffic,
    mean_transfer_bytes,
)
from ark.units import NS_PER_S
from ark.workload.kv import KvModel, kv_model
from ark.workload.latency import LATENCY_DEFAULT, LatencyModel, latency_model
from ark.workload.load import qps_for_load
from ark.workload.presets import preset_arrivals, preset_qps

SCALE_MAX: Final = 1e6
SEED_MAX: Final = 2**32 - 1


def _paper_kv() -> KvModel:
    return kv_model("llama-3-8b")


def _paper_latency() -> LatencyModel:
    return latency_model(LATENCY_DEFAULT)


def _simai() -> PacketSettings:
    return packet_preset("simai")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All that decides what comes out; it can be pickled. Without arguments it is the paper's, at QPS 25.

    Attributes
    ----------
    fabric, workload
        The network, and what it has to carry.
    qps : tuple of float, optional
        Requests/s of each point; None for the workload's own times.
    seeds, schemes
        Each scheme runs at each QPS with each seed, on the same traffic.
    engine
        ``flow`` or ``packet``.
    options
        Lag, hold, stripes and so on of ``ark`` and ``ark-paper``.
    kv, latency
        The model that is served, and how long its prefill and first decode step take.
    ttft, layers
        How TTFT is made (``ark.sim.serving``); ``layers`` > 1 sends KV layers while later ones are computed.
    flow_model
        Goodput and base latency of the flow-level engine.
    packet
        The constants of the packet-level engine.
    scale
        Sizes and times of the transfers are divided by it; TTFT is in full size nevertheless.
    """

    fabric: Fabric = field(default_factory=paper_fabric)
    workload: Workload = field(default_factory=PresetWorkload)
    qps: tuple[float, ...] | None = (25.0,)
    seeds: tuple[int, ...] = (0,)
    schemes: tuple[str, ...] = SCHEMES_USUAL
    engine: Engine = "flow"
    options: SchemeOptions = field(default_factory=SchemeOptions)
    kv: KvModel = field(default_factory=_paper_kv)
    latency: LatencyModel = field(default_factory=_paper_latency)
    ttft: TtftModel = "additive"
    layers: int = 1
    flow_model: FlowModel = field(default_factory=FlowModel)
    packet: PacketSettings = field(default_factory=_simai)
    scale: float = 1.0

    def check(self) -> None:
        """Refuse what cannot be run, all faults at once.

        Raises
        ------
        ConfigError
            If a value is not allowed, or two do not go together.
        """
        faults: list[Fault | str] = [*self.options.faults(), *self.flow_model.faults()]
        try:
            check_schemes(self.schemes, self.engine)
        except ConfigError as error:
            faults += error.faults
        if self.engine not in {"flow", "packet"}:
            faults.append(Fault("engine", f'"{self.engine}" is not known; there are flow and packet'))
        if self.engine == "packet" and self.layers > 1:
            faults.append(Fault("layers", "the packet engine sends a transfer as a whole; leave them out"))
        if self.ttft not in {"additive", "fifo"}:
            faults.append(Fault("ttft", f'"{self.ttft}" is not known; there are additive and fifo'))
        if not 1 <= self.layers <= LAYERS_MAX:
            faults.append(Fault("layers", f"{self.layers} is out of bounds; allowed are 1 to {LAYERS_MAX}"))
        if not 1e-3 <= self.scale <= SCALE_MAX:
            faults.append(Fault("scale", f"{self.scale:g} is out of bounds; allowed are 0.001 to 1,000,000"))
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            faults.append(Fault("seeds", "none given" if not self.seeds else "one is given twice"))
        if any(not 0 <= seed <= SEED_MAX for seed in self.seeds):
            faults.append(Fault("seeds", f"allowed are 0 to {SEED_MAX}"))
        faults += _qps_faults(self.qps, self.workload)
        if faults:
            raise ConfigError(*faults)

    def points(self) -> tuple[float | None, ...]:
        """The QPS of each point, in order; a single None for the workload's own times."""
        return (None,) if self.qps is None else self.qps

    def runs(self) -> list[tuple[str, float | None, int]]:
        """(scheme, qps, seed) of all runs, in the order of results: those of one traffic stand together."""
        return [
            (scheme, qps, seed) for qps in self.points() for seed in self.seeds for scheme in self.schemes
        ]

    def describe(self) -> dict[str, object]:
        """The effective configuration and all versions, as plain data: with it a result can be repeated."""
        return {
            "ark": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
            "fabric": self.fabric.name,
            "fabric_digest": self.fabric.digest().hex(),
            "workload": _describe_workload(self.workload),
            "qps": None if self.qps is None else list(self.qps),
            "seeds": list(self.seeds),
            "schemes": list(self.schemes),
            "engine": self.engine,
            "options": {
                **msgspec.to_builtins(self.options),
                "hold_ns": self.options.effective_hold_ns,
                "segment_bytes": self.options.effective_segment_bytes,
            },
            "kv": self.kv.name,
            "kv_bytes_per_token": self.kv.bytes_per_token,
            "kv_dtype": self.kv.dtype,
            "kv_layers": msgspec.to_builtins(self.kv.layers),
            "latency": self.latency.name,
            "latency_origin": self.latency.origin,
            "ttft": self.ttft,
            "layers": self.layers,
            "flow_model": {
                **msgspec.to_builtins(self.flow_model),
                "goodput": self.flow_model.goodput_share,
            },
            **({"packet": describe(self.packet)} if self.engine == "packet" else {}),
            "scale": self.scale,
        }


def run_point(experiment: Experiment, scheme: str, qps: float | None, seed: int) -> RunResult:
    """One scheme on one draw of traffic.

    Raises
    ------
    ConfigError
        If the traffic does not fit the fabric; all faults at once.
    SimulationError
        If an engine broke an invariant of its own.
    """
    fabric = experiment.fabric
    traffic = make_traffic(
        experiment.workload,
        fabric,
        qps=qps,
        seed=seed,
        kv=experiment.kv,
        latency=experiment.latency,
        ttft=experiment.ttft,
        layers=experiment.layers,
        scale=experiment.scale,
    )
    time_max_ns = TIME_MAX_PACKET_NS if experiment.engine == "packet" else TIME_MAX_NS
    transfers = transfers_of(traffic.flows, fabric, time_max_ns=time_max_ns)
    chosen = make_scheme(
        scheme, fabric, experiment.options, transfers=transfers, seed=seed, engine=experiment.engine
    )
    layers = None if traffic.serving is None else layers_of(traffic.serving, experiment.scale)
    if experiment.engine == "packet":
        outcome = PacketEngine(fabric, transfers, chosen, experiment.packet, seed=seed).run()
    else:
        outcome = FlowEngine(fabric, transfers, chosen, experiment.flow_model, layers).run()
    served = None
    if traffic.serving is not None:
        alone_ns = _alone_ns(fabric, experiment.flow_model, transfers)
        served = ttft(traffic.serving, outcome.fct_ns, outcome.reserve_ns, alone_ns, experiment.scale)
    return RunResult(
        scheme=scheme,
        engine=experiment.engine,
        fabric=fabric.name,
        qps=qps,
        seed=seed,
        requests=len(traffic.flows),
        load=traffic.load,
        lag_s=experiment.options.lag_ns / NS_PER_S if scheme.startswith("ark") else 0.0,
        ttft_model=_ttft_name(experiment, served),
        flows=traffic.flows,
        fct_ns=outcome.fct_ns,
        reserve_ns=outcome.reserve_ns,
        path=outcome.path,
        sport=outcome.sport,
        spine=outcome.spine,
        ttft=served,
        spine_series=outcome.spine_series,
        config=experiment.describe(),
        warnings=[*_warnings(traffic, transfers, pooled=chosen.pooled), *chosen.warnings()],
        ecn_marks=outcome.ecn_marks,
        retransmits=outcome.retransmits,
    )


def qps_of_load(experiment: Experiment, load: float) -> float:
    """The requests/s at which the experiment's workload offers ``load`` to its fabric.

    Raises
    ------
    ConfigError
        If the load is no positive number, the workload a flow table, or the fabric has no spines to load.
    """
    if not experiment.fabric.prefill_capacity_bps:
        raise ConfigError(f"{experiment.fabric.name}: nothing leads up from the prefill leaves; give a QPS")
    mean_bytes = mean_transfer_bytes(experiment.workload, experiment.kv)
    return qps_for_load(load, mean_size_bytes=mean_bytes, fabric=experiment.fabric)


def _qps_faults(qps: Sequence[float] | None, workload: Workload) -> list[Fault]:
    if qps is None:
        return []
    if isinstance(workload, FlowWorkload):
        return [Fault("qps", "a flow table has times of its own; leave the QPS out")]
    if not qps or len(set(qps)) < len(qps):
        return [Fault("qps", "none given" if not qps else "one is given twice")]
    return [
        Fault("qps", f"{value:g} is not a positive number of requests per second")
        for value in qps
        if not 0 < value < math.inf
    ]


def _alone_ns(fabric: Fabric, model: FlowModel, transfers: list[Transfer]) -> NDArray[np.float64]:
    wiring = Wiring(fabric, model, pooled=False)
    return np.array([wiring.alone_ns(t.source, t.target, t.size_bytes) for t in transfers], np.float64)


def _ttft_name(experiment: Experiment, served: Ttft | None) -> str:
    if served is None:
        return ""
    return experiment.ttft if experiment.layers == 1 else f"{experiment.ttft}+{experiment.layers} layers"


def _warnings(traffic: Traffic, transfers: list[Transfer], *, pooled: bool) -> list[str]:
    found = list(traffic.flows.notes)
    if traffic.serving is not None:
        found += traffic.serving.warnings()
    pinned = sum(bool(transfer.pin) for transfer in transfers)
    if pinned and pooled:
        found.append(f"{pinned} pinned transfers are not, under ideal: its pipes have no paths")
    return found


def _describe_workload(workload: Workload) -> dict[str, object]:
    match workload:
        case PresetWorkload(name, requests, arrivals):
            process = str(arrivals or preset_arrivals(name))
            rate = {"own_qps": preset_qps(name)}
            return {"preset": name, "requests": requests, "arrivals": process} | rate
        case TraceWorkload(requests):
            return {"trace": requests.origin, "requests": len(requests), "own_qps": requests.qps}
        case FlowWorkload(flows):
            return {"flows": len(flows)}
