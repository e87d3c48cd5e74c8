"""What the control plane costs from 64 to 10,000 hosts: ``python benchmarks/control_traffic.py``.

Nothing here talks over a network. What one host says comes from a real controller in virtual time, which
announces Poisson arrivals in the real encoding; its datagrams and bytes are counted. What hearing costs is
the CPU time of a real controller that takes in datagrams of many such senders (best of several rounds, of
this machine and this Python), and a constant for the operating system and the event loop. That the numbers of
hosts may simply be multiplied is checked by a full mesh of real controllers (``--mesh``), first contact,
heartbeats and snapshots included. The tables then follow by multiplication.
``docs/explanation/protocol.md`` has its output.

Sketch: a transfer is one PUT and one DROP, 45 and 10 bytes in an envelope of 60, so about 190 bytes on the
wire each. Hearing one costs a MAC, a decoding and a change of a table: 15 us, of which a row is 8.
"""

import argparse
import heapq
import platform
import sys
import time
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from ark.control.controller import Controller
from ark.control.outbox import Send
from ark.control.policy import Policy
from ark.control.replica import ReplicaConfig
from ark.control.wire import ALL, Key, Keys, host_id, up
from ark.fabric import leaf_spine
from ark.fabric.topology import Fabric
from ark.units import NS_PER_S

KEY = Keys(Key(1, b"the key of the traffic benchmark"))
WALL_NS = 1_790_000_000 * NS_PER_S
RATE_BPS = 400_000_000_000
SIZE_BYTES = 10**9
LASTS_NS: Final = 100_000_000
"""A transfer's life: 1 GB at a fifth of 400 Gbit/s."""

FRAME_BYTES: Final = 66
"""Ethernet with preamble and gap (38), IPv4 (20) and UDP (8) around a datagram."""

NATS_BYTES: Final = 110
"""Ethernet, IPv4, TCP, and the line with the subject, around a message that travels alone."""

LINK_BPS: Final = 25_000_000_000
"""The control network; where there is none of its own, a 400 Gbit/s NIC has 16 times as much."""

UDP_SEND_US: Final = 5.0
UDP_HEAR_US: Final = 5.0
NATS_HEAR_US: Final = 17.0
"""CPU time of a datagram outside of the controller: ``UdpTransport``, and nats-py 2.16 against a server, both
over loopback, 8 at a time; about, on the machine of the tables in the docs."""

DELAY_NS: Final = 50_000
HOSTS_PER_LEAF: Final = 32
ROUNDS: Final = 5


class Said(NamedTuple):
    """What a host says in a second, by subject or all together."""

    datagrams: float
    bytes: float
    rows: float


def controller(
    name: str, fabric: Fabric, *, leaves: bool, peers: Sequence[str] = (), home: tuple[str, ...] = (ALL,)
) -> Controller:
    """A real one, with a virtual address."""
    return Controller(
        ReplicaConfig(
            host=host_id(name),
            address=name,
            fabric=fabric.digest(),
            keys=KEY,
            peers={host_id(peer): peer for peer in peers} if peers else None,
            leaves=leaves,
            home=home,
            listens=frozenset(home),
        ),
        Policy(name="ark", line_rate_bps=RATE_BPS, hold_ns=0, min_bytes=0),
        fabric,
        1,
        randomness=Random(name),
        now=0,
        peers_expected=0,
    )


class Host:
    """A controller, and the Poisson arrivals of its clients."""

    def __init__(self, one: Controller, rate: float, targets: Sequence[int], seed: int) -> None:
        self.one = one
        self.rng = Random(seed)
        self.rate = rate
        self.targets = targets
        self.flow = 0
        self.ends: list[tuple[int, int]] = []
        self.next_ns = self._after(0)

    def _after(self, now: int) -> int:
        return now + int(self.rng.expovariate(self.rate) * NS_PER_S) if self.rate else sys.maxsize

    def next_deadline(self) -> int:
        """When something happens here."""
        return min(self.next_ns, self.ends[0][0] if self.ends else self.next_ns, self.one.next_deadline())

    def act(self, now: int) -> list[Send]:
        """Let it happen; what is sent."""
        wall = WALL_NS + now
        while self.next_ns <= now:
            self.flow += 1
            target = self.rng.choice(self.targets)
            self.one.flow_arrived(now, wall, self.flow, 0, target, SIZE_BYTES)
            heapq.heappush(self.ends, (now + LASTS_NS, self.flow))
            self.next_ns = self._after(self.next_ns)
        while self.ends and self.ends[0][0] <= now:
            self.one.flow_completed(now, wall, heapq.heappop(self.ends)[1])
        return self.one.tick(now, wall).sends if self.one.next_deadline() <= now else []


