"""The packet model once more, the plain way: one event for each thing, no laziness, no lanes, no pools.

What the kernel does cleverly (links brought up to date late, accounts that lag, pauses that arm events) is
done here when it happens, as ns-3 does it. Fixed windows, no rate control, no losses: for comparison under
pauses.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ark.sim.packet.network import Network, build_world
from ark.sim.packet.settings import PacketSettings

PFC = 0


@dataclass(slots=True)
class Packet:
    kind: str
    flow: int
    route: list[int]
    hop: int
    size: int
    sequence: int
    payload: int
    priority: int
    marked: bool = False
    account: int = -1


@dataclass(slots=True)
class Account:
    bytes: int = 0
    headroom: int = 0
    paused: bool = False


@dataclass(slots=True)
class Flow:
    nic: int
    size: int
    route: list[int]
    back: list[int]
    window: int
    start: int
    sent: int = 0
    acked: int = 0
    expected: int = 0
    finish: int = -1
    marks: int = 0


@dataclass
class Plain:
    """One simulation in whole picoseconds; ``run`` gives each flow's completion time in nanoseconds."""

    network: Network
    settings: PacketSettings
    flows: list[Flow]
    now: int = 0
    pauses: int = 0
    drops: int = 0
    order: int = 0
    events: list[tuple[int, int, str, Any]] = field(default_factory=list)

    def run(self) -> list[int]:
        world = build_world(self.network, self.settings, seed=0, balancer="")
        count = int(world.clock.links)
        self.links, self.switches = world.links[:count].copy(), world.switches[: self.network.switches].copy()
        self.queues: list[list[deque[Packet]]] = [[deque() for _ in range(8)] for _ in range(count)]
        self.busy, self.paused = [False] * count, [set[int]() for _ in range(count)]
        self.turn = [0] * count
        self.accounts: dict[int, Account] = {link: Account() for link in range(count)}
        self.of_nic = {int(self.links[link].source_nic): link for link in range(count)}
        self.last = dict.fromkeys(self.of_nic, -1)
        for flow in self.flows:
            self.at(flow.start, "poke", self.of_nic[flow.nic])
        while self.events:
            self.now, _, what, argument = heapq.heappop(self.events)
            if what == "arrive":
                self.arrive(*argument)
            else:
                if what == "free":
                    self.busy[argument] = False
                self.serve(argument)
        return [(flow.finish - flow.start) // 1_000 for flow in self.flows]

    def at(self, time: int, what: str, argument: Any) -> None:
        heapq.heappush(self.events, (time, self.order, what, argument))
        self.order += 1

    def serve(self, link: int) -> None:
        """Begin the next packet of a link that is free."""
        if self.busy[link]:
            return
        packet = self.dequeue(link)
        if packet is None and self.links[link].source_nic >= 0:
            packet = self.make(link)
        if packet is None:
            return
        time = packet.size * 8 * 10**12 // int(self.links[link].rate)
        time -= time % (1_000 if self.settings.whole_nanoseconds else 1)
        self.busy[link] = True
        self.at(self.now + time, "free", link)
        self.at(self.now + time + int(self.links[link].delay), "arrive", (link, packet))

    def dequeue(self, link: int) -> Packet | None:
        queues, able = self.queues[link], []
        able = [q for q in range(8) if queues[q] and q not in self.paused[link]]
        if not able:
            return None
        queue = PFC if PFC in able else min(able, key=lambda q: (q - self.turn[link] - 1) % 8)
        self.turn[link] = queue
        packet = queues[queue].popleft()
        if packet.account >= 0:
            self.debit(packet)
        if self.links[link].source_switch >= 0 and packet.kind == "data":
            left = sum(other.size for other in queues[queue])
            packet.marked = packet.marked or left > int(self.links[link].mark_max)
        return packet

    def make(self, link: int) -> Packet | None:
        """The next data packet of a NIC, flow by flow in turn."""
        nic = int(self.links[link].source_nic)
        mine = [n for n, flow in enumerate(self.flows) if flow.nic == nic and flow.start <= self.now]
        ring = [n for n in mine if n > self.last[nic]] + [n for n in mine if n <= self.last[nic]]
        if self.settings.priority in self.paused[link]:
            return None
        for number in ring:
            flow = self.flows[number]
            if flow.sent >= flow.size or flow.sent - flow.acked >= flow.window:
                continue
            self.last[nic] = number
            payload = min(self.settings.payload_bytes, flow.size - flow.sent)
            size = payload + self.settings.overhead_bytes
            packet = Packet("data", number, flow.route, 0, size, flow.sent, payload, self.settings.priority)
            flow.sent += payload
            return packet
        return None

    def enqueue(self, link: int, packet: Packet) -> None:
        self.queues[link][packet.priority].append(packet)
        self.serve(link)

    def arrive(self, link: int, packet: Packet) -> None:
        if packet.kind in {"pause", "resume"}:
            back = int(self.links[link].reverse)
            if packet.kind == "pause":
                self.paused[back].add(packet.flow)
                self.pauses += 1
            else:
                self.paused[back].discard(packet.flow)
            self.serve(back)
        elif self.links[link].target_switch >= 0:
            packet.hop += 1
            if self.admit(link, packet):
                self.enqueue(packet.route[packet.hop], packet)
            else:
                self.drops += 1
        elif packet.kind == "data":
            self.receive(packet)
        else:
            self.acknowledge(packet)

    def receive(self, packet: Packet) -> None:
        flow = self.flows[packet.flow]
        assert packet.sequence == flow.expected, "one path, nothing lost: in order"
        flow.expected += packet.payload
        flow.marks += packet.marked
        back = Packet(
            "ack", packet.flow, flow.back, 0, self.settings.ack_bytes, flow.expected, 0, packet.priority
        )
        self.enqueue(back.route[0], back)

    def acknowledge(self, packet: Packet) -> None:
        flow = self.flows[packet.flow]
        flow.acked = packet.sequence
        if flow.acked >= flow.size:
            flow.finish = self.now
        self.serve(self.of_nic[flow.nic])

    # The shared buffer: reserve, dynamic threshold, headroom.

    def threshold(self, link: int) -> int:
        pool = self.switches[int(self.links[link].target_switch)]
        return int(self.links[link].threshold_share * max(int(pool.pool) - int(pool.shared), 0))

    def used(self, link: int) -> int:
        pool = self.switches[int(self.links[link].target_switch)]
        return max(self.accounts[link].bytes - int(pool.reserve), 0)

    def admit(self, link: int, packet: Packet) -> bool:
        account, pool = self.accounts[link], self.switches[int(self.links[link].target_switch)]
        size, allowed = packet.size, self.threshold(link)
        if size + account.headroom > int(self.links[link].headroom) and size + self.used(link) > allowed:
            return False
        beyond = account.bytes + size - int(pool.reserve)
        if beyond > 0 and beyond > allowed:
            account.headroom += size
        else:
            account.bytes += size
            pool.shared += max(min(size, beyond), 0)
        packet.account = link
        if not account.paused and (account.headroom > 0 or self.used(link) >= self.threshold(link)):
            account.paused = True
            self.frame(link, "pause", packet.priority)
        return True

    def debit(self, packet: Packet) -> None:
        link, packet.account = packet.account, -1
        account, pool = self.accounts[link], self.switches[int(self.links[link].target_switch)]
        of_headroom = min(account.headroom, packet.size)
        of_pool = min(packet.size - of_headroom, self.used(link))
        account.headroom -= of_headroom
        account.bytes -= packet.size - of_headroom
        pool.shared -= of_pool
        low = self.used(link) == 0 or self.used(link) + int(pool.hysteresis) <= self.threshold(link)
        if account.paused and account.headroom == 0 and low:
            account.paused = False
            self.frame(link, "resume", packet.priority)

    def frame(self, link: int, kind: str, priority: int) -> None:
        frame = Packet(kind, priority, [], 0, self.settings.pfc_bytes, 0, 0, PFC)
        self.enqueue(int(self.links[link].reverse), frame)
