"""Controllers joined by hand: what one sends, a test delivers, changes, keeps or drops."""

from dataclasses import dataclass, field
from random import Random

from ark.control.controller import Controller, Output
from ark.control.outbox import Send
from ark.control.policy import Policy
from ark.control.replica import ReplicaConfig
from ark.control.reports import Report
from ark.control.wire import Key, Keys, Message, encode_message, host_id, seal
from ark.fabric import leaf_spine

FABRIC = leaf_spine(2, 4, 4)
KEY = Key(1, b"a secret of the whole cluster")
RATE_BPS = 100_000_000_000
WALL_NS = 1_790_000_000_000_000_000
A, B, C = (host_id(name) for name in ("h0", "h1", "h2"))
ADDRESSES = {A: "10.0.0.1", B: "10.0.0.2", C: "10.0.0.3"}
SIZE = 10**9


def controller(
    host: int,
    *,
    epoch: int = 100,
    now: int = 0,
    members: bool = True,
    policy: str = "ark",
    leaves: bool = False,
) -> Controller:
    return Controller(
        ReplicaConfig(
            host=host,
            address=ADDRESSES[host],
            fabric=FABRIC.digest(),
            keys=Keys(KEY),
            peers={other: at for other, at in ADDRESSES.items() if other != host} if members else None,
            leaves=leaves,
            home=("up.0",) if leaves else ("",),
            listens=frozenset(("up.0", "down.0", "down.1") if leaves else ("",)),
        ),
        Policy(name="paper" if policy == "paper" else "ark", line_rate_bps=RATE_BPS, hold_ns=0),
        FABRIC,
        epoch,
        randomness=Random(host),
        now=now,
    )


@dataclass
class Wires:
    """Controllers, and what they have sent that was not delivered yet."""

    hosts: dict[int, Controller]
    now: int = 0
    sent: list[tuple[int, Send]] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def follow(self, host: int, output: Output) -> Output:
        self.sent += [(host, send) for send in output.sends]
        self.reports += output.reports
        for one in self.hosts.values():
            one.check()
        return output

    def deliver(self) -> None:
        """Deliver everything that is due, and what follows from it."""
        for host, one in self.hosts.items():
            if one.next_deadline() <= self.now:
                self.follow(host, one.tick(self.now, WALL_NS + self.now))
        while self.sent:
            source, send = self.sent.pop(0)
            for host in list(self.hosts):
                if host != source and send.host in {None, host}:
                    self.give(host, send.data, ADDRESSES[source])

    def give(self, host: int, data: bytes, address: str) -> Output:
        return self.follow(
            host, self.hosts[host].message_received(self.now, WALL_NS + self.now, data, address)
        )

    def wait(self, time_ns: int, *, lost: bool = False) -> None:
        """Let time pass for all."""
        end = self.now + time_ns
        if not lost:
            self.deliver()
        while (at := min(one.next_deadline() for one in self.hosts.values())) <= end:
            self.now = max(self.now, at)
            for host, one in self.hosts.items():
                if one.next_deadline() <= self.now:
                    self.follow(host, one.tick(self.now, WALL_NS + self.now))
            if lost:
                self.sent.clear()
            self.deliver()
        self.now = end

    def arrive(self, host: int, flow: int, *, size_bytes: int = SIZE) -> Output:
        one = self.hosts[host]
        return self.follow(host, one.flow_arrived(self.now, WALL_NS + self.now, flow, 0, 1, size_bytes))

    def rows(self, host: int, of: int) -> set[int]:
        return {row.flow for row in self.hosts[host].view.table if row.host == of}


def acquainted(*hosts: int, members: bool = True, policy: str = "ark") -> Wires:
    """Controllers that have heard and proven each other."""
    wires = Wires({host: controller(host, members=members, policy=policy) for host in hosts})
    wires.wait(1_000_000_000)
    return wires


def datagram(
    host: int,
    *messages: Message,
    epoch: int = 100,
    subject: str = "",
    number: int = 1000,
    first_seq: int = 1,
    fabric: bytes | None = None,
    key: Key = KEY,
) -> bytes:
    """What a host would send, or could."""
    fabric = FABRIC.digest() if fabric is None else fabric
    return seal(
        key, fabric, host, epoch, subject, number, first_seq, [encode_message(one) for one in messages]
    )
