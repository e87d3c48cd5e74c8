"""Real controllers in virtual time: their network, their clocks, their clients and their crashes."""

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Final

from ark.control.controller import Controller, Output
from ark.control.decision import Event
from ark.control.epoch import first_epoch
from ark.control.geometry import Geometry
from ark.control.outbox import Send
from ark.control.own_id import CLONE_LEASES
from ark.control.policy import Policy
from ark.control.replica import ReplicaConfig
from ark.control.rows import Row
from ark.control.wire import ALL, Key, Keys, down, host_id, open_datagram, up
from ark.fabric import leaf_spine
from ark.testing.invariants import Judge, Violation, ensure
from ark.testing.machine import Client, Machine, identity, own_rows, running
from ark.testing.network import SimulatedNetwork
from ark.testing.schedule import FAULTY_NS, Fault, Schedule
from ark.units import NS_PER_S

LEASE_NS: Final = NS_PER_S
HEARTBEAT_NS: Final = NS_PER_S // 5
"""A third of the default lease, with fewer heartbeats in it: schedules get shorter, not easier."""

SETTLE_NS: Final = 3 * NS_PER_S // 2
"""From the end of all faults to the first comparison of tables: transfers end, leases end."""

QUIET_NS: Final = 3 * NS_PER_S
"""From the end of all faults to the last comparison: lost snapshots are mended, forgotten transfers leak."""

CALM_NS: Final = NS_PER_S // 2
"""From the last segment ends to the last comparison."""

GLANCE_NS: Final = NS_PER_S // 8
"""Between two comparisons."""

RATE_BPS: Final = 100_000_000_000
WALL_NS: Final = 1_790_000_000 * NS_PER_S
RECORDED_MAX: Final = 300
"""Datagrams recorded for replays; the oldest are forgotten."""

TICKS_MAX: Final = 1000
"""Ticks of one host without time passing, beyond which it counts as caught in a loop."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all hosts of a cluster share."""

    geometry: Geometry
    fabric: bytes
    policy: Policy
    keys: Keys


