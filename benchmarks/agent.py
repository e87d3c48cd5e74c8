"""What the agent costs: acquire + release over its socket beside a bare echo, remote updates, memory.

Run ``python benchmarks/agent.py [--peers 15,63] [--pairs 20000] [--json FILE]``. The agent under test is a
process of its own; its peers are real agents in one further process, the client is this one. Wall times on a
busy machine are noise, so each latency comes with that of an echo server (asyncio too, over the same kind of
socket, with frames as long) measured in turns with it, and each rate with the CPU time it took.

Sketch: a round trip over a Unix socket between two Python processes costs about 50 µs (two switches of
process, two event loop turns). Deciding costs about 15 µs, sealing and queueing a datagram 10 µs, sending
it 3 µs a peer. So 15 peers should stay below 200 µs for the pair, and 63 peers too, since sending waits until
after the answer; the CPU time of 63 peers is four times that of 15, however.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from ark.agent import Agent, load_config
from ark.agent.run import serve
from ark.agent.transport import UdpTransport
from ark.client import Client
from ark.client.messages import (
    VERSION,
    Acquire,
    Frames,
    Grant,
    Hello,
    Lane,
    Release,
    Welcome,
    frame,
    reply_frames,
    request_frames,
)
from ark.control.controller import Output
from ark.errors import AgentUnavailable

GB = 10**9
SECRET = "00112233445566778899aabbccddeeff"
ROUND = 500
"""Pairs of one turn; agent and echo take turns."""

AT_ONCE = 8
"""Requests that an application with many transfers has under way."""

TURN = 500
"""Reservations, and ends of others, that a peer announces at once in the measurement of updates."""

LIVE = 5000
"""Reservations of the peer that are live meanwhile."""

Figures = dict[str, object]


def write_files(folder: Path, ports: list[int], control: str = "") -> None:
    """A fabric of two leaves and four spines, keys, and a configuration for each host, without a hold."""
    hosts = len(ports)
    (folder / "fabric.toml").write_text(
        f'kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = {-(-hosts // 2)}\n'
    )
    (folder / "cluster.key").write_text(f"1 {SECRET}\n")
    (folder / "cluster.key").chmod(0o600)
    peers = "".join(f'h{host} = "127.0.0.1:{port}"\n' for host, port in enumerate(ports))
    for host, port in enumerate(ports):
        (folder / f"h{host}.toml").write_text(
            f'host = "h{host}"\nfabric = "fabric.toml"\nkey_file = "cluster.key"\nstate = "h{host}.epoch"\n'
            f'[control]\nbind = "127.0.0.1:{port}"\n{control}[policy]\nhold = "0"\n'
            f'[api]\nsocket = "h{host}.sock"\n[log]\nlevel = "error"\n[peers]\n{peers}'
        )


def free_ports(count: int) -> list[int]:
    """UDP ports that are free now."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_agents(folder: Path, hosts: list[int], ready: Connection) -> None:
    """Child process: real agents until it is killed. They take what CPU time the agent under test and its
    client leave, since in a cluster they run on other machines."""
    os.nice(10)

    async def work() -> None:
        for host in hosts:
            await Agent(load_config(folder / f"h{host}.toml")).start()
        ready.send(True)
        await asyncio.Event().wait()

    asyncio.run(work())


def run_agent(folder: Path, host: int, ready: Connection) -> None:
    """Child process: one agent as ``ark agent`` runs it, until it is killed."""
    ready.send(True)
    asyncio.run(serve(load_config(folder / f"h{host}.toml")))


class Echo(asyncio.Protocol):
    """Answers an acquire by a grant of fixed content, and a release by nothing."""

    def __init__(self) -> None:
        self.frames: Frames[object] = request_frames()  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes of as many frames as were sent: only their form is looked at."""
        for request in self.frames.feed(data):
            if isinstance(request, Acquire):
                self.transport.write(GRANT)


GRANT = frame(Grant(1, "steered", (Lane(1, 49_152, 1),), "10.0.0.1", "10.0.0.3"))


def run_echo(path: Path, ready: Connection) -> None:
    """Child process: the echo server until it is killed."""

    async def work() -> None:
        await asyncio.get_running_loop().create_unix_server(Echo, str(path))
        ready.send(True)
        await asyncio.Event().wait()

    asyncio.run(work())


def spawn(target: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
    """A child process that says when it is ready."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, there), daemon=True)
    process.start()
    there.close()  # or the end of a child that fails would not be noticed
    here.recv()
    return process


