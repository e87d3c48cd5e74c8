"""The agent: everything of one host put together, started, reloaded and stopped."""

import asyncio
import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields, replace
from itertools import islice
from random import SystemRandom
from typing import Final

from ark.agent.addresses import SocketAddress, format_address
from ark.agent.config import AgentConfig
from ark.agent.directory import Directory
from ark.agent.engine import Engine
from ark.agent.epoch_file import read_epoch, write_epoch
from ark.agent.local_api import LocalServer
from ark.agent.logs import LOGGER, log
from ark.agent.multicast import MulticastTransport
from ark.agent.nats_transport import NatsTransport
from ark.agent.paths_file import follow
from ark.agent.ports import Learned, PortBook, Way, default_way
from ark.agent.record import Record
from ark.agent.service import Served, Service
from ark.agent.status import learned_counts, table
from ark.agent.subjects import beside, heard, home, neighbours
from ark.agent.transport import Transport, UdpTransport
from ark.client.messages import VERSION, Welcome
from ark.control.controller import Controller
from ark.control.decision import Decision
from ark.control.epoch import first_epoch
from ark.control.replica import ReplicaConfig
from ark.control.wire import ALL, Keys, down, host_id
from ark.errors import ArkError, ConfigError
from ark.fabric import PathMap

WARM_WAYS_MAX: Final = 1024
"""Path maps to peers made at the start, so that not even the first transfer waits for one."""

RELOADABLE: Final = frozenset({"peers", "keys", "dry_run", "log_level", "paths", "learned"})
"""What a reload changes; the rest needs a restart, and is said so."""

OF_FABRIC: Final = frozenset({"peers", "paths", "learned"})
"""What was checked against the file's fabric and host, and so waits for the restart together with these."""


