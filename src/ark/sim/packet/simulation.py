"""A running simulation: a world, the flows added to it, and its clock.

The caller adds flows with the routes that it has chosen, starts them, and lets time pass; the compiled kernel
runs alone until a flow completes or reaches the end of its segment, or the time is up.
"""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from ark.errors import SimulationError
from ark.sim.packet import layout
from ark.sim.packet.kernel import change_nic, end_flow, resume_flow, run, set_link, settle, start_flow
from ark.sim.packet.layout import (
    EVENTS_MAX,
    FLOWS_MAX,
    HPCC,
    INT_HOPS,
    PACKETS_MAX,
    PATHS_MAX,
    ROUTES_MAX,
    SWIFT,
)
from ark.sim.packet.network import PS_PER_NS, Network, build_world
from ark.sim.packet.settings import PacketSettings


class Pause(IntEnum):
    """Why :meth:`Simulation.run` returned."""

    TIME_UP = layout.REACHED
    FLOW = layout.COMPLETED
    STALLED = layout.STALLED


class Simulation:
    """One simulation. Times are nanoseconds outside; fractions come from runs in whole picoseconds.

    With a ``balancer`` (``ark.sim.packet.leaves``) leaves choose the paths of the flows that are given
    choices.
    """

    def __init__(
        self, network: Network, settings: PacketSettings, *, seed: int = 0, balancer: str = ""
    ) -> None:
        self.network = network
        self.settings = settings
        self.world = build_world(network, settings, seed=seed, balancer=balancer)
        self.flows = 0
        self._route_entries = 1
        self._routes: dict[tuple[int, ...], int] = {}
        self._choice_entries = 0
        self._choices: dict[tuple[int, ...], int] = {}
        self._path_entries = 0
        self._pairs: dict[tuple[int, int], int] = {}
        self._memories: dict[tuple[int, int], int] = {}

    @property
    def now_ns(self) -> int:
        """The time up to which everything has happened."""
        return int(self.world.clock.now) // PS_PER_NS

    @property
    def live(self) -> int:
        """Flows that have started and are not complete."""
        return int(self.world.clock.live)

    def add_flow(
        self,
        size_bytes: int,
        route: Sequence[int],
        back: Sequence[int],
        *,
        window_bytes: int = 0,
        priority: int | None = None,
        segment_bytes: int | None = None,
    ) -> int:
        """Number of a new flow of ``size_bytes`` over the links ``route``, its ACKs over the links ``back``.

        ``window_bytes`` 0: no limit. With ``segment_bytes`` it pauses after so many until :meth:`send_on`.
        """
        if size_bytes <= 0:
            raise SimulationError(f"a flow has {size_bytes} bytes; it needs at least one")
        flow = self.flows
        self.flows += 1
        if flow >= FLOWS_MAX:
            raise SimulationError(f"the packet engine has room for {FLOWS_MAX} flows")
        links = self.world.links
        entry = self.world.flows[flow]
        entry.length = size_bytes
        entry.limit = size_bytes if segment_bytes is None else min(segment_bytes, size_bytes)
        entry.nic = links[route[0]].source_nic
        entry.priority = self.settings.priority if priority is None else priority
        entry.window = window_bytes
        entry.finish = -1
        entry.nack_sequence = -1
        entry.line = float(links[route[0]].rate)
        self.set_route(flow, route, back)
        self._set_control(flow)
        return flow

    def set_route(self, flow: int, route: Sequence[int], back: Sequence[int]) -> None:
        """Let the flow's packets from now on take other links."""
        self.world.flows[flow].route = self._route(route)
        self.world.flows[flow].back = self._route(back)
        self.world.flows[flow].base_rtt = self.base_rtt_ps(route, back)
        nic = int(self.world.links[route[0]].source_nic)
        if nic != self.world.flows[flow].nic:  # another port of a host
            change_nic(self.world, flow, nic)

    def set_choices(self, flow: int, routes: Sequence[Sequence[int]]) -> None:
        """Let leaves choose among these routes of a flow, which differ between its first and last leaf only.

        All flows between two leaves must have as many, in the same order.
        """
        world = self.world
        state = world.steerings[flow]
        positions = tuple(self._route(route) for route in routes)
        first = self._choices.get(positions)
        if first is None:
            first = self._choices[positions] = self._choice_entries
            self._choice_entries += len(positions)
            if self._choice_entries > ROUTES_MAX:
                raise SimulationError(f"the paths of all flows take more than {ROUTES_MAX} entries")
            world.choices[first : self._choice_entries] = positions
        state.first, state.count, state.path = first, len(positions), -1
        links = world.links
        leaf, other = int(links[routes[0][0]].target_switch), int(links[routes[0][-1]].source_switch)
        state.pair = self._paths_between(leaf, other, len(positions))
        state.back = self._paths_between(other, leaf, len(positions))
        memory = (leaf, int(routes[0][-1]))
        if memory not in self._memories:
            self._memories[memory] = len(self._memories)
            world.remembered[self._memories[memory]] = -1
        state.memory = self._memories[memory]
        state.base_rtt = 2 * sum(int(links[link].delay) for link in routes[0][1:-1])
        state.armed = -1

    def forget_choices(self) -> None:
        """What leaves know of paths is void; all flows are to be given choices anew, of any number."""
        self._pairs.clear()
        self._memories.clear()
        self.world.steerings["count"][: self.flows] = 0

    def _paths_between(self, leaf: int, other: int, count: int) -> int:
        """Position of what two leaves know of the paths from ``leaf`` to ``other``."""
        first = self._pairs.get((leaf, other))
        if first is None:
            first = self._pairs[leaf, other] = self._path_entries
            self._path_entries += count
            if self._path_entries > PATHS_MAX:
                raise SimulationError(f"more than {PATHS_MAX} paths between leaves")
            entries = self.world.paths[first : self._path_entries]
            for name in ("told_at", "met_at"):
                entries[name] = -1
        return first

    def start(self, flow: int, now_ns: int) -> None:
        """The flow begins to send at ``now_ns``, which must not lie before the clock."""
        start_flow(self.world, flow, now_ns * PS_PER_NS)

    def send_on(self, flow: int, segment_bytes: int | None = None) -> None:
        """Let a flow at the end of its segment send a further one; None: all that is left."""
        entry = self.world.flows[flow]
        entry.limit = (
            entry.length
            if segment_bytes is None
            else min(int(entry.limit) + segment_bytes, int(entry.length))
        )
        resume_flow(self.world, flow, int(self.world.clock.now))

    def end(self, flow: int) -> None:
        """A flow at the end of its segment has nothing more to send: it is complete."""
        end_flow(self.world, flow, int(self.world.clock.now))

    def set_link(self, link: int, now_ns: int, *, up: bool) -> None:
        """A link and its partner fail, or come back."""
        for one in (link, int(self.world.links[link].reverse)):
            set_link(self.world, one, up, now_ns * PS_PER_NS)

    def run(self, until_ns: int) -> Pause:
        """Let time pass up to ``until_ns``, or to the next flow that ends or pauses (``self.reported``)."""
        reason = run(self.world, until_ns * PS_PER_NS)
        if reason == layout.FULL:
            raise SimulationError(f"more than {PACKETS_MAX} packets or {EVENTS_MAX} events at once")
        if self.world.clock.pending == 0 and self.live and reason == layout.REACHED:
            return Pause.STALLED
        return Pause(reason)

    @property
    def reported(self) -> int:
        """The flow for which :meth:`run` returned."""
        return int(self.world.clock.reported)

    def fct_ns(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Completion time of each flow; -1 for those that are not complete."""
        flows = self.world.flows[: self.flows]
        return np.where(flows["finish"] >= 0, (flows["finish"] - flows["start"]) // PS_PER_NS, -1)

    def settle(self) -> None:
        """Bring queues and counters of all links up to the clock, to be read."""
        settle(self.world, int(self.world.clock.now))

    def base_rtt_ps(self, route: Sequence[int], back: Sequence[int]) -> int:
        """Round trip of a full packet and its ACK through empty queues."""
        links = self.world.links
        there = sum(int(links[link].time_data) + int(links[link].delay) for link in route)
        return there + sum(int(links[link].time_ack) + int(links[link].delay) for link in back)

    def window_bytes(self, route: Sequence[int]) -> int:
        """Window of a pair as SimAI has it: line rate over twice the delays and once the payload's times."""
        links = self.world.links
        payload_bits = 8 * self.settings.payload_bytes
        rtt_ns = 0
        for link in route:
            rtt_ns += 2 * int(links[link].delay) // PS_PER_NS
            rtt_ns += payload_bits * 10**9 // int(links[link].rate)
        rate = min(int(links[link].rate) for link in route)
        return rtt_ns * rate // (8 * 10**9)

    def _set_control(self, flow: int) -> None:
        entry = self.world.flows[flow]
        full = self.settings.payload_bytes + int(self.world.rules.overhead)
        gap = int(full * 8e12 / entry.line)
        entry.rate = entry.target = entry.line
        entry.gap = gap - gap % int(self.world.rules.tick)
        entry.allowed = entry.window
        control = int(self.world.rules.control)
        if control == HPCC:
            entry.reference = entry.line
            entry.utilisation = 1.0
            self.world.seen["link"][flow * INT_HOPS : (flow + 1) * INT_HOPS] = -1
        elif control == SWIFT:
            payload = self.settings.payload_bytes
            entry.reference = max(entry.line * int(entry.base_rtt) / 8e12 / payload, 1.0)
            entry.allowed = int(entry.reference * payload)
            entry.decreased = -int(entry.base_rtt)

    def _route(self, links: Sequence[int]) -> int:
        """Position of the route in the table, which gets it if it is new."""
        key = tuple(int(link) for link in links)
        position = self._routes.get(key)
        if position is None:
            if self.world.rules.control == HPCC and len(key) > INT_HOPS + 1:
                raise SimulationError(
                    f"HPCC: a path of {len(key)} links; at most {INT_HOPS + 1} are supported"
                )
            position = self._route_entries
            self._route_entries += len(key) + 1
            if self._route_entries > ROUTES_MAX:
                raise SimulationError(f"the routes take more than {ROUTES_MAX} entries")
            self.world.routes[position : self._route_entries] = [*key, -1]
            self._routes[key] = position
        return position
