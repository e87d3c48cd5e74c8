"""The flags of the packet-level engine: which constants it runs with, and what such a run will cost."""

from dataclasses import replace
from typing import Final, Literal

from ark.errors import ConfigError, Fault
from ark.sim.experiment import Experiment
from ark.sim.flow.model import HEADER_BYTES, PAYLOAD_BYTES, FlowModel
from ark.sim.packet.settings import PacketSettings, preset
from ark.sim.traffic import FlowWorkload, requests_of

CcPreset = Literal["simai", "conweave", "dcqcn-paper", "nvidia", "hpcc-scripts"]

PACKETS_PER_S: Final = 1.0e6
"""Data packets in a CPU second, as ``benchmarks/packet_engine.py`` measures on a busy machine."""

LONG_S: Final = 1800
"""From this expected time on a run is told how to be smaller."""


def models_of(
    engine: str, payload: int | None, cc_preset: CcPreset | None
) -> tuple[PacketSettings, FlowModel]:
    """The constants of both engines, for one size of packets.

    Without ``payload`` it is that of the preset, 9000 B at flow level.

    Raises
    ------
    ConfigError
        If the payload is out of bounds, or a preset is given that no packet would feel.
    """
    if cc_preset is not None and engine != "packet":
        raise ConfigError(Fault("--cc-preset", "the flow level knows no packets; add --engine packet"))
    model = FlowModel(payload_bytes=PAYLOAD_BYTES if payload is None else payload)
    faults = model.faults()
    if faults:
        raise ConfigError(*(Fault(f"--{fault.where}", fault.what) for fault in faults))
    settings = preset(cc_preset or "simai")
    if payload is not None:
        settings = replace(settings, payload_bytes=payload)
    if engine != "packet":
        return settings, model
    size_bytes, header_bytes = settings.payload_bytes, settings.overhead_bytes
    goodput = None if header_bytes == HEADER_BYTES else size_bytes / (size_bytes + header_bytes)
    return settings, FlowModel(payload_bytes=size_bytes, goodput=goodput)


def cost(experiment: Experiment) -> str:
    """How many packets a packet-level experiment sends, and about how long that takes, in one line."""
    runs = len(experiment.runs())
    packets = _bytes_a_run(experiment) / experiment.packet.payload_bytes * runs
    cpu_s = packets / PACKETS_PER_S
    text = (
        f"Packet by packet: {packets / 1e6:,.1f} M data packets in {runs} runs, "
        f"about {_minutes(cpu_s)} of CPU time"
    )
    if cpu_s > LONG_S:
        text += "; --scale 50 divides sizes and times by 50, --seeds, --schemes and --qps leave runs out"
    return f"{text}."


def _minutes(cpu_s: float) -> str:
    return f"{cpu_s:.0f} s" if cpu_s < 100 else f"{cpu_s / 60:,.0f} minutes"


def _bytes_a_run(experiment: Experiment) -> float:
    workload = experiment.workload
    if isinstance(workload, FlowWorkload):
        return float(workload.flows.size_bytes.sum()) / experiment.scale
    requests = requests_of(workload, qps=experiment.points()[0], seed=experiment.seeds[0])
    return float(experiment.kv.kv_bytes(requests.new_tokens).sum()) / experiment.scale