class Agent:
    """One host's agent.

    Parameters
    ----------
    config
        Checked configuration.
    transport
        In place of the one that the configuration names: for tests, and for other networks.
    """

    def __init__(self, config: AgentConfig, transport: Transport | None = None) -> None:
        self.config = config
        self.started_ns = time.monotonic_ns()
        stored = read_epoch(config.state)
        epoch = first_epoch(stored, time.time_ns())
        write_epoch(config.state, epoch)
        self.transport = _transport(config) if transport is None else transport
        self.controller = Controller(
            _replica_config(config, self.transport.address),
            config.policy,
            config.fabric,
            epoch,
            randomness=SystemRandom(),
            now=self.started_ns,
        )
        self.engine = Engine(self.controller, self.transport, decided=self._decided, store=self._store)
        self.book = PortBook(config.fabric, config.learned)
        self.directory = Directory(config.fabric, config.host)
        self.record = None if config.record is None else Record(config.record)
        self._heeded: set[int] = set()
        self.service = Service(
            self.engine,
            self.directory,
            self.book,
            report=lambda question, argument: table(self, question, argument),
            finished=self._finished,
            heed=self._heed,
            dry_run=config.dry_run,
        )
        self.server = LocalServer(config.socket, config.socket_gid, self.service, self._welcome)
        self.ids = {host.name: host_id(host.name) for host in config.fabric.hosts}
        self.names = {host: name for name, host in self.ids.items()}
        self._following: asyncio.Task[None] | None = None
        self._set_peers(config.peers, config.keys)

    async def start(self) -> None:
        """Begin to talk with peers and to serve applications.

        One path map is made first: it loads NumPy, for which no client should wait.

        Raises
        ------
        ConfigError
            If the Unix socket can't be made.
        """
        try:
            ways = self._ways()
            first = next(ways, None)
            if first is not None:
                await self._make_first(first)
            await self.server.start()
        except BaseException:
            self.transport.close()
            await self.transport.wait_closed()
            self.book.close()
            raise
        self.engine.start()
        self._warm_next(ways)
        config = self.config
        self._following = asyncio.create_task(
            follow(lambda: self.config.paths, config.fabric, self._relearn), name="learned paths"
        )
        for warning in config.warnings:
            log(logging.WARNING, warning)
        log(
            logging.INFO,
            "started",
            host=config.host.name,
            epoch=self.controller.replica.epoch,
            fabric=config.fabric.digest().hex(),
            peers=len(config.peers),
            address=self.transport.address,
            socket=str(config.socket),
        )

    async def stop(self) -> None:
        """Stop serving. Rows stay with the peers for the length of a lease: transfers go on meanwhile, and
        their clients register them again with the next agent."""
        self.service.stopping = True
        if self._following is not None:
            self._following.cancel()
        await self.server.stop()
        self.engine.stop()
        await self.transport.wait_closed()
        self.book.close()
        if self.record is not None:
            self.record.close()
        log(logging.INFO, "stopped", host=self.config.host.name)

    def reload(self, config: AgentConfig) -> None:
        """Change what can be changed in a running agent, and say what can't."""
        old = self.config
        changed = {
            name
            for name in (field.name for field in fields(AgentConfig))
            if getattr(old, name) != getattr(config, name)
        } - {"fabric", "host"}
        if old.fabric.digest() != config.fabric.digest():
            changed.add("fabric")
        if old.host.name != config.host.name:
            changed.add("host")
        allowed = RELOADABLE - (OF_FABRIC if {"fabric", "host"} & changed else set())
        applied, later = changed & allowed, sorted(changed - allowed)
        if "dry_run" in changed:
            self.service.dry_run = config.dry_run
        if "log_level" in changed:
            LOGGER.setLevel(config.log_level.upper())
        self.config = _with(old, config, applied)
        if {"peers", "keys"} & applied:
            self._set_peers(self.config.peers, self.config.keys)
        if "learned" in applied:
            self.book.relearn(config.learned)
        log(logging.INFO, "reloaded", changed=sorted(applied))
        if later:
            log(logging.WARNING, "needs a restart to change", keys=later)

    def _relearn(self, learned: Mapping[Way, Learned]) -> None:
        """Steer by other learned maps; reservations and what runs stay as they are."""
        if learned == self.config.learned:
            return
        self.config = replace(self.config, learned=learned)
        self.book.relearn(learned)
        counts = learned_counts(learned)
        log(logging.WARNING if counts["in_doubt"] else logging.INFO, "learned paths changed", **counts)

    def _set_peers(self, peers: Mapping[str, SocketAddress], keys: Keys) -> None:
        """Whom we hear, and where datagrams for everybody go."""
        addresses = {host_id(name): address for name, address in peers.items()}
        self.transport.set_peers(addresses)
        by_leaf = self.config.transport == "nats"
        bound = {
            host: f"{host:016x}" if by_leaf else format_address(address)
            for host, address in addresses.items()
        }
        expected = neighbours(self.config.fabric, self.config.host, peers) if by_leaf else len(bound)
        self.engine.reconfigure(keys, bound, expected)

    def _heed(self, target: int) -> None:
        """A transfer goes to this attachment: hear what others send there."""
        if self.config.transport == "nats" and target not in self._heeded:
            self._heeded.add(target)
            for leaf in beside(self.config.fabric, {target}):
                self.controller.replica.listen(down(leaf))
                self.transport.listen(down(leaf))

    def _decided(self, decisions: Sequence[Decision], now: int) -> None:
        self.service.decided(decisions, now)

    def _store(self, epoch: int) -> None:
        """Write the epoch down; where the disk is full the agent goes on: its peers remember the epoch."""
        try:
            write_epoch(self.config.state, epoch)
        except ConfigError as error:
            log(logging.ERROR, "epoch not stored", detail=str(error))

    def _finished(self, served: Served) -> None:
        if self.record is not None:
            self.record.finished(served, self.controller.replica.epoch)

    def _welcome(self) -> Welcome:
        return Welcome(VERSION, self.config.host.name, self.config.policy.hold_ns)

    def _ways(self) -> Iterator[Way]:
        """RoCE to all peers, on each rail: what transfers will most probably ask for."""
        host = self.config.host
        pairs = (self.directory.pair(name, nic.name) for name in self.config.peers for nic in host.nics)
        return islice((default_way(pair.source, pair.target) for pair in pairs), WARM_WAYS_MAX)

    async def _make_first(self, way: Way) -> None:
        loop = asyncio.get_running_loop()
        made: asyncio.Future[None] = loop.create_future()

        def hand_over(map_: "Future[PathMap]") -> None:
            loop.call_soon_threadsafe(self._keep, way, map_)
            loop.call_soon_threadsafe(made.set_result, None)

        self.book.make(way, hand_over)
        await made

    def _warm_next(self, ways: Iterator[Way]) -> None:
        """Make path maps one by one, so that a client's own is never far behind."""
        way = next(ways, None)
        if way is None or self.service.stopping:
            return
        loop = asyncio.get_running_loop()

        def hand_over(map_: "Future[PathMap]") -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._keep, way, map_)
                loop.call_soon_threadsafe(self._warm_next, ways)

        self.book.make(way, hand_over)

    def _keep(self, way: Way, map_: "Future[PathMap]") -> None:
        if map_.cancelled():
            return
        try:
            self.book.made_one(way, map_.result())
        except ArkError as error:  # no path is up, say: clients that ask are told the same
            log(logging.WARNING, "no path map", way=way._asdict(), detail=str(error))


def _transport(config: AgentConfig) -> Transport:
    if config.transport == "nats":
        return NatsTransport(config.nats, host_id(config.host.name), heard(config.fabric, config.host))
    if config.transport == "multicast":
        return MulticastTransport(config.bind, config.group, receive_buffer_bytes=config.receive_buffer_bytes)
    return UdpTransport(config.bind, receive_buffer_bytes=config.receive_buffer_bytes)


def _replica_config(config: AgentConfig, address: str) -> ReplicaConfig:
    by_leaf = config.transport == "nats"
    return ReplicaConfig(
        host=host_id(config.host.name),
        address=address,
        fabric=config.fabric.digest(),
        keys=config.keys,
        peers={},
        leaves=by_leaf,
        home=home(config.host) if by_leaf else (ALL,),
        listens=heard(config.fabric, config.host) if by_leaf else frozenset((ALL,)),
        lease_ns=config.lease_ns,
        heartbeat_ns=config.heartbeat_ns,
        batch_ns=config.batch_ns,
    )


def _with(old: AgentConfig, new: AgentConfig, names: Collection[str]) -> AgentConfig:
    """A configuration with some keys of another."""
    return replace(old, **{name: getattr(new, name) for name in names})
