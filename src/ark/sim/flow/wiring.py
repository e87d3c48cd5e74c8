"""The fabric as the fluid kernel sees it: a rate for each link, and the links and latency of each path.

For a scheme that pools the spines the switches inside are left out: the links are then ``ark.sim.pipes``.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ark.fabric.parts import Nic, Path
from ark.fabric.topology import Fabric
from ark.sim.flow.model import ACK_BYTES, HEADER_BYTES, FlowModel, wire_ns
from ark.sim.pipes import Pipes

_BYTES_PER_NS: Final = 1 / 8e9
"""Bytes/ns of one bit/s."""


class Way(NamedTuple):
    """One path as a stripe uses it.

    ``latency_ns`` is what a lone transfer takes beyond its bytes over the rate, up to its last ACK.
    ``spine`` is the place in ``Fabric.spines`` of the one spine on it, -1 where there is not exactly one.
    """

    number: int
    links: tuple[int, ...]
    latency_ns: int
    spine: int


class Wiring:
    """Links and paths of one fabric under one model.

    Attributes
    ----------
    link_rate : float64[link]
        Goodput of each link, or of each pipe where spines are pooled, in bytes/ns.
    """

    def __init__(self, fabric: Fabric, model: FlowModel, *, pooled: bool) -> None:
        self._fabric = fabric
        self._model = model
        self._pipes = Pipes(fabric) if pooled else None
        self._goodput = model.goodput_share * _BYTES_PER_NS
        self._spines = {name: number for number, name in enumerate(fabric.spines)}
        rates_bps = fabric.link_rates_bps if self._pipes is None else self._pipes.rates_bps
        self.link_rate: NDArray[np.float64] = np.array(rates_bps, np.float64) * self._goodput
        self._hop_ns, self._store_ns = _link_times(fabric, model)

    def way(self, source: Nic, target: Nic, number: int) -> Way:
        """Path ``number`` from NIC to NIC, which must be up; where spines are pooled all are the same."""
        if self._pipes is not None:
            path = self._fabric.paths(source, target)[0]
            return Way(number, self._pipes.between(source, target), self._latency_ns(path), -1)
        path = self._fabric.path(source, target, number)
        spine = -1 if path.spine is None else self._spines[path.spine]
        return Way(number, path.links, self._latency_ns(path), spine)

    def _latency_ns(self, path: Path) -> int:
        if self._model.base_latency_ns is not None:
            return self._model.base_latency_ns
        hop_ns = self._hop_ns
        return sum([hop_ns[link] for link in path.links]) - self._store_ns[path.links[0]]

    def alone_ns(self, source: Nic, target: Nic, size_bytes: int) -> float:
        """What the transfer would take if it had an unlimited fabric between the two NICs to itself."""
        ports = self._fabric.ports(source), self._fabric.ports(target)
        rates_bps = self._fabric.link_rates_bps
        rate = min(sum(rates_bps[out] for out, _ in ports[0]), sum(rates_bps[into] for _, into in ports[1]))
        latency_ns = self._latency_ns(self._fabric.paths(source, target)[0])
        return size_bytes / (rate * self._goodput) + latency_ns


def _link_times(fabric: Fabric, model: FlowModel) -> tuple[list[int], list[int]]:
    """For each link: what it adds to the latency, and how much of that is store and forward."""
    hop_ns, store_ns = [], []
    for link in fabric.links:
        store_ns.append(wire_ns(model.payload_bytes + HEADER_BYTES, link.rate_bps))
        hop_ns.append(2 * link.delay_ns + store_ns[-1] + wire_ns(ACK_BYTES, link.rate_bps))
    return hop_ns, store_ns
