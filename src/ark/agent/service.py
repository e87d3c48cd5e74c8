"""What clients' requests mean: their transfers and lanes, told to the controller, and its decisions answered.

Chooses nothing. A transfer is told to the controller once the source ports of its way are known, which is at
once but for the first transfer of a kind.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Final

import msgspec
from msgspec import Struct

from ark.agent.directory import Directory, Pair
from ark.agent.engine import Engine
from ark.agent.local_api import Connection
from ark.agent.ports import PortBook, Ports, Way
from ark.client.messages import (
    Acquire,
    Grant,
    Hello,
    Lane,
    Lanes,
    Refusal,
    Release,
    Report,
    Request,
    Resume,
    Segment,
    Start,
    Status,
)
from ark.control.decision import Decision, Event, Kind
from ark.errors import ArkError, LocalProtocolError
from ark.fabric import PathMap

HELD_MAX: Final = 20_000
"""Transfers and lanes of one client: more than a host may announce. Full: further ones are refused."""

RELEASES_AT_ONCE: Final = 64
"""Transfers of a client that has gone, released before the loop looks after others."""

DRY_RUN: Final = "dry run"
TOO_SHORT: Final = "too short to be managed, or all is full"


class Served(Struct, eq=False):
    """A transfer or a set of lanes of a client; ``flow`` is 0 unless the controller knows of it."""

    connection: Connection
    request: Acquire | Resume | Lanes
    pair: Pair
    ports: Ports | None = None
    flow: int = 0
    kind: str = Kind.UNMANAGED
    paths: tuple[int, ...] = ()
    lanes: tuple[Lane, ...] = ()
    waiting: bool = True
    released: bool = False
    began_ns: int = msgspec.field(default_factory=time.time_ns)


class Service:
    """Serves all clients of this host.

    Parameters
    ----------
    report
        Makes the table that a status request asks for.
    finished
        Takes each transfer that is over, for the record.
    heed
        Told of each attachment that a transfer goes to, before its path is chosen.

    Attributes
    ----------
    unsteerable
        Transfers that the source port can't steer, so that nothing is chosen.
    unreachable
        Paths chosen to which no source port leads.
    """

    def __init__(
        self,
        engine: Engine,
        directory: Directory,
        book: PortBook,
        *,
        report: Callable[[str, int], dict[str, object]],
        finished: Callable[[Served], None],
        heed: Callable[[int], None],
        dry_run: bool,
    ) -> None:
        self.dry_run = dry_run
        self.stopping = False
        self.transfers: dict[int, Served] = {}
        self.unsteerable = 0
        self.unreachable = 0
        self._engine = engine
        self._directory = directory
        self._book = book
        self._report = report
        self._finished = finished
        self._heed = heed
        self._held: dict[Connection, dict[int, Served]] = {}
        self._flows = count(1)
        self._leaving: deque[Served] = deque()
        self._making: dict[Way, list[Served]] = {}

    def request(self, connection: Connection, request: Request) -> None:
        """Answer one request, now or as soon as that is possible."""
        try:
            match request:
                case Acquire() | Resume() | Lanes():
                    self._take_on(connection, request)
                case Release():
                    served = self._held.get(connection, {}).pop(request.handle, None)
                    if served is not None:
                        self._release(served)
                case Segment() | Start():
                    self._go_on(connection, request)
                case Status():
                    connection.reply(Report(request.handle, self._report(request.question, request.argument)))
                case Hello():
                    raise LocalProtocolError("hello has been said")
        except ArkError as error:
            connection.reply(Refusal(getattr(request, "handle", 0), str(error)))

    def gone(self, connection: Connection) -> None:
        """Release all that a client held."""
        if self.stopping:
            return  # its transfers go on, and it will register them again with the next agent
        idle = not self._leaving
        self._leaving.extend(self._held.pop(connection, {}).values())
        if idle and self._leaving:
            self._release_some()

    def decided(self, decisions: Sequence[Decision], now: int) -> None:
        """The controller has decided: keep that, and answer whoever waits for it."""
        for decision in decisions:
            served = self.transfers.get(decision.flow)
            if served is None or decision.event is Event.RELEASED:
                continue
            served.kind = decision.kind
            if decision.paths != served.paths:
                self._move(served, decision.paths)
            if served.waiting and decision.start_ns <= now:
                self._grant(served)

    @property
    def lane_sets(self) -> int:
        """How many sets of lanes are held."""
        return sum(
            isinstance(served.request, Lanes) for held in self._held.values() for served in held.values()
        )

    def _take_on(self, connection: Connection, request: Acquire | Resume | Lanes) -> None:
        held = self._held.setdefault(connection, {})
        if request.handle in held:
            raise LocalProtocolError(f"handle {request.handle} is in use")
        if len(held) >= HELD_MAX:
            raise LocalProtocolError(f"{HELD_MAX} transfers and lanes are all that a client may hold")
        pair = self._directory.pair(request.target, request.nic)
        served = held[request.handle] = Served(connection, request, pair)
        way = Way(pair.source.index, pair.target.index, request.dport, request.proto)
        ports = self._book.ready(way)
        if ports is not None:
            self._begin(served, ports)
        elif way in self._making:
            self._making[way].append(served)
        else:
            self._making[way] = [served]
            self._make(way)

    def _make(self, way: Way) -> None:
        loop = asyncio.get_running_loop()

        def made(map_: "Future[PathMap]") -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._made, way, map_)

        self._book.make(way, made)

    def _made(self, way: Way, made: "Future[PathMap]") -> None:
        """A path map is there: go on with those who wait for it."""
        for served in self._making.pop(way, []):
            if served.released:
                continue
            try:
                self._begin(served, self._book.made_one(way, made.result()))
            except ArkError as error:
                self._refuse(served, str(error))

    def _begin(self, served: Served, ports: Ports) -> None:
        served.ports = ports
        request = served.request
        if isinstance(request, Lanes):
            self._give_lanes(served, ports, request)
            return
        if not ports.steers:
            self.unsteerable += 1
            self._grant(served, ports.map.reason)
            return
        served.flow = next(self._flows)
        self.transfers[served.flow] = served
        source, target = served.pair.source.attachment, served.pair.target.attachment
        controller = self._engine.controller
        self._heed(target)
        try:
            if isinstance(request, Acquire):
                self._engine.feed(
                    controller.flow_arrived,
                    served.flow,
                    source,
                    target,
                    request.size_bytes,
                    ahead=request.ahead,
                    mask=ports.mask,
                )
            else:
                self._resume(served, ports, request)
        except LocalProtocolError as error:
            del self.transfers[served.flow]
            for lane in served.lanes:
                ports.give(lane)
            self._refuse(served, str(error))

    def _resume(self, served: Served, ports: Ports, request: Resume) -> None:
        """Take on a transfer that runs already, on the paths and ports that it has."""
        served.paths = tuple(lane.path for lane in request.lanes)
        served.lanes = tuple(ports.claim(lane) for lane in request.lanes)
        self._engine.feed(
            self._engine.controller.flow_resumed,
            served.flow,
            served.pair.source.attachment,
            served.pair.target.attachment,
            request.size_bytes,
            served.paths,
            mask=ports.mask,
        )

    def _give_lanes(self, served: Served, ports: Ports, request: Lanes) -> None:
        if self.dry_run:
            self._grant(served, DRY_RUN)
            return
        taken = {lane.path: lane for lane in request.taken}
        served.kind = "lanes"
        served.paths = ports.map.paths if ports.steers else ()
        served.lanes = tuple(
            ports.claim(taken[path]) if path in taken else ports.take(path) for path in served.paths
        )
        self._grant(served, "" if ports.steers else ports.map.reason)

    def _go_on(self, connection: Connection, request: Segment | Start) -> None:
        served = self._held.get(connection, {}).get(request.handle)
        if served is None or isinstance(served.request, Lanes):
            raise LocalProtocolError(f"no transfer has the handle {request.handle}")
        served.waiting = True
        if not served.flow:
            if served.ports is not None:
                self._grant(served, served.ports.map.reason)
            return
        controller = self._engine.controller
        try:
            if isinstance(request, Segment):
                assert served.ports is not None, "the controller knows of it"
                mask = served.ports.mask
                self._engine.feed(controller.segment_ended, served.flow, request.bytes_left, mask=mask)
            else:
                self._engine.feed(controller.flow_started, served.flow)
        except LocalProtocolError:
            served.waiting = False
            raise

    def _move(self, served: Served, paths: tuple[int, ...]) -> None:
        ports = served.ports
        assert ports is not None
        for lane in served.lanes:
            ports.give(lane)
        served.paths = paths
        served.lanes = tuple(ports.take(path) for path in paths)
        self.unreachable += sum(not lane.source_port for lane in served.lanes)

    def _grant(self, served: Served, reason: str = "") -> None:
        served.waiting = False
        lanes = served.lanes
        if self.dry_run:
            lanes, reason = (), reason or DRY_RUN
        elif not lanes:
            reason = reason or TOO_SHORT
        pair = served.pair
        served.connection.reply(
            Grant(served.request.handle, served.kind, lanes, pair.source.address, pair.target.address, reason)
        )

    def _refuse(self, served: Served, reason: str) -> None:
        served.waiting = False
        self._held.get(served.connection, {}).pop(served.request.handle, None)
        served.connection.reply(Refusal(served.request.handle, reason))

    def _release(self, served: Served) -> None:
        served.released = True
        if served.ports is not None:
            for lane in served.lanes:
                served.ports.give(lane)
        if served.flow:
            del self.transfers[served.flow]
            self._finished(served)
            try:
                self._engine.feed(self._engine.controller.flow_completed, served.flow)
            except LocalProtocolError:
                return  # leaked so long ago that the controller has forgotten it

    def _release_some(self) -> None:
        for _ in range(min(RELEASES_AT_ONCE, len(self._leaving))):
            self._release(self._leaving.popleft())
        if self._leaving:
            asyncio.get_running_loop().call_soon(self._release_some)
