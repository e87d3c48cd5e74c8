"""Several real agents in this process: own sockets, own files, one event loop in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

from tests.agent.agents import write_config

from ark.agent import Agent, load_config
from ark.agent.addresses import SocketAddress
from ark.agent.transport import Receive, Transport, UdpTransport
from ark.client import Client
from ark.control.outbox import Send
from ark.control.rows import State

T = TypeVar("T")

PATIENCE_S = 30.0
"""Bound of every wait; only a broken agent, never a busy machine, takes so long."""

FAST = 'heartbeat = "20ms"\nlease = "2s"\n'
"""Times of the control plane for tests: quick to notice, slow to give up."""


class Reserved(NamedTuple):
    """All of a row that two tables must agree on."""

    host: int
    epoch: int
    flow: int
    state: State
    paths: tuple[int, ...]
    size_bytes: int
    stamp: int


class LossyTransport:
    """A transport that loses some of what it receives."""

    def __init__(self, inner: Transport, loss: float, seed: int) -> None:
        self.inner = inner
        self.counters = inner.counters
        self.loss = loss
        self.lost = 0
        self._rng = Random(seed)

    @property
    def address(self) -> str:
        return self.inner.address

    def start(self, receive: Receive) -> None:
        def sometimes(data: bytes, address: str) -> None:
            if self._rng.random() < self.loss:
                self.lost += 1
            else:
                receive(data, address)

        self.inner.start(sometimes)

    def send(self, sends: Iterable[Send]) -> None:
        self.inner.send(sends)

    def set_peers(self, peers: Mapping[int, SocketAddress]) -> None:
        self.inner.set_peers(peers)

    def listen(self, subject: str) -> None:
        self.inner.listen(subject)

    async def wait_closed(self) -> None:
        await self.inner.wait_closed()

    def drops(self) -> int:
        return self.inner.drops()

    def close(self) -> None:
        self.inner.close()


class Cohort:
    """Agents of the hosts ``h0, h1, …`` of the fabric in ``folder``."""

    def __init__(self, folder: Path, hosts: int, *, loss: float = 0.0, more: str = "") -> None:
        self.folder = folder
        self.more = more
        self.loss = loss
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.agents: dict[str, Agent] = {}
        self.clients: list[Client] = []
        self.peers: dict[str, str] = {}
        transports = {f"h{index}": self._transport(("127.0.0.1", 0)) for index in range(hosts)}
        self.peers = {name: transport.address for name, transport in transports.items()}
        for name, transport in transports.items():
            self.boot(name, transport)

    def __getitem__(self, name: str) -> Agent:
        return self.agents[name]

    def boot(self, name: str, transport: Transport | None = None) -> Agent:
        """Start (again) the agent of a host."""
        host, port = self.peers[name].split(":")
        path = write_config(self.folder, name, peers=self.peers, more=f"{self.more}[control]\n{FAST}")
        agent = Agent(load_config(path), transport or self._transport((host, int(port))))
        self.run(agent.start())
        self.agents[name] = agent
        return agent

    def stop(self, name: str) -> None:
        """Stop the agent of a host."""
        self.run(self.agents.pop(name).stop())

    def client(self, name: str, *, timeout_s: float = PATIENCE_S) -> Client:
        """A client of one of the agents, patient by default."""
        client = Client(self.folder / f"{name}.sock", timeout_s=timeout_s)
        self.clients.append(client)
        return client

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the agents' loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(2 * PATIENCE_S)

    def call(self, function: Callable[[], T]) -> T:
        """Call something in the agents' loop, where nothing changes meanwhile."""

        async def work() -> T:
            return function()

        return self.run(work())

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds, looked at in the agents' loop."""

        async def work() -> None:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():  # noqa: ASYNC110 - conditions are states of agents, not events
                    await asyncio.sleep(0.002)

        self.run(work())

    def until_heard(self) -> None:
        """Wait until every agent has heard all others."""
        count = len(self.agents) - 1
        self.until(lambda: all(agent.controller.replica.heard == count for agent in self.agents.values()))

    def rows(self, name: str) -> "set[Reserved]":
        """The table of an agent in a form that compares."""
        return {
            Reserved(row.host, row.epoch, row.flow, row.state, row.paths, row.size_bytes, row.stamp)
            for row in self[name].controller.view.table
        }

    def agree(self) -> bool:
        """Whether all tables are equal."""
        tables = [self.rows(name) for name in self.agents]
        return all(table == tables[0] for table in tables)

    def close(self) -> None:
        """Check everybody and stop."""
        for client in self.clients:
            client.close()
        for agent in self.agents.values():
            self.call(agent.controller.check)
        for name in list(self.agents):
            self.stop(name)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE_S)
        self.loop.close()

    def _transport(self, bind: SocketAddress) -> Transport:
        made = UdpTransport(bind, receive_buffer_bytes=4 * 2**20)
        return LossyTransport(made, self.loss, seed=len(self.peers)) if self.loss else made


@contextmanager
def cohort(folder: Path, hosts: int, *, loss: float = 0.0, more: str = "") -> Iterator[Cohort]:
    """Agents that have heard each other, checked and stopped at the end."""
    made = Cohort(folder, hosts, loss=loss, more=more)
    try:
        made.until_heard()
        yield made
    finally:
        made.close()