def cpu_s(pid: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int, key: str) -> int:
    """Memory of a process by a key of its status: VmRSS now, VmHWM at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise ValueError(key)


def quantile(values: list[int], share: float) -> float:
    """A quantile in microseconds."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] / 1e3


def pairs_of(client: Client, target: str, count: int) -> list[int]:
    """Times of acquire + release, ns, as an application sees them."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        with client.transfer(target, GB, dport=4791) as transfer:
            assert transfer.path is not None, transfer.reason
        taken.append(time.perf_counter_ns() - begun)
    return taken


def echoes_of(connected: socket.socket, count: int) -> list[int]:
    """Times of the same bytes to the echo server and back, ns."""
    acquire, release = frame(Acquire(1, "h1", GB, 4791, 17)), frame(Release(1))
    taken = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        connected.sendall(acquire)
        connected.recv(65_536)
        connected.sendall(release)
        taken.append(time.perf_counter_ns() - begun)
    return taken


def many_at_once(path: Path, target: str, count: int) -> float:
    """Pairs a second of an application that has ``AT_ONCE`` requests under way."""
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(str(path))
        frames = reply_frames()

        def answers(expected: int) -> None:
            while expected:
                for reply in frames.feed(connected.recv(65_536)):
                    assert isinstance(reply, Welcome | Grant), reply
                    expected -= 1

        connected.sendall(frame(Hello(VERSION, "benchmark")))
        answers(1)
        begun_s = time.perf_counter()
        for first in range(1, count, AT_ONCE):
            handles = range(first, first + AT_ONCE)
            connected.sendall(b"".join(frame(Acquire(handle, target, GB, 4791, 17)) for handle in handles))
            answers(AT_ONCE)
            connected.sendall(b"".join(frame(Release(handle)) for handle in handles))
        return count / (time.perf_counter() - begun_s)


def measure_pairs(peers: int, pairs: int) -> Figures:
    """Acquire + release through the socket with so many live peers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, free_ports(peers + 1))
        others = spawn(run_agents, folder, list(range(1, peers + 1)))
        agent = spawn(run_agent, folder, 0)
        echo = spawn(run_echo, folder / "echo.sock")
        assert agent.pid is not None
        client = Client(folder / "h0.sock", timeout_s=5.0)
        until(lambda: client.status()["peers_heard"] == peers)
        target = f"h{peers}"  # on the other leaf
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(str(folder / "echo.sock"))
        pairs_of(client, target, ROUND)
        taken: list[int] = []
        echoed: list[int] = []
        used_s = 0.0
        for _ in range(-(-pairs // ROUND)):
            before = cpu_s(agent.pid)
            taken += pairs_of(client, target, ROUND)
            used_s += cpu_s(agent.pid) - before
            echoed += echoes_of(connected, ROUND)
        many = [many_at_once(folder / "h0.sock", target, ROUND * AT_ONCE) for _ in range(3)]
        summary = client.status()
        network = summary["network"]
        assert isinstance(network, dict)
        client.close()
        connected.close()
        for process in (agent, others, echo):
            process.kill()
            process.join()
    return {
        "peers": peers,
        "pairs": len(taken),
        "median_us": quantile(taken, 0.5),
        "p99_us": quantile(taken, 0.99),
        "rate_per_s": len(taken) / (sum(taken) / 1e9),
        "rate_per_s_at_once": max(many),
        "echo_median_us": quantile(echoed, 0.5),
        "echo_p99_us": quantile(echoed, 0.99),
        "ratio_median": quantile(taken, 0.5) / quantile(echoed, 0.5),
        "ratio_p99": quantile(taken, 0.99) / quantile(echoed, 0.99),
        "agent_cpu_us": used_s / len(taken) * 1e6,
        "agent_core_rate_per_s": len(taken) / used_s,
        "datagrams_sent": network["sent"],
        "send_buffer_full": network["send_buffer_full"],
    }


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens soon."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(AgentUnavailable):
            if condition():
                return
        time.sleep(0.05)
    raise TimeoutError


def measure_updates(updates: int) -> Figures:
    """Reservations and ends of a peer, taken in by a real agent from its real socket.

    The CPU time is that of sending, receiving, checking and applying the datagrams; that of deciding at the
    peer is left out.
    """
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), free_ports(2))
        return asyncio.run(exchange(Path(name), updates))