class Cluster:
    """One run of a schedule.

    Every event is followed by the checks from outside of what its host holds, and every ``check_every``-th of
    a host by those of all that its controller is made of, which take four times as long as the event. ``run``
    raises ``Violation``, or whatever else a controller raises; ``trace`` is a digest of everything that
    happened.
    """

    def __init__(self, schedule: Schedule, *, check_every: int = 1) -> None:
        self.schedule = schedule
        self.check_every = check_every
        self.now = 0
        self.events = 0
        self.rng = Random(schedule.seed ^ 0x5EED)
        fabric = leaf_spine(schedule.leaves, schedule.spines, -(-schedule.hosts // schedule.leaves))
        self.setting = Setting(
            fabric,
            fabric.digest(),
            Policy(name=schedule.policy, line_rate_bps=RATE_BPS, hold_ns=schedule.hold_ns),
            Keys(Key(1, b"the key of the simulated cluster")),
        )
        self.network = SimulatedNetwork(Random(schedule.seed ^ 0xCAB1E))
        self.judge = Judge()
        self.machines = [self._machine(index) for index in range(schedule.hosts)]
        self._clones: list[Machine] = []
        self._ids = {machine.host: machine for machine in self.machines}
        self._lives = {machine.host: [machine] for machine in self.machines}
        self._queue: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._order = 0
        self._recorded: deque[tuple[Machine, Send]] = deque(maxlen=RECORDED_MAX)
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace(self) -> str:
        """Digest of all events so far."""
        return self._trace.hexdigest()

    def run(self) -> None:
        """Play the schedule: faults and transfers, then quiet, then agreement."""
        for machine in self.machines:
            self.at(self.rng.randrange(NS_PER_S // 20), self._boot, machine)
        for number, transfer in enumerate(self.schedule.transfers):
            self.at(transfer.start_ns, self._arrive, Client(transfer, number))
        for fault in self.schedule.faults:
            self.at(fault.start_ns, self._break, fault)
        quiet_ns = FAULTY_NS + (CLONE_LEASES * LEASE_NS if may_believe_in_clone(self.schedule) else 0)
        forgotten = any(transfer.forgotten for transfer in self.schedule.transfers)
        self._play(quiet_ns + (QUIET_NS if forgotten else SETTLE_NS))
        self._agree(quiet_ns + QUIET_NS)
        for machine in self.machines:
            self._end_segments(machine)
        self._play(self.now + CALM_NS)
        self._agree(self.now)
        self.check_claims()

    def at(self, time_ns: int, action: Callable[..., None], *arguments: object) -> None:
        """Let something happen at a virtual time."""
        self._order += 1
        heappush(self._queue, (time_ns, self._order, action, arguments))

    def _agree(self, until_ns: int) -> None:
        """Let time pass until all agree, up to a time; a forgotten transfer may leak just then."""
        until_ns = max(until_ns, self.now) + 2 * GLANCE_NS
        while self.now < until_ns:
            try:
                return self.check_agreement()
            except Violation:
                self._play(self.now + GLANCE_NS)
        return self.check_agreement()

    def check_agreement(self) -> None:
        """Assert that every table holds exactly what the owners have, as far as its host hears of it."""
        for observer in self.machines:
            controller = running(observer)
            self._check_within(controller)
            expected: set[object] = set()
            for machine in self.machines:
                for row in own_rows(machine):
                    if machine is observer:
                        expected.add(identity(row, row.source, row.flow))
                    else:
                        expected |= self._heard_of(controller, row)
            table = {identity(row, row.source, row.flow) for row in controller.view.table}
            ensure(table == expected, f"host {observer.index} has {table ^ expected} wrong after all faults")
            ensure(
                self.schedule.by_leaf or controller.replica.heard == len(self.machines) - 1,
                f"host {observer.index} hears {controller.replica.heard} others",
            )
            ensure(not controller.replica.cloned, f"host {observer.index} still believes in a clone")

    def check_claims(self) -> None:
        """Assert, for the paper's policy, that a path has one owner, and everywhere the same."""
        if self.schedule.policy != "paper":
            return
        for path in range(self.schedule.spines):
            owners = set()
            for machine in self.machines:
                claims = running(machine).view.claims
                assert claims is not None
                owners.add(claims.owner(path))
            ensure(len(owners) == 1, f"path {path} has the owners {owners}")
        for machine in self.machines:
            claimed = [row.paths for row in running(machine).view.table if not row.fallback]
            ensure(len(claimed) == len(set(claimed)), f"two claims of one path survive: {claimed}")

    def _machine(self, index: int, *, clone_of: "Machine | None" = None) -> Machine:
        return Machine(
            index=index,
            host=host_id(f"h{index}") if clone_of is None else clone_of.host,
            address=f"10.0.{0 if clone_of is None else 1}.{index}",
            attachment=index % self.schedule.leaves,
            monotonic_ns=self.rng.randrange(10**15),
            wall_ns=WALL_NS + self.rng.randrange(-50_000_000, 50_000_000),
        )

    def _config(self, machine: Machine) -> ReplicaConfig:
        home: tuple[str, ...] = (ALL,)
        listens = frozenset(home)
        if self.schedule.by_leaf:
            home = (up(machine.attachment),)
            listens = frozenset((*home, *map(down, range(self.schedule.leaves))))
        others = {other.host: other.address for other in self.machines if other.host != machine.host}
        return ReplicaConfig(
            host=machine.host,
            address=machine.address,
            fabric=self.setting.fabric,
            keys=self.setting.keys,
            peers=None if self.schedule.open_membership else others,
            leaves=self.schedule.by_leaf,
            home=home,
            listens=listens,
            lease_ns=LEASE_NS,
            heartbeat_ns=HEARTBEAT_NS,
        )

    def _boot(self, machine: Machine) -> None:
        """Start a controller; clients that are still running register again (rule 15)."""
        machine.life += 1
        machine.booted_ns = self.now
        machine.armed_ns = -1
        machine.fresh.clear()
        machine.seen.clear()
        machine.heard.clear()
        epoch = first_epoch(machine.stored_epoch, self.now + machine.wall_ns)
        machine.stored_epoch = epoch
        heard = len(self.machines) - 1
        if self.schedule.by_leaf:
            heard = sum(other.attachment == machine.attachment for other in self.machines) - 1
        machine.controller = Controller(
            self._config(machine),
            self.setting.policy,
            self.setting.geometry,
            epoch,
            randomness=Random(self.rng.getrandbits(64)),
            now=self.now + machine.monotonic_ns,
            peers_expected=heard,
        )
        self._arm(machine)
        for client in list(machine.clients.values()):
            if client.started and client.paths:
                transfer = client.transfer
                resumed = (machine.attachment, transfer.target, transfer.size_bytes, client.paths)
                self._register(machine, client, machine.controller.flow_resumed, *resumed)
            else:
                self._request(machine, client)

    def _crash(self, machine: Machine, *, disk_lost: bool = False) -> None:
        if machine.controller is not None:
            self._check_within(machine.controller)
        if disk_lost:
            machine.stored_epoch = None
        machine.controller = None
        machine.died_ns = self.now
        machine.life += 1

    def _arrive(self, client: Client) -> None:
        machine = self.machines[client.transfer.host]
        machine.clients[client.number] = client
        if machine.controller is not None:
            self._request(machine, client)
        for place, after_ns in enumerate(client.transfer.segments, 1):
            at_ns = self.now + client.transfer.ahead_ns + after_ns
            self.at(at_ns, self._segment, machine, client, place == len(client.transfer.segments))
        if client.transfer.ahead_ns:
            self.at(self.now + client.transfer.ahead_ns, self._start, machine, client)

    def _request(self, machine: Machine, client: Client) -> None:
        transfer = client.transfer
        ahead = transfer.ahead_ns > 0 and not client.started
        arrival = (machine.attachment, transfer.target, transfer.size_bytes)
        self._register(machine, client, running(machine).flow_arrived, *arrival, ahead=ahead)

    def _register(
        self,
        machine: Machine,
        client: Client,
        register: Callable[..., Output],
        *arguments: object,
        **ahead: bool,
    ) -> None:
        machine.flows += 1
        client.flow = machine.flows
        now = self.now + machine.monotonic_ns
        output = register(now, self.now + machine.wall_ns, client.flow, *arguments, **ahead)
        answer = output.decisions[0]
        ensure(answer.flow == client.flow and answer.event is Event.ASSIGNED, "a transfer got no answer")
        ensure(answer.start_ns - now <= self.schedule.hold_ns, f"a transfer waits {answer.start_ns - now} ns")
        client.paths = answer.paths
        client.started = client.started or not (client.transfer.ahead_ns or answer.start_ns > now)
        if answer.start_ns > now:
            self.at(self.now + self.schedule.hold_ns, self._expect_start, machine, client, client.flow)
        self._follow(machine, output)

    def _expect_start(self, machine: Machine, client: Client, flow: int) -> None:
        """A hold is over: the client must have its answer by the tick that was due now."""
        if machine.controller is not None and client.flow == flow and not client.over:
            self._tick(machine, machine.life)
            ensure(client.started, f"flow {flow} was held back and never started")

    def _start(self, machine: Machine, client: Client) -> None:
        if machine.controller is not None and not client.over:
            self._input(machine, running(machine).flow_started, client.flow)
        client.started = True

    def _segment(self, machine: Machine, client: Client, last: bool) -> None:  # noqa: FBT001 - an event's argument
        client.started = True
        if last and not client.transfer.forgotten:
            client.over = True
            machine.clients.pop(client.number, None)
        if machine.controller is None:
            return
        if client.over:
            self._input(machine, machine.controller.flow_completed, client.flow)
        elif self._is_active(machine, client):
            self._input(
                machine, machine.controller.segment_ended, client.flow, client.transfer.size_bytes // 2
            )

    def _is_active(self, machine: Machine, client: Client) -> bool:
        row = running(machine).view.table.get(machine.host, client.flow)
        return row is None or row.state == 1

    def _end_segments(self, machine: Machine) -> None:
        for client in list(machine.clients.values()):
            if self._is_active(machine, client):
                self._input(
                    machine, running(machine).segment_ended, client.flow, client.transfer.size_bytes // 2
                )

    def _break(self, fault: Fault) -> None:
        """A fault begins."""
        machines = [self.machines[index] for index in fault.hosts]
        cut: set[tuple[str, str]] = set()
        match fault.kind:
            case "partition" | "one-way":
                addresses = {machine.address for machine in machines}
                rest = {machine.address for machine in self.machines} - addresses
                cut = {(there, here) for here in addresses for there in rest}
                if fault.kind == "partition":
                    cut |= {(here, there) for there, here in cut}
            case "crash":
                for machine in machines:
                    self._crash(machine, disk_lost=fault.amount > 0)
            case "step":
                for machine in machines:
                    machine.wall_ns += int(fault.amount * NS_PER_S)
            case "clone":
                clone = self._machine(fault.hosts[0], clone_of=machines[0])
                clone.wall_ns += self.rng.choice((-1, 1)) * NS_PER_S
                self._clones.append(clone)
                self._lives[clone.host].append(clone)
                self._boot(clone)
                self.at(fault.end_ns, self._crash, clone)
            case _:
                self.network.worsen(fault.kind, fault.amount)
        self.network.cut |= cut
        self.at(fault.end_ns, self._mend, fault, cut)

    def _mend(self, fault: Fault, cut: set[tuple[str, str]]) -> None:
        """A fault ends."""
        self.network.cut -= cut
        if fault.kind == "crash":
            for machine in (self.machines[index] for index in fault.hosts):
                if machine.controller is None:
                    self._boot(machine)
        elif fault.kind == "replay":
            hosts = {self.machines[index].host for index in fault.hosts}
            for machine, send in [entry for entry in self._recorded if entry[0].host in hosts]:
                self._carry(machine, send, recorded=True)
        elif fault.kind in {"loss", "duplicates", "delay"}:
            self.network.worsen(fault.kind, -fault.amount)

    def _play(self, until_ns: int) -> None:
        """Let events happen up to a time."""
        while self._queue and self._queue[0][0] <= until_ns:
            self.now, _, action, arguments = heappop(self._queue)
            self.events += 1
            action(*arguments)
        self.now = until_ns

    def _input(
        self, machine: Machine, give: Callable[..., Output], *arguments: object, heard: int | None = None
    ) -> None:
        output = give(self.now + machine.monotonic_ns, self.now + machine.wall_ns, *arguments)
        self._follow(machine, output, heard=heard)

    def _tick(self, machine: Machine, life: int) -> None:
        if machine.controller is None or machine.life != life or machine.armed_ns != self.now:
            return  # a timer that was cancelled
        machine.armed_ns = -1
        machine.ticks = machine.ticks + 1 if machine.ticked_ns == self.now else 0
        machine.ticked_ns = self.now
        ensure(machine.ticks < TICKS_MAX, "a deadline that no tick ends")
        self._input(machine, machine.controller.tick)

    def _arm(self, machine: Machine) -> None:
        at_ns = max(self.now, running(machine).next_deadline() - machine.monotonic_ns)
        if machine.armed_ns < self.now or at_ns < machine.armed_ns:
            machine.armed_ns = at_ns
            self.at(at_ns, self._tick, machine, machine.life)

    def _follow(self, machine: Machine, output: Output, *, heard: int | None = None) -> None:
        """Do what a controller says, as a shell would, and check it; ``heard`` is the only peer it can be
        about."""
        controller = running(machine)
        if output.epoch is not None:
            machine.stored_epoch = output.epoch
        for decision in output.decisions:
            self.judge.decided(machine.host, controller.replica.epoch, decision)
            for client in machine.clients.values():
                if client.flow == decision.flow:
                    client.paths = decision.paths
                    client.started = client.started or decision.event is Event.STARTED
        for send in output.sends:
            self._carry(machine, send)
        self._check(machine, heard)
        self._trace.update(
            repr((self.now, machine.address, output.decisions, len(output.sends), output.reports)).encode()
        )
        self._arm(machine)

    def _carry(self, machine: Machine, send: Send, *, recorded: bool = False) -> None:
        """Put a datagram on the network."""
        if not recorded:
            self._recorded.append((machine, send))
            if send.host is None:
                self.judge.hear(open_datagram(send.data, self.setting.keys))
        for target in self._targets(machine, send):
            for delay_ns in self.network.delays(machine.address, target.address):
                self.at(self.now + delay_ns, self._deliver, target, machine, send.data)

    def _targets(self, machine: Machine, send: Send) -> list[Machine]:
        open_membership = self.schedule.open_membership
        if send.host is not None:
            if not open_membership:
                return [self._ids[send.host]]
            return [one for one in (*self.machines, *self._clones) if one.address == send.address]
        everybody = [*self.machines, *self._clones] if open_membership else self.machines
        if self.schedule.by_leaf:
            return [
                one
                for one in everybody
                if one is not machine and (send.subject[:2] != "up" or send.subject == up(one.attachment))
            ]
        return [one for one in everybody if open_membership or one.host != machine.host]

    def _deliver(self, machine: Machine, sender: Machine, data: bytes) -> None:
        controller = machine.controller
        if controller is None:
            return
        if data not in machine.seen:
            machine.seen.add(data)
            machine.fresh[sender.host] = self.now
        self._input(machine, controller.message_received, data, sender.address, heard=sender.host)

    def _check(self, machine: Machine, heard: int | None) -> None:
        controller = running(machine)
        machine.inputs += 1
        if machine.inputs % self.check_every == 0:
            self._check_within(controller)
        elif heard is not None:
            self.judge.check_heard(controller, heard, machine.heard)
        for host in self.judge.check_table(controller, machine.said):
            silent_ns = self.now - machine.fresh.get(host, machine.booted_ns - 2 * LEASE_NS)
            ensure(silent_ns <= LEASE_NS, f"rows of {host:x} after {silent_ns} ns of silence")
            lives = (
                one.controller is not None or one.died_ns >= machine.booted_ns for one in self._lives[host]
            )
            ensure(
                any(lives),
                f"rows of {host:x}, dead before this host started",
            )

    def _check_within(self, controller: Controller) -> None:
        """All that a controller can assert of itself, and all that it holds of its peers."""
        controller.check()
        self.judge.check_streams(controller)

    def _heard_of(self, observer: Controller, row: Row) -> set[object]:
        """What a host has in its table of another's row once it knows it."""
        if not self.schedule.by_leaf:
            return {identity(row, row.source, row.flow)}
        count = self.schedule.leaves
        halves: set[object] = {identity(row, row.source + 2 * count, row.flow | 1 << 62)}
        if up(row.source) in observer.replica.config.listens:
            halves.add(identity(row, row.source + count, row.flow))
        return halves


def may_believe_in_clone(schedule: Schedule) -> bool:
    """Whether a host may hear its own id from elsewhere or from a later life, and not steer for a while.

    The latter takes a recording, a lost disk and a clock that was set back.
    """
    if not (schedule.open_membership or schedule.by_leaf):
        return False
    kinds = {fault.kind for fault in schedule.faults}
    disk_lost = any(fault.kind == "crash" and fault.amount for fault in schedule.faults)
    set_back = any(fault.kind == "step" and fault.amount < 0 for fault in schedule.faults)
    return "clone" in kinds or ("replay" in kinds and disk_lost and set_back)
