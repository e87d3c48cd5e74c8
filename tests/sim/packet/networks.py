"""A small leaf-spine network as plain arrays, and runs of flows over it."""

from collections.abc import Sequence

import numpy as np

from ark.sim.packet.network import Network
from ark.sim.packet.settings import PacketSettings
from ark.sim.packet.simulation import Pause, Simulation

Flow = tuple[int, int, int]
"""Source NIC, target NIC, bytes."""
FOREVER_NS = 10**13


class LeafSpine:
    """``leaves`` x ``spines`` x ``hosts`` a leaf; every link has one rate and delay."""

    def __init__(
        self, leaves: int = 2, spines: int = 4, hosts: int = 8, rate_bps: int = 10**11, delay_ns: int = 500
    ) -> None:
        self.leaves, self.spines, self.hosts = leaves, spines, hosts
        nics = leaves * hosts
        ends = [(-1, nic // hosts, nic, -1) for nic in range(nics)]
        ends += [(nic // hosts, -1, -1, nic) for nic in range(nics)]
        ends += [(leaf, leaves + spine, -1, -1) for leaf in range(leaves) for spine in range(spines)]
        ends += [(leaves + spine, leaf, -1, -1) for leaf in range(leaves) for spine in range(spines)]
        source_switch, target_switch, source_nic, target_nic = np.array(ends, np.int64).T
        rate, delay = np.full(len(ends), rate_bps), np.full(len(ends), delay_ns)
        self.network = Network(
            leaves + spines, nics, source_switch, target_switch, source_nic, target_nic, rate, delay
        )

    def route(self, source: int, target: int, spine: int) -> list[int]:
        nics = self.leaves * self.hosts
        first, last = source // self.hosts, target // self.hosts
        if first == last:
            return [source, nics + target]
        up = 2 * nics + first * self.spines + spine
        down = 2 * nics + self.leaves * self.spines + last * self.spines + spine
        return [source, up, down, nics + target]


def start(
    place: LeafSpine,
    settings: PacketSettings,
    flows: Sequence[Flow],
    *,
    seed: int = 0,
    balancer: str = "",
    choices: bool = True,
    all_over: int | None = None,
) -> Simulation:
    """All flows begin at once; the window is the one that the settings ask for.

    Flow n goes over spine n, or all go over one; with a balancer leaves choose, if there are ``choices``.
    """
    simulation = Simulation(place.network, settings, seed=seed, balancer=balancer)
    for number, (source, target, size) in enumerate(flows):
        spine = number % place.spines if all_over is None else all_over
        route = place.route(source, target, spine)
        window = 0 if settings.window == "none" else settings.window_bytes or simulation.window_bytes(route)
        flow = simulation.add_flow(size, route, place.route(target, source, spine), window_bytes=window)
        if balancer and choices and len(route) > 2:
            spines = range(place.spines)
            simulation.set_choices(flow, [place.route(source, target, spine) for spine in spines])
    for flow in range(len(flows)):
        simulation.start(flow, 0)
    return simulation


def finish(simulation: Simulation) -> Simulation:
    """Run until no flow is left."""
    while simulation.live:
        assert simulation.run(FOREVER_NS) == Pause.FLOW
    return simulation


def total(simulation: Simulation, field: str) -> int:
    """Sum over all flows."""
    return int(simulation.world.flows[field][: simulation.flows].sum())


def link_total(simulation: Simulation, field: str) -> int:
    """Sum over all links."""
    return int(simulation.world.links[field][: simulation.world.clock.links].sum())