def speak(
    rate: float, targets: int, *, leaves: bool, seconds: int = 20, name: str = "h0"
) -> tuple[Said, list[Send]]:
    """What a host says that sends ``rate`` transfers a second to so many leaves."""
    fabric = leaf_spine(targets + 1, 8, 1)
    one = controller(name, fabric, leaves=leaves, home=(up(0),) if leaves else (ALL,))
    host = Host(one, rate, range(1, targets + 1), seed=1)
    sends: list[Send] = []
    now, warm = 0, 2 * NS_PER_S
    while (now := host.next_deadline()) < warm + seconds * NS_PER_S:
        said = host.act(now)
        if now >= warm:
            sends += said
    rows = 2 * rate * (2 if leaves else 1)
    return Said(len(sends) / seconds, sum(len(send.data) for send in sends) / seconds, rows), sends


def hear(rate: float) -> tuple[float, float]:
    """CPU time of taking in one datagram of 32 senders with so many transfers a second, us; rows in each."""
    seconds, senders = 2, [f"h{number}" for number in range(1, 33)]
    heard: list[tuple[Send, str]] = []
    for name in senders:
        heard += [(send, name) for send in speak(rate, 1, leaves=False, seconds=seconds, name=name)[1]]
    Random(1).shuffle(heard)
    best = float("inf")
    fabric = leaf_spine(2, 8, 1)
    for _ in range(ROUNDS):
        one = controller("h0", fabric, leaves=False)
        for peer in senders:  # known and proven, as after first contact
            one.replica._meet(host_id(peer), 1, peer)  # noqa: SLF001 - what a conversation of four datagrams does
            one.replica.peers[host_id(peer)].proven = True
        begun = time.process_time()
        for place, (send, name) in enumerate(heard):
            one.message_received(place * 1000, WALL_NS + NS_PER_S, send.data, name)
        best = min(best, time.process_time() - begun)
    return best / len(heard) * 1e6, 2 * rate * seconds * len(senders) / len(heard)


class Mesh:
    """A full mesh of real controllers in virtual time, all as busy."""

    def __init__(self, hosts: int, rate: float) -> None:
        self.names = [f"h{number}" for number in range(hosts)]
        fabric = leaf_spine(2, 8, 1)
        self.hosts = {}
        for seed, name in enumerate(self.names):
            peers = [peer for peer in self.names if peer != name]
            self.hosts[name] = Host(controller(name, fabric, leaves=False, peers=peers), rate, [1], seed)
        self.queue: list[tuple[int, int, str, bytes, str]] = []
        self.received = self.order = 0

    def run(self, seconds: int) -> float:
        """Datagrams a second that a host receives."""
        for name, host in self.hosts.items():
            self.at(host.next_deadline(), name)
        while (now := self.queue[0][0]) < seconds * NS_PER_S:
            _, _, name, data, source = heapq.heappop(self.queue)
            host = self.hosts[name]
            if data:
                self.received += 1
                self.carry(now, name, host.one.message_received(now, WALL_NS + now, data, source).sends)
                self.carry(now, name, host.act(now))
            else:
                self.carry(now, name, host.act(now))
                self.at(max(now + 1, host.next_deadline()), name)
        return self.received / len(self.names) / seconds

    def at(self, time_ns: int, name: str, data: bytes = b"", source: str = "") -> None:
        """A datagram arrives, or without one a timer rings."""
        self.order += 1
        heapq.heappush(self.queue, (time_ns, self.order, name, data, source))

    def carry(self, now: int, source: str, sends: list[Send]) -> None:
        """To everybody else, or to the one it is meant for."""
        for send in sends:
            for target in self.names:
                if target != source and send.host in {None, host_id(target)}:
                    self.at(now + DELAY_NS, target, send.data, source)


