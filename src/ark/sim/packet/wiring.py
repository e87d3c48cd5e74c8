"""An ``ark.fabric`` as the packet kernel sees it: a network of numbered links, and routes over it.

For a scheme that pools the spines, all switches that a leaf leads to are one, and all uplinks of a leaf one
link of the summed rate. A NIC with several ports is as many NICs here: each port has its own queue pairs.
"""

from collections.abc import Collection
from typing import Final

import numpy as np

from ark.fabric.five_tuple import FiveTuple
from ark.fabric.parts import Nic
from ark.fabric.route import route
from ark.fabric.topology import Fabric
from ark.sim.packet.network import Network
from ark.sim.pipes import Pipes

Ends = tuple[int, int, int, int]
"""Source switch, target switch, source NIC, target NIC of a link; -1 for none."""
POOL: Final = 0
"""The switch that stands for all spines."""


class PacketWiring:
    """The network of one fabric, and the routes between its NICs."""

    def __init__(self, fabric: Fabric, *, pooled: bool) -> None:
        self._fabric = self._whole = fabric
        self._pipes = Pipes(fabric) if pooled else None
        self._spines = {name: number for number, name in enumerate(fabric.spines)}
        self.network = self._plain_network() if self._pipes is None else _pooled_network(fabric, self._pipes)

    def route(self, source: Nic, target: Nic, number: int) -> tuple[int, ...]:
        """Links of path ``number``, which must be up."""
        if self._pipes is not None:
            return self._pipes.between(source, target)
        return self._between(source, target).path(source, target, number).links

    def back(self, source: Nic, target: Nic, sport: int, dport: int) -> tuple[int, ...]:
        """Links over which the fabric's own hash sends the ACKs of a flow from ``source`` to ``target``."""
        if self._pipes is not None:
            return self._pipes.between(target, source)
        there = FiveTuple(source.address, target.address, sport, dport)
        return route(self._between(target, source), there.reversed(), target, source).links

    def choices(self, source: Nic, target: Nic, number: int) -> list[tuple[int, ...]]:
        """All paths that begin with the same link of the NIC as path ``number``, in order."""
        first = self.route(source, target, number)[0]
        paths = self._between(source, target).paths(source, target)
        return [path.links for path in paths if path.links[0] == first]

    def hashed(self, source: Nic, target: Nic, sport: int, dport: int) -> int:
        """Number of the path on which the fabric's own hash puts a flow."""
        there = FiveTuple(source.address, target.address, sport, dport)
        return route(self._between(source, target), there, source, target).index

    def spine(self, source: Nic, target: Nic, number: int) -> int:
        """Place in ``Fabric.spines`` of the one spine on a path; -1 where there is not exactly one."""
        if self._pipes is not None:
            return -1
        spine = self._whole.path(source, target, number).spine
        return -1 if spine is None else self._spines[spine]

    def converge(self, down: Collection[int]) -> None:
        """From now on routes lead around the links ``down``."""
        self._fabric = self._whole.without_links(down) if down else self._whole

    @property
    def diverted(self) -> bool:
        """Whether routes lead around links that were up at first."""
        return self._fabric is not self._whole

    def _between(self, source: Nic, target: Nic) -> Fabric:
        """The fabric by which switches forward now; with no way left, packets go and are lost as before."""
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        return self._fabric if usable else self._whole

    def _plain_network(self) -> Network:
        fabric = self._fabric
        switches = {switch.name: number for number, switch in enumerate(fabric.switches)}
        ends: list[Ends] = []
        ports: dict[tuple[str, str], list[int]] = {}
        count = 0
        for link in fabric.links:  # the k-th port of a NIC towards a switch is one, in and out
            if link.source in switches and link.target in switches:
                ends.append((switches[link.source], switches[link.target], -1, -1))
                continue
            outward = link.target in switches
            nic, switch = (link.source, link.target) if outward else (link.target, link.source)
            side = ports.setdefault((nic, switch if outward else f"{switch} in"), [])
            other = ports.setdefault((nic, f"{switch} in" if outward else switch), [])
            if len(side) < len(other):
                port = other[len(side)]
            else:
                port, count = count, count + 1
            side.append(port)
            ends.append((-1, switches[switch], port, -1) if outward else (switches[switch], -1, -1, port))
        rates = list(fabric.link_rates_bps)
        return _network(len(switches), count, ends, rates, [link.delay_ns for link in fabric.links])


def _pooled_network(fabric: Fabric, pipes: Pipes) -> Network:
    nics, group = len(fabric.nics), pipes.group
    groups = len(group)
    delay = max(link.delay_ns for link in fabric.links)
    ends: list[Ends] = [(-1, 1 + group[nic.attachment], nic.index, -1) for nic in fabric.nics]
    ends += [(1 + group[nic.attachment], -1, -1, nic.index) for nic in fabric.nics]
    ends += [(1 + number, POOL, -1, -1) for number in range(groups)]
    ends += [(POOL, 1 + number, -1, -1) for number in range(groups)]
    return _network(1 + groups, nics, ends, pipes.rates_bps, [delay] * len(ends))


def _network(switches: int, nics: int, ends: list[Ends], rates: list[int], delays: list[int]) -> Network:
    source_switch, target_switch, source_nic, target_nic = np.array(ends, np.int64).reshape(-1, 4).T
    # A link that is down has no rate; no route leads over it.
    rate = np.maximum(np.array(rates, np.int64), 1)
    delay = np.array(delays, np.int64)
    return Network(switches, nics, source_switch, target_switch, source_nic, target_nic, rate, delay)
