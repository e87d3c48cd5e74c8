"""The fabric as the fluid kernel sees it: a rate for each link, and the links and latency of each path.

For a scheme that pools the spines the switches inside are left out: a transfer crosses the pipe up from its
leaf and the pipe down to the other one, each as wide as all the links it stands for; a NIC with several ports
is one pipe as well.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ark.errors import SimulationError
from ark.fabric.parts import Nic, Path
from ark.fabric.topology import Fabric
from ark.sim.flow.model import ACK_BYTES, HEADER_BYTES, FlowModel, wire_ns

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
        Goodput of each link in bytes/ns; behind the links of the fabric stand the pipes, if there are any.
    """

    def __init__(self, fabric: Fabric, model: FlowModel, *, pooled: bool) -> None:
        self._fabric = fabric
        self._model = model
        self._pooled = pooled
        self._goodput = model.goodput_share * _BYTES_PER_NS
        self._spines = {name: number for number, name in enumerate(fabric.spines)}
        self._group = _groups(fabric)
        rates_bps = _pipes(fabric, self._group) if pooled else list(fabric.link_rates_bps)
        self.link_rate: NDArray[np.float64] = np.array(rates_bps, np.float64) * self._goodput
        self._hop_ns, self._store_ns = _link_times(fabric, model)

    def way(self, source: Nic, target: Nic, number: int) -> Way:
        """Path ``number`` from NIC to NIC, which must be up; where spines are pooled all are the same."""
        if self._pooled:
            path = self._fabric.paths(source, target)[0]
            return Way(number, self._pipes_between(source, target), self._latency_ns(path), -1)
        path = self._path(source, target, number)
        spine = -1 if path.spine is None else self._spines[path.spine]
        return Way(number, path.links, self._latency_ns(path), spine)

    def _pipes_between(self, source: Nic, target: Nic) -> tuple[int, ...]:
        nics, groups = len(self._fabric.nics), len(self._group)
        first, last = self._group[source.attachment], self._group[target.attachment]
        out, into = source.index, nics + target.index
        return (out, into) if first == last else (out, 2 * nics + first, 2 * nics + groups + last, into)

    def _path(self, source: Nic, target: Nic, number: int) -> Path:
        paths = self._fabric.paths(source, target)
        if number < len(paths) and paths[number].index == number:
            return paths[number]
        for path in paths:
            if path.index == number:
                return path
        raise SimulationError(f"path {number} from {source.name} to {target.name} is not up")

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


def _groups(fabric: Fabric) -> list[int]:
    """For each attachment the first one that it shares a switch with, directly or through others."""
    group = list(range(len(fabric.attachments)))
    by_switch: dict[str, int] = {}
    for number, attachment in enumerate(fabric.attachments):
        for switch in attachment.live:
            joined = {group[number], group[by_switch.setdefault(switch, number)]}
            if len(joined) > 1:
                group = [min(joined) if of in joined else of for of in group]
    return group


def _pipes(fabric: Fabric, group: list[int]) -> list[int]:
    """Rates in bit/s of: each NIC out, each NIC in, each group of attachments up, each down."""
    rates_bps = fabric.link_rates_bps
    out = [sum(rates_bps[link] for link, _ in fabric.ports(nic)) for nic in fabric.nics]
    into = [sum(rates_bps[link] for _, link in fabric.ports(nic)) for nic in fabric.nics]
    leaves = {
        switch: group[number]
        for number, attachment in enumerate(fabric.attachments)
        for switch in attachment.live
    }
    up, down = [0] * len(group), [0] * len(group)
    for link in fabric.links:
        source, target = leaves.get(link.source), leaves.get(link.target)
        if source != target and fabric.is_fabric_link(link.index):
            if source is not None:
                up[source] += rates_bps[link.index]
            if target is not None:
                down[target] += rates_bps[link.index]
    return [*out, *into, *up, *down]
