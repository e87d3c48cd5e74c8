"""64 real agents on one machine, with loss: how soon tables agree, and how soon a killed host is forgotten.

Run ``python benchmarks/agents64.py [--hosts 64] [--processes 8] [--loss 0.01]``. Agents are spread over a few
processes, since 64 interpreters take minutes to start; the one that is killed has a process of its own. All
have real UDP and Unix sockets; every datagram received is lost with the given probability. Exits with 1 if a
bound of the project is missed: equal tables 1 s after the last change, a dead host's claims gone everywhere
within its lease and 1 s, all others unharmed. (While processes start, two cores may starve agents for longer
than a lease; ``leases_ended_before`` tells of it.)
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import agent as measure
from ark.agent import Agent, load_config
from ark.agent.addresses import SocketAddress
from ark.agent.transport import Receive, Transport, UdpTransport
from ark.client import Client, Transfer
from ark.control.outbox import Send
from ark.units import parse_time

GB = 10**9
SETTLE_S = 1.0


class Lossy:
    """A transport that loses some of what it receives."""

    def __init__(self, inner: Transport, loss: float, seed: int) -> None:
        self.inner = inner
        self.counters = inner.counters
        self.loss = loss
        self.random = Random(seed)

    @property
    def address(self) -> str:
        """Our own address."""
        return self.inner.address

    def start(self, receive: Receive) -> None:
        """Begin to hand over most datagrams."""

        def sometimes(data: bytes, address: str) -> None:
            if self.random.random() >= self.loss:
                receive(data, address)

        self.inner.start(sometimes)

    def send(self, sends: Iterable[Send]) -> None:
        """Pass on."""
        self.inner.send(sends)

    def set_peers(self, peers: Mapping[int, SocketAddress]) -> None:
        """Pass on."""
        self.inner.set_peers(peers)

    def listen(self, subject: str) -> None:
        """Pass on."""
        self.inner.listen(subject)

    async def wait_closed(self) -> None:
        """Pass on."""
        await self.inner.wait_closed()

    def drops(self) -> int:
        """Pass on."""
        return self.inner.drops()

    def close(self) -> None:
        """Pass on."""
        self.inner.close()


def run_lossy(folder: Path, hosts: list[int], loss: float, ready: Connection) -> None:
    """Child process: agents until it is killed."""

    async def work() -> None:
        for host in hosts:
            config = load_config(folder / f"h{host}.toml")
            inner = UdpTransport(config.bind, receive_buffer_bytes=config.receive_buffer_bytes)
            await Agent(config, Lossy(inner, loss, host)).start()
        ready.send(True)
        await asyncio.Event().wait()

    asyncio.run(work())


def digests(clients: Mapping[int, Client]) -> set[tuple[object, object]]:
    """What all agents say of their tables."""
    said = [client.status("digest") for client in clients.values()]
    return {(one["reservations"], one["digest"]) for one in said}


def agree_after(clients: Mapping[int, Client], limit_s: float, reservations: int | None = None) -> float:
    """Seconds until all tables are equal (and of that size), as seen by asking all agents in turn."""
    begun = time.monotonic()
    while time.monotonic() - begun < limit_s:
        seen = digests(clients)
        if len(seen) == 1 and reservations in {None, *(count for count, _ in seen)}:
            return time.monotonic() - begun
    raise TimeoutError(f"after {limit_s} s the tables are still {seen}")


def churn(clients: Mapping[int, Client], changes: int, seed: int) -> list[tuple[int, Transfer]]:
    """Reserve and release at random hosts; what is left at the end."""
    random, hosts = Random(seed), sorted(clients)
    held: list[tuple[int, Transfer]] = []
    for _ in range(changes):
        if held and random.random() < 0.4:
            held.pop(random.randrange(len(held)))[1].release()
            continue
        source = random.choice(hosts)
        other = [host for host in hosts if (host < len(hosts) // 2) != (source < len(hosts) // 2)]
        held.append((source, clients[source].transfer(f"h{random.choice(other)}", 1000 * GB, dport=4791)))
    return held


def total(clients: Mapping[int, Client], counter: str) -> int:
    """Sum of a counter of the replication over some agents."""
    tables = [client.status()["replication"] for client in clients.values()]
    return sum(int(str(one[counter])) for one in tables if isinstance(one, dict))


def main() -> int:
    """Run it, and print what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--loss", type=float, default=0.01)
    parser.add_argument(
        "--heartbeat", default="250ms", help="as agents have by default; 500ms on a busy machine"
    )
    parser.add_argument("--lease", default="3s", help="as agents have by default")
    parser.add_argument("--changes", type=int, default=2000)
    arguments = parser.parse_args()
    lease_s = parse_time(arguments.lease) / 1e9
    hosts, victim = arguments.hosts, arguments.hosts - 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        times = f'heartbeat = "{arguments.heartbeat}"\nlease = "{arguments.lease}"\n'
        measure.write_files(folder, measure.free_ports(hosts), times)
        groups = [list(range(first, victim, arguments.processes)) for first in range(arguments.processes)]
        children = []
        for group in [*groups, [victim]]:
            children.append(measure.spawn(run_lossy, folder, group, arguments.loss))
            print(f"{sum(map(len, groups[: len(children)]))} agents are up", file=sys.stderr)
        clients = {host: Client(folder / f"h{host}.sock", timeout_s=10.0) for host in range(hosts)}
        begun = time.monotonic()
        for client in clients.values():
            measure.until(lambda client=client: client.status()["peers_heard"] == hosts - 1)  # type: ignore[misc]
        heard_s = time.monotonic() - begun
        print("all have heard each other", file=sys.stderr)
        held = churn(clients, arguments.changes, seed=1)
        steered = sum(transfer.path is not None for _, transfer in held)
        settled_s = agree_after(clients, 30)
        sweep = time.monotonic()
        count = max(int(str(count)) for count, _ in digests(clients))
        sweep_s = time.monotonic() - sweep
        before = total(clients, "leases_ended") - total({victim: clients[victim]}, "leases_ended")
        victims = sum(source == victim and transfer.path is not None for source, transfer in held)
        children[-1].kill()
        clients.pop(victim).close()
        gone_s = agree_after(clients, 30, count - victims)
        asked, ended = total(clients, "asked"), total(clients, "leases_ended") - before
        for client in clients.values():
            client.close()
        for child in children:
            child.kill()
            child.join()
    figures = {
        "hosts": hosts,
        "loss": arguments.loss,
        "heartbeat": arguments.heartbeat,
        "lease": arguments.lease,
        "load": os.getloadavg(),
        "heard_s": heard_s,
        "changes": arguments.changes,
        "held": len(held),
        "steered": steered,
        "reservations": count,
        "settled_s": settled_s,
        "sweep_s": sweep_s,
        "victims_reservations": victims,
        "victim_gone_s": gone_s,
        "snapshots_asked": asked,
        "leases_ended_before": before,
        "leases_ended": ended,
        "ok": settled_s <= SETTLE_S + sweep_s
        and gone_s <= lease_s + 1 + sweep_s
        and ended == hosts - 1
        and count == steered,
    }
    print(json.dumps(figures, indent=2))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
