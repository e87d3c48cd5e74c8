"""Runs transfers under a scheme on the fluid network: the loop around the compiled kernel.

Between two decisions (an arrival, a completion, a segment end, a deadline of the scheme) the kernel runs
alone. The scheme hears whole nanoseconds, rounded up; a completion reaches it with the sender's last
acknowledgement, the base latency after the last byte has left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, inf
from typing import Final

import numpy as np

from ark.errors import SimulationError
from ark.fabric.topology import Fabric
from ark.sim.flow.model import FlowModel
from ark.sim.flow.network import FluidNetwork, Stop
from ark.sim.flow.wiring import Way, Wiring
from ark.sim.offered import Layers
from ark.sim.results import Outcome
from ark.sim.schemes.catalogue import STRIPE_SEGMENT_BYTES, chunk_bytes
from ark.sim.schemes.scheme import Assignment, Scheme, Transfer
from ark.sim.spine_log import SpineLog

_COMPLETE: Final = 0
_START: Final = 1
"""Kinds of things to come; at one instant completions go first."""


@dataclass(slots=True)
class _Stripe:
    """The ways and ports that a stripe has used; the last ones are those of now."""

    ways: list[Way]
    ports: list[int]


@dataclass(slots=True)
class _Live:
    """A transfer from its arrival to its completion; ``wanted`` is where its stripes shall go."""

    transfer: Transfer
    wanted: Assignment
    managed: bool
    slot: int = -1
    latency_ns: int = 0
    stripes: list[_Stripe] = field(default_factory=list)


class FlowEngine:
    """One run: make it, call ``run`` once."""

    def __init__(
        self,
        fabric: Fabric,
        transfers: Sequence[Transfer],
        scheme: Scheme,
        model: FlowModel,
        layers: Layers | None = None,
    ) -> None:
        self._scheme = scheme
        self._layers = layers
        self._transfers = transfers
        self._wiring = Wiring(fabric, model, pooled=scheme.pooled)
        stripes_max = max([scheme.stripes_max, *(len(transfer.pin) for transfer in self._transfers)])
        self._network = FluidNetwork(self._wiring.link_rate * scheme.goodput, stripes_max=stripes_max)
        self._spines = SpineLog(fabric.spines)
        self._spine_names = fabric.spines
        self._live: dict[int, _Live] = {}
        self._by_slot: dict[int, _Live] = {}
        self._agenda: list[tuple[int, int, int]] = []
        count = len(transfers)
        self._fct_ns = np.zeros(count, np.int64)
        self._reserve_ns = np.zeros(count, np.int64)
        self._path, self._sport, self._spine = [""] * count, [""] * count, [""] * count

    def run(self) -> Outcome:
        """Run every transfer to its end.

        Raises
        ------
        SimulationError
            If the scheme asks for time that it does not use.
        """
        network, scheme, agenda = self._network, self._scheme, self._agenda
        arrivals: list[float] = [*(transfer.start_ns for transfer in self._transfers), inf]
        arrived = 0
        while True:
            due = min(arrivals[arrived], agenda[0][0]) if agenda else arrivals[arrived]
            deadline = scheme.next_deadline()
            if deadline is not None:
                due = min(due, deadline)
            stop = network.run(max(due, network.now_ns))
            if stop.ended or stop.asked:
                self._on_stop(stop)
                continue
            if due == inf:
                break
            now_ns = int(due)
            self._do(now_ns, _COMPLETE)
            if deadline is not None and deadline <= now_ns:
                self._tick(now_ns)
            self._do(now_ns, _START)
            while arrivals[arrived] <= now_ns:
                self._arrive(now_ns, self._transfers[arrived])
                arrived += 1
        series = self._spines.series()
        return Outcome(self._fct_ns, self._reserve_ns, self._path, self._sport, self._spine, series)

    def _arrive(self, now_ns: int, transfer: Transfer) -> None:
        managed = not transfer.pin or self._scheme.pooled
        if managed:
            wanted = self._scheme.arrived(now_ns, transfer)
        else:
            wanted = Assignment(transfer.pin, (transfer.sport,) * len(transfer.pin), now_ns)
        index = transfer.index
        live = self._live[index] = _Live(transfer, wanted, managed)
        if wanted.start_ns <= now_ns:
            self._start(now_ns, live)
        else:
            self._reserve_ns[index] = wanted.start_ns - now_ns
            heappush(self._agenda, (wanted.start_ns, _START, index))

    def _tick(self, now_ns: int) -> None:
        for index, assignment in self._scheme.tick(now_ns):
            live = self._live[index]
            live.wanted = assignment
            if live.slot in self._by_slot:
                for number in range(len(live.stripes)):
                    self._follow(now_ns, live, number)
        deadline = self._scheme.next_deadline()
        if deadline is not None and deadline <= now_ns:
            raise SimulationError(
                f"scheme {self._scheme.name} has something to do at {deadline} ns but does not"
            )

    def _do(self, now_ns: int, kind: int) -> None:
        """Do what is due of one kind."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= now_ns and agenda[0][1] == kind:
            index = heappop(agenda)[2]
            if kind == _START:
                self._start(now_ns, self._live[index])
            elif self._live.pop(index).managed:
                self._scheme.completed(now_ns, index)

    def _start(self, now_ns: int, live: _Live) -> None:
        transfer, wanted = live.transfer, live.wanted
        ways = [self._wiring.way(transfer.source, transfer.target, path) for path in wanted.paths]
        count = len(wanted.paths)
        segment = self._scheme.segment_bytes if live.managed else STRIPE_SEGMENT_BYTES if count > 1 else None
        chunk = chunk_bytes(segment, transfer.size_bytes, count)
        layers = None
        if self._layers is not None:
            every_ns = self._layers.every_ns[transfer.index]
            layers = (float(transfer.start_ns), float(every_ns), self._layers.count)
        live.slot = self._network.add_flow(
            [way.links for way in ways],
            transfer.size_bytes,
            chunk_bytes=inf if chunk is None else chunk,
            weight=1 / count,
            asks=live.managed and self._scheme.moves,
            layers=layers,
        )
        self._by_slot[live.slot] = live
        live.latency_ns = max([way.latency_ns for way in ways])
        live.stripes = [_Stripe([way], [port]) for way, port in zip(ways, wanted.ports, strict=True)]
        for way in ways:
            self._spines.enter(now_ns, way.spine)

    def _on_stop(self, stop: Stop) -> None:
        """Flows have ended, or stripes are at a segment end."""
        now_ns = self._network.now_ns
        for slot in stop.ended:
            self._end(now_ns, self._by_slot.pop(slot))
        asked = sorted((self._by_slot[slot].transfer.index, number) for slot, number in stop.asked)
        for index, number in asked:
            live = self._live[index]
            left = self._network.bytes_left(live.slot)
            assignment = self._scheme.segment_ended(ceil(now_ns), index, left)
            if assignment is not None:
                live.wanted = assignment
            self._follow(now_ns, live, number)

    def _follow(self, now_ns: float, live: _Live, number: int) -> None:
        """Move a stripe that is at its segment end to where it is wanted."""
        stripe, path, transfer = live.stripes[number], live.wanted.paths[number], live.transfer
        if stripe.ways[-1].number == path:
            return
        way = self._wiring.way(transfer.source, transfer.target, path)
        self._network.move_stripe(live.slot, number, way.links)
        self._spines.leave(now_ns, stripe.ways[-1].spine)
        self._spines.enter(now_ns, way.spine)
        live.latency_ns = max(live.latency_ns, way.latency_ns)
        stripe.ways.append(way)
        stripe.ports.append(live.wanted.ports[number])

    def _end(self, now_ns: float, live: _Live) -> None:
        """The last byte has left; the sender knows when the last acknowledgement is in."""
        self._network.free_flow(live.slot)
        index, start_ns, stripes = live.transfer.index, live.transfer.start_ns, live.stripes
        complete_ns = now_ns + live.latency_ns
        self._fct_ns[index] = round(complete_ns - start_ns)
        self._path[index] = ";".join([">".join([str(way.number) for way in of.ways]) for of in stripes])
        self._sport[index] = ";".join([">".join(map(str, of.ports)) for of in stripes])
        used = {way.spine for stripe in stripes for way in stripe.ways}
        if len(used) == 1 and (spine := used.pop()) >= 0:
            self._spine[index] = self._spine_names[spine]
        for stripe in stripes:
            self._spines.leave(now_ns, stripe.ways[-1].spine)
        heappush(self._agenda, (ceil(complete_ns), _COMPLETE, index))
