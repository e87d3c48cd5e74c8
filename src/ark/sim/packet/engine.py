"""Runs transfers under a scheme packet by packet: the loop around the compiled kernel.

Between two decisions (an arrival, a completion, a segment end, a deadline of the scheme) the kernel runs
alone. Each stripe is a queue pair with an equal share of the window. A stripe that pulls its bytes by
segments asks for the next one when the last is acknowledged; with none left it is complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError, Fault, SimulationError
from ark.fabric.topology import Fabric
from ark.sim.packet.layout import NEVER
from ark.sim.packet.network import PS_PER_NS
from ark.sim.packet.outages import LinkEvent, Outages
from ark.sim.packet.settings import PacketSettings
from ark.sim.packet.simulation import Pause, Simulation
from ark.sim.packet.wiring import PacketWiring
from ark.sim.results import Outcome
from ark.sim.schemes.catalogue import STRIPE_SEGMENT_BYTES, chunk_bytes
from ark.sim.schemes.scheme import Assignment, Scheme, Transfer
from ark.sim.spine_log import SpineLog

FOREVER_NS: Final = NEVER // PS_PER_NS
SAMPLES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Samples:
    """State of every link over time: ``int64[sample, link]``; bytes count from the beginning of the run."""

    time_ns: NDArray[np.int64]
    queued_bytes: NDArray[np.int64]
    sent_bytes: NDArray[np.int64]


@dataclass(slots=True)
class _Stripe:
    flow: int
    paths: list[int]
    ports: list[int]
    spine: int = -1
    roams: bool = False
    """Leaves choose its paths, packet by packet."""


@dataclass(slots=True)
class _Live:
    """A transfer from its arrival to its completion."""

    transfer: Transfer
    wanted: Assignment
    managed: bool
    unclaimed: int = 0
    """Bytes that no stripe has pulled yet."""
    running: int = 0
    chunk: int | None = None
    stripes: list[_Stripe] = field(default_factory=list)


class PacketEngine:
    """One run: make it, call ``run`` once.

    Parameters
    ----------
    fabric, transfers, scheme, settings, seed
        What runs; the seed is that of ECN marks, losses and leaves that draw.
    link_events
        Links of the fabric, by index, that fail or come back.
    reconverge_ns
        How long after such an event all switches hash over the next hops that are up; None for never.
    sample_ns
        Time between samples; 0 for none.
    """

    def __init__(
        self,
        fabric: Fabric,
        transfers: Sequence[Transfer],
        scheme: Scheme,
        settings: PacketSettings,
        *,
        seed: int = 0,
        link_events: Sequence[LinkEvent] = (),
        reconverge_ns: int | None = None,
        sample_ns: int = 0,
    ) -> None:
        self._fabric = fabric
        self._scheme = scheme
        self._transfers = transfers
        self._settings = settings
        self._wiring = PacketWiring(fabric, pooled=scheme.pooled)
        if link_events and scheme.pooled:
            raise ConfigError(Fault("link_events", f"{scheme.name} has no single links that could fail"))
        self.simulation = Simulation(self._wiring.network, settings, seed=seed, balancer=scheme.balancer)
        self._window = self._window_bytes()
        self._spines = SpineLog(fabric.spines)
        self._live: dict[int, _Live] = {}
        self._owner: dict[int, tuple[_Live, _Stripe]] = {}
        self._held: list[tuple[int, int]] = []
        self._outages = Outages(link_events, reconverge_ns, self.simulation)
        self._sample_ns = sample_ns
        self._next_sample = 0 if sample_ns else FOREVER_NS
        self._rows: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        count = len(transfers)
        self._fct_ns, self._reserve_ns = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        self._marks, self._retransmits = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._path, self._sport, self._spine = [""] * count, [""] * count, [""] * count

    def run(self) -> Outcome:
        """Run every transfer to its end.

        Raises
        ------
        SimulationError
            If transfers make no progress any more, named with the time; or the scheme asks for time that it
            does not use.
        """
        arrived = 0
        while arrived < len(self._transfers) or self._live:
            deadline = self._scheme.next_deadline()
            due = self._next_due(arrived, deadline)
            pause = self.simulation.run(due)
            if pause == Pause.FLOW:
                self._on_report(self.simulation.now_ns, self.simulation.reported)
                continue
            if pause == Pause.STALLED and (due == FOREVER_NS or self.simulation.now_ns < due):
                raise SimulationError(self._stall())
            if deadline is not None and deadline <= due:
                self._tick(due)
            self._happen(due)
            while self._held and self._held[0][0] <= due:
                self._start(due, self._live[heappop(self._held)[1]])
            while arrived < len(self._transfers) and self._transfers[arrived].start_ns <= due:
                self._arrive(due, self._transfers[arrived])
                arrived += 1
        return Outcome(
            self._fct_ns,
            self._reserve_ns,
            self._path,
            self._sport,
            self._spine,
            self._spines.series(),
            self._marks,
            self._retransmits,
        )

    def samples(self) -> Samples:
        """What was sampled, once each ``sample_ns``."""
        links = int(self.simulation.world.clock.links)
        return Samples(
            np.array([row[0] for row in self._rows], np.int64),
            np.array([row[1] for row in self._rows], np.int64).reshape(-1, links),
            np.array([row[2] for row in self._rows], np.int64).reshape(-1, links),
        )

    def _next_due(self, arrived: int, deadline: int | None) -> int:
        times = [self._next_sample, FOREVER_NS if deadline is None else deadline]
        if arrived < len(self._transfers):
            times.append(self._transfers[arrived].start_ns)
        if self._held:
            times.append(self._held[0][0])
        if (outage_ns := self._outages.due_ns) is not None:
            times.append(outage_ns)
        return max(min(times), self.simulation.now_ns)

    def _window_bytes(self) -> int:
        """SimAI gives all pairs the greatest bandwidth-delay product that any pair has; 0: no window."""
        settings = self._settings
        if settings.window == "none":
            return 0
        if settings.window_bytes is not None:
            return settings.window_bytes
        pairs = {(t.source.attachment, t.target.attachment): t for t in self._transfers}
        windows = [0]
        for transfer in pairs.values():
            for path in self._fabric.up_paths(transfer.source.attachment, transfer.target.attachment):
                links = self._wiring.route(transfer.source, transfer.target, path)
                windows.append(self.simulation.window_bytes(links))
        return max(windows)

    def _arrive(self, now_ns: int, transfer: Transfer) -> None:
        managed = not transfer.pin or self._scheme.pooled
        if managed:
            wanted = self._scheme.arrived(now_ns, transfer)
        else:
            wanted = Assignment(transfer.pin, (transfer.sport,) * len(transfer.pin), now_ns)
        live = self._live[transfer.index] = _Live(transfer, wanted, managed)
        if wanted.start_ns <= now_ns:
            self._start(now_ns, live)
        else:
            self._reserve_ns[transfer.index] = wanted.start_ns - now_ns
            heappush(self._held, (wanted.start_ns, transfer.index))

    def _tick(self, now_ns: int) -> None:
        for index, assignment in self._scheme.tick(now_ns):
            live = self._live[index]
            live.wanted = assignment
            for number, stripe in enumerate(live.stripes):
                self._move(now_ns, live, stripe, assignment.paths[number], assignment.ports[number])
        deadline = self._scheme.next_deadline()
        if deadline is not None and deadline <= now_ns:
            raise SimulationError(
                f"scheme {self._scheme.name} has something to do at {deadline} ns but does not"
            )

    def _happen(self, now_ns: int) -> None:
        """Links that fail or come back, and samples."""
        if self._outages.happen(now_ns):
            self._converge(now_ns)
        if self._next_sample <= now_ns:
            self.simulation.settle()
            links = self.simulation.world.links[: self.simulation.world.clock.links]
            self._rows.append((now_ns, links["queued"].copy(), links["sent_bytes"].copy()))
            self._next_sample += self._sample_ns
            if len(self._rows) > SAMPLES_MAX:
                raise ConfigError(
                    Fault("sample_ns", f"{self._sample_ns} gives more than {SAMPLES_MAX} samples")
                )

    def _converge(self, now_ns: int) -> None:
        """All switches hash over other next hops from now on."""
        self._wiring.converge(self._outages.avoided)
        self.simulation.forget_choices()
        for live, stripe in self._owner.values():
            self._move(now_ns, live, stripe, stripe.paths[-1], stripe.ports[-1], anew=True)

    def _start(self, now_ns: int, live: _Live) -> None:
        transfer, wanted = live.transfer, live.wanted
        source, target = transfer.source, transfer.target
        count = len(wanted.paths)
        segment = self._scheme.segment_bytes if live.managed else STRIPE_SEGMENT_BYTES if count > 1 else None
        chunk = chunk_bytes(segment, transfer.size_bytes, count)
        live.chunk = chunk
        live.unclaimed = transfer.size_bytes
        for wanted_path, port in zip(wanted.paths, wanted.ports, strict=True):
            share = min(chunk if chunk is not None else transfer.size_bytes, live.unclaimed)
            if share == 0:
                break  # more stripes than segments
            live.unclaimed -= share
            path = self._taken(transfer, wanted_path, port)
            flow = self.simulation.add_flow(
                NEVER if chunk is not None else share,
                self._wiring.route(source, target, path),
                self._wiring.back(source, target, port, transfer.dport),
                window_bytes=-(-self._window // count),
                segment_bytes=None if chunk is None else share,
            )
            stripe = _Stripe(flow, [path], [port])
            live.stripes.append(stripe)
            self._owner[flow] = live, stripe
            self._settle_in(now_ns, live, stripe)
        live.running = len(live.stripes)
        for stripe in live.stripes:
            self.simulation.start(stripe.flow, now_ns)

    def _taken(self, transfer: Transfer, wanted: int, port: int) -> int:
        """The path that a port leads to: the wanted one, unless routes are other ones by now."""
        if not self._wiring.diverted:
            return wanted
        return self._wiring.hashed(transfer.source, transfer.target, port, transfer.dport)

    def _settle_in(self, now_ns: int, live: _Live, stripe: _Stripe) -> None:
        """The stripe is on the last of its paths now; where leaves choose, on any that they like."""
        source, target, path = live.transfer.source, live.transfer.target, stripe.paths[-1]
        stripe.roams = bool(self._scheme.balancer and live.managed)
        if not stripe.roams:
            stripe.spine = self._wiring.spine(source, target, path)
            self._spines.enter(now_ns, stripe.spine)
        elif len(self._wiring.route(source, target, path)) > 2:
            self.simulation.set_choices(stripe.flow, self._wiring.choices(source, target, path))

    def _on_report(self, now_ns: int, flow: int) -> None:
        """A stripe is complete, or at the end of its segment."""
        live, stripe = self._owner[flow]
        if live.chunk is not None:
            if live.unclaimed and live.managed and self._scheme.moves:
                self._ask(now_ns, live, stripe)
            share = min(live.chunk, live.unclaimed)
            live.unclaimed -= share
            if share:
                self.simulation.send_on(flow, share)
                return
            self.simulation.end(flow)
        live.running -= 1
        if not live.running:
            self._end(now_ns, live)

    def _ask(self, now_ns: int, live: _Live, stripe: _Stripe) -> None:
        """Let the scheme choose again; the stripe moves to where it is wanted."""
        index = live.transfer.index
        assignment = self._scheme.segment_ended(now_ns, index, self._bytes_left(live))
        if assignment is not None:
            live.wanted = assignment
        number = live.stripes.index(stripe)
        self._move(now_ns, live, stripe, live.wanted.paths[number], live.wanted.ports[number])

    def _move(
        self, now_ns: int, live: _Live, stripe: _Stripe, wanted: int, port: int, *, anew: bool = False
    ) -> None:
        """Put a stripe on the path to which a port leads; nothing to do if it is there, unless ``anew``."""
        transfer = live.transfer
        source, target = transfer.source, transfer.target
        path = (
            self._taken(transfer, wanted, port)
            if not anew
            else self._wiring.hashed(source, target, port, transfer.dport)
        )
        if path == stripe.paths[-1] and not anew:
            return
        self.simulation.set_route(
            stripe.flow,
            self._wiring.route(source, target, path),
            self._wiring.back(source, target, port, transfer.dport),
        )
        self._spines.leave(now_ns, stripe.spine)
        if path != stripe.paths[-1]:
            stripe.paths.append(path)
            stripe.ports.append(port)
        self._settle_in(now_ns, live, stripe)

    def _bytes_left(self, live: _Live) -> int:
        flows = self.simulation.world.flows
        under_way = sum(int(flows[of.flow].limit) - int(flows[of.flow].acked) for of in live.stripes)
        return live.unclaimed + under_way

    def _end(self, now_ns: int, live: _Live) -> None:
        transfer, stripes = live.transfer, live.stripes
        index = transfer.index
        self._fct_ns[index] = now_ns - transfer.start_ns
        roams = any(of.roams for of in stripes)
        self._path[index] = "" if roams else ";".join([">".join(map(str, of.paths)) for of in stripes])
        self._sport[index] = ";".join([">".join(map(str, of.ports)) for of in stripes])
        used = {
            self._wiring.spine(transfer.source, transfer.target, path) for of in stripes for path in of.paths
        }
        if len(used) == 1 and not roams and (spine := used.pop()) >= 0:
            self._spine[index] = self._fabric.spines[spine]
        for of in stripes:
            entry = self.simulation.world.flows[of.flow]
            self._marks[index] += entry.marks
            self._retransmits[index] += entry.retransmits
            self._spines.leave(now_ns, of.spine)
            del self._owner[of.flow]
        del self._live[index]
        if live.managed:
            self._scheme.completed(now_ns, index)

    def _stall(self) -> str:
        """What to tell people of a run that makes no progress."""
        waiting = sorted(self._live)
        named = ", ".join(str(index) for index in waiting[:5]) + (", ..." if len(waiting) > 5 else "")
        return (
            f"{len(waiting)} transfers (rows {named}) make no progress since "
            f"{int(self.simulation.world.clock.progress) // PS_PER_NS} ns: a path is down for good, "
            "all packets are lost, or PFC pauses wait for each other"
        )
