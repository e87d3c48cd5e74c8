"""From transfers to time to first token: when prefills run, when KV caches leave, what a user waits.

Two models. ``additive`` is the paper's (section 4.3): TTFT = prefill + transfer + first decode step, and the
trace is replayed as transfers that begin when requests arrive. ``fifo`` has one GPU behind each prefill NIC
that takes one prompt after the other; the transfer begins when the prefill ends. In both, layers can be sent
while later ones are still computed.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ark.sim.offered import Layers
from ark.sim.results import Ttft
from ark.units import NS_PER_S
from ark.workload.flows import Flows
from ark.workload.latency import LatencyModel
from ark.workload.requests import Requests

Floats = NDArray[np.float64]
TtftModel = Literal["additive", "fifo"]

LAYERS_MAX: Final = 1024
"""More layers than any model has; each costs the engine an event a transfer."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What happens on the GPUs, ``float64[n]`` in seconds; ``load`` is that of the prefill GPUs, 1 = full.

    ``sent_s`` is when a transfer may begin, or its first layer where there are several.
    """

    arrived_s: Floats
    queue_s: Floats
    prefill_s: Floats
    decode1_s: Floats
    sent_s: Floats
    layers: int
    model: TtftModel
    load: float

    def warnings(self) -> list[str]:
        """What people should know about the load of the GPUs."""
        if self.load <= 1:
            return []
        offered = f"the requests offer the prefill GPUs {self.load:.2f} times what they can do"
        if self.model == "fifo":
            return [f"{offered}: their queue grows for as long as requests come"]
        return [f"{offered}, which the additive TTFT ignores; the model fifo has their queue"]


def serve(
    requests: Requests, gpus: list[str], gpu_count: int, latency: LatencyModel, model: TtftModel, layers: int
) -> Serving:
    """Run the prefills. ``gpus[i]`` names the GPU (the NIC beside it) of request i, out of ``gpu_count``.

    ``layers`` > 1 sends a transfer in that many equal parts, each as soon as its layers are computed.
    """
    arrived_s = requests.arrived_s
    prefill_s = latency.prefill_s(requests.new_tokens)
    queue_s = np.zeros(len(requests))
    if model == "fifo":
        queue_s = _fifo(arrived_s, prefill_s, gpus)
    begun_s = arrived_s + queue_s
    if layers > 1:
        sent_s = begun_s + prefill_s / layers
    else:
        sent_s = begun_s + prefill_s if model == "fifo" else arrived_s
    span_s = float(np.ptp(arrived_s)) if len(requests) else 0.0
    return Serving(
        arrived_s=arrived_s,
        queue_s=queue_s,
        prefill_s=prefill_s,
        decode1_s=latency.decode1_s(requests.prompt_tokens),
        sent_s=sent_s,
        layers=layers,
        model=model,
        load=float(prefill_s.sum()) / (gpu_count * span_s) if span_s > 0 else 0.0,
    )


def _fifo(arrived_s: Floats, prefill_s: Floats, gpus: list[str]) -> Floats:
    """How long each prompt waits for those before it at its GPU; ``arrived_s`` never decreases."""
    free_s: dict[str, float] = {}
    queue_s = []
    for gpu, arrived, prefill in zip(gpus, arrived_s.tolist(), prefill_s.tolist(), strict=True):
        begun = max(arrived, free_s.get(gpu, 0.0))
        free_s[gpu] = begun + prefill
        queue_s.append(begun - arrived)
    return np.array(queue_s)


def in_order_of_sending(flows: Flows, serving: Serving, scale: float) -> tuple[Flows, Serving]:
    """Flows that begin when the serving says (divided by ``scale``), and the serving in their order."""
    order = np.argsort(serving.sent_s, kind="stable")
    rows = order.tolist()
    start_ns = np.rint(serving.sent_s[order] * (NS_PER_S / scale)).astype(np.int64)
    sorted_flows = replace(
        flows,
        id=[flows.id[row] for row in rows],
        src=[flows.src[row] for row in rows],
        dst=[flows.dst[row] for row in rows],
        size_bytes=flows.size_bytes[order],
        start_ns=start_ns,
        sport=flows.sport[order],
        dport=flows.dport[order],
    )
    columns = ("arrived_s", "queue_s", "prefill_s", "decode1_s", "sent_s")
    return sorted_flows, replace(serving, **{name: getattr(serving, name)[order] for name in columns})


def layers_of(serving: Serving, scale: float) -> Layers | None:
    """The layers of the transfers as the engine takes them, in time divided by ``scale``."""
    if serving.layers == 1:
        return None
    return Layers(serving.prefill_s * (NS_PER_S / scale / serving.layers), serving.layers)


def ttft(
    serving: Serving, fct_ns: NDArray[np.int64], reserve_ns: NDArray[np.int64], alone_ns: Floats, scale: float
) -> Ttft:
    """The TTFT of all requests, from what an engine (in time divided by ``scale``) made of their transfers.

    ``alone_ns`` is what each transfer takes with the network to itself, without waiting for layers. With
    layers, time that runs beside the prefill costs nothing: holding back included, it is in ``transfer_s``
    as far as it stands out.
    """
    fct_s, reserve_s, alone_s = (_seconds(times, scale) for times in (fct_ns, reserve_ns, alone_ns))
    transfer_s = fct_s - reserve_s
    if serving.layers > 1:
        begun_s = serving.prefill_s / serving.layers  # when the first layer is there
        transfer_s = np.maximum(begun_s + fct_s - serving.prefill_s, 0.0)
        # Alone, either the last layer ends it all, or the network is slower than the GPU.
        alone_s = np.maximum(alone_s / serving.layers, begun_s + alone_s - serving.prefill_s)
        reserve_s = np.zeros_like(reserve_s)
    return Ttft(serving.queue_s, serving.prefill_s, reserve_s, transfer_s, serving.decode1_s, alone_s)


def _seconds(times_ns: NDArray[np.int64] | Floats, scale: float) -> Floats:
    return times_ns.astype(np.float64) * (scale / NS_PER_S)