def row(cells: Sequence[object]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def number(value: float) -> str:
    """Two digits that matter, with thousands apart."""
    if value >= 100:
        return f"{round(value, 2 - len(str(int(value)))):,.0f}"
    return f"{value:.2g}"


def tables(rate: float, costs: Sequence[tuple[float, float]]) -> None:
    """Rates and shares by number of hosts; half of all hosts send."""
    one, silent = speak(rate, 1, leaves=False)[0], speak(0, 1, leaves=False)[0]
    busy_us, silent_us = costs[0][0] + UDP_HEAR_US, costs[1][0] + UDP_HEAR_US
    print(f"\n{rate:g} transfers a second at each sending host (half of all), heartbeats every 250 ms:\n")
    print(
        row(
            [
                "hosts",
                "transport",
                "sent/s",
                "sent Mbit/s",
                "heard/s",
                "heard Mbit/s",
                "of 25 Gbit/s",
                "CPU cores",
            ]
        )
    )
    print(row(["---:", "---"] + ["---:"] * 6))
    for hosts in (64, 256, 1024, 4096, 10_000):
        heard = hosts / 2 * (one.datagrams + silent.datagrams)
        heard_bps = (
            8 * hosts / 2 * (one.bytes + silent.bytes + FRAME_BYTES * (one.datagrams + silent.datagrams))
        )
        cpu = hosts / 2 * (one.datagrams * busy_us + silent.datagrams * silent_us) / 1e6
        for transport, copies in (("unicast", hosts - 1), ("multicast", 1)):
            sent = one.datagrams * copies
            sent_bps = 8 * copies * (one.bytes + FRAME_BYTES * one.datagrams)
            share = max(sent_bps, heard_bps) / LINK_BPS
            cores = cpu + sent * UDP_SEND_US / 1e6
            print(row([f"{hosts:,}", transport, number(sent), number(sent_bps / 1e6), number(heard),
                       number(heard_bps / 1e6), f"{share:.2%}", f"{cores:.2f}"]))  # fmt: skip
    leaf_table(rate, costs[0][0])


def leaf_table(rate: float, busy_us: float) -> None:
    """The same over NATS, where a host hears its own leaf's uplinks and the leaves that its pool sends to."""
    print(f"\nNATS, {HOSTS_PER_LEAF} hosts a leaf, half of the leaves send, to all others of their pool:\n")
    heads = [
        "hosts a pool",
        "leaves sent to",
        "sent/s",
        "heard/s",
        "heard Mbit/s",
        "of 25 Gbit/s",
        "CPU cores",
    ]
    print(row([*heads, "servers send to 10,000 hosts, Gbit/s"]))
    print(row(["---:"] * 8))
    for pool in (64, 128, 256, 512, 1024):
        targets = pool // HOSTS_PER_LEAF // 2
        said, sends = speak(rate, targets, leaves=True, seconds=5)
        ups = sum(send.subject.startswith("up") for send in sends) / 5
        downs = said.datagrams - ups
        size = said.bytes / said.datagrams + NATS_BYTES
        heard = (HOSTS_PER_LEAF - 1) * ups + (pool // 2 - 1) * downs
        cores = heard * (busy_us + NATS_HEAR_US) / 1e6
        servers = 10_000 / 2 * heard * size * 8
        print(row([pool, targets, number(said.datagrams), number(heard), number(heard * size * 8 / 1e6),
                   f"{heard * size * 8 / LINK_BPS:.2%}", f"{cores:.2f}", number(servers / 1e9)]))  # fmt: skip


def main() -> int:
    """Measure, check, print; 1 if the mesh does not bear out the multiplication."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", default="10,80", help="transfers a second at each sending host, as 10,80")
    parser.add_argument("--mesh", type=int, default=32, help="hosts of the full mesh that is played through")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}; CPU time best of {ROUNDS}\n")
    print(row(["transfers/s", "datagrams/s said", "bytes each", "rows each", "us to hear one"]))
    print(row(["---:"] * 5))
    costs = {}
    rates = [float(rate) for rate in arguments.rates.split(",")]
    for rate in (0.0, *rates):
        said, (us, rows) = speak(rate, 1, leaves=False)[0], hear(rate)
        costs[rate] = (us, rows)
        print(
            row(
                [
                    f"{rate:g}",
                    number(said.datagrams),
                    number(said.bytes / said.datagrams),
                    f"{rows:.2f}",
                    f"{us:.1f}",
                ]
            )
        )
    counted = Mesh(arguments.mesh, rates[0]).run(6)
    multiplied = speak(rates[0], 1, leaves=False)[0].datagrams * (arguments.mesh - 1)
    print(f"\nFull mesh of {arguments.mesh} controllers: {counted:,.0f} datagrams/s heard,", end=" ")
    print(f"{multiplied:,.0f} by multiplication")
    for rate in rates:
        tables(rate, (costs[rate], costs[0.0]))
    return 0 if abs(counted / multiplied - 1) < 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