async def exchange(folder: Path, updates: int) -> Figures:
    """Two agents, of which one says what it does as fast as the other can hear it."""
    receiver, sender = (Agent(load_config(folder / f"h{host}.toml")) for host in (0, 1))
    await receiver.start()
    await sender.start()
    await soon(lambda: receiver.controller.replica.heard + sender.controller.replica.heard == 2)
    counters, transport = receiver.controller.replica.counters, sender.transport
    assert isinstance(transport, UdpTransport)
    applied, datagrams, spent_s, flows = 0, 0, 0.0, 0
    while applied < updates:
        output = Output(0)
        now = time.monotonic_ns()
        for flow in range(flows, flows + TURN):
            output.sends += sender.controller.flow_arrived(now, time.time_ns(), flow, 1, 0, 100 * GB).sends
            if flow >= LIVE:
                output.sends += sender.controller.flow_completed(now, time.time_ns(), flow - LIVE).sends
        output.sends += sender.controller.tick(now + 10**6, time.time_ns()).sends
        ended = TURN if flows >= LIVE else 0
        flows += TURN
        expected = counters.puts + counters.drops + TURN + ended
        begun_s = time.process_time()
        transport.send(output.sends)
        await soon(lambda expected=expected: counters.puts + counters.drops >= expected)  # type: ignore[misc]
        spent_s += time.process_time() - begun_s
        applied += TURN + ended
        datagrams += len(output.sends)
    await receiver.stop()
    await sender.stop()
    return {
        "updates": applied,
        "updates_per_datagram": applied / datagrams,
        "updates_per_cpu_s": applied / spent_s,
        "cpu_us_each": spent_s / applied * 1e6,
    }


async def soon(condition: Callable[[], bool]) -> None:
    """Let the loop run until something holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the loop's own work is what is waited for
            await asyncio.sleep(0)


def measure_memory(reservations: int) -> Figures:
    """Memory of an agent process with so many live reservations of its own clients."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, free_ports(2))
        others = spawn(run_agents, folder, [1])
        agent = spawn(run_agent, folder, 0)
        assert agent.pid is not None
        client = Client(folder / "h0.sock", timeout_s=5.0)
        until(lambda: client.status()["peers_heard"] == 1)
        idle = memory_bytes(agent.pid, "VmRSS")
        held = [client.transfer("h1", 10**14, dport=4791) for _ in range(reservations)]
        assert all(one.path is not None for one in held)
        assert client.status()["reservations"] == reservations
        full, peer = memory_bytes(agent.pid, "VmRSS"), memory_bytes(others.pid or 0, "VmRSS")
        client.close()
        for process in (agent, others):
            process.kill()
            process.join()
    return {"reservations": reservations, "idle_bytes": idle, "owner_bytes": full, "peer_bytes": peer}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peers", default="15,63", help="numbers of peers, as 15,63")
    parser.add_argument("--pairs", type=int, default=20_000, help="acquire + release pairs a number of peers")
    parser.add_argument("--updates", type=int, default=200_000, help="remote updates")
    parser.add_argument("--reservations", type=int, default=10_000, help="live reservations")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    arguments = parser.parse_args()
    figures: Figures = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "load_before": os.getloadavg(),
        "memory": measure_memory(arguments.reservations),
        "updates": measure_updates(arguments.updates),
        "pairs": [measure_pairs(int(peers), arguments.pairs) for peers in arguments.peers.split(",")],
        "load_after": os.getloadavg(),
    }
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
