"""Several Mooncake engines that act as one: the same memory in each, one connection to a peer from each."""

import ctypes
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ark.integrations.logs import log
from ark.integrations.wiring import ConnectionLog

TCP_LANES: Final = "MC_TCP_LANES_PER_PEER"
"""Mooncake's own number of TCP connections to a peer; read by the sending side alone."""

QUEUE_PAIRS: Final = "MC_NUM_QP_PER_EP"
"""Mooncake's number of queue pairs of an endpoint; must be equal on both sides."""

SESSIONS_MAX: Final = 4096
"""Peers remembered as connected; the one met longest ago is forgotten, and is connected again when met."""

DONE: Final = 0


class EngineLanes:
    """Engines 0, 1, … of which a transfer takes one.

    Parameters
    ----------
    make
        ``mooncake.engine.TransferEngine``.
    """

    log: ConnectionLog | None = None
    """Tells the paths of connections; None while the protocol is not known."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._engines: tuple[Any, ...] = (make(),)
        self._scratch = [ctypes.create_string_buffer(8)]
        self._first_ready = False
        self._lock = threading.Lock()
        self._peers: OrderedDict[str, _Peer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._engines)

    def __getitem__(self, lane: int) -> Any:
        """The engine of a lane; the first one if that is used no more."""
        engines = self._engines
        return engines[lane if lane < len(engines) else 0]

    def initialize(self, lanes: int, *arguments: str) -> int:
        """Initialize the first engine, whose result counts, and others up to that many that start as well."""
        result = int(self[0].initialize(*arguments))
        while result == DONE and len(self) < lanes:
            engine, scratch = self._make(), ctypes.create_string_buffer(8)
            if engine.initialize(*arguments) != DONE or not _register(engine, scratch):
                log.warning(
                    "ark: only %d of %d Mooncake engines start: so many paths are used", len(self), lanes
                )
                break
            self._engines += (engine,)
            self._scratch.append(scratch)
        return result

    def register(self, name: str, *arguments: Any) -> int:
        """Register memory with each engine. The first one's result counts; one that fails is used no more."""
        result = int(getattr(self[0], name)(*arguments))
        for lane, engine in enumerate(self._engines[1:], start=1):
            if result == DONE and getattr(engine, name)(*arguments) != DONE:
                log.warning("ark: %s fails in Mooncake engine %d: %d paths are used", name, lane, lane)
                self._engines = self._engines[:lane]
                break
        return result

    def forget(self, name: str, *arguments: Any) -> int:
        """Unregister memory in each engine; the first one's result."""
        results = [int(getattr(engine, name)(*arguments)) for engine in self._engines]
        return results[0]

    def paths(self, session: str) -> tuple[int | None, ...]:
        """The path of each engine's connection to a peer, made when it is first met; none if that fails."""
        with self._lock:
            peer = self._peers.setdefault(session, _Peer())
            if len(self._peers) > SESSIONS_MAX:
                self._peers.popitem(last=False)
        with peer.lock:
            if not peer.paths:
                peer.paths = tuple(self._connect(session))
            return peer.paths

    def _connect(self, session: str) -> Iterator[int | None]:
        """Open a connection from each engine by reading one byte: its path."""
        engines, log_of_run = self._engines, self.log
        address = engines[0].get_first_buffer_address(session)
        if log_of_run is None or not address or not self._first_can_read():
            return
        _, _, port = session.rpartition(":")
        for lane, engine in enumerate(engines):
            mark = log_of_run.mark()
            if engine.transfer_sync_read(session, ctypes.addressof(self._scratch[lane]), address, 1) != DONE:
                if lane:
                    log.warning("ark: %s: only %d Mooncake engines connect", session, lane)
                return
            yield log_of_run.path_since(mark, but_port=int(port) if port.isdecimal() else 0)

    def _first_can_read(self) -> bool:
        """Register the first engine's scratch, after the application's own memory, which peers may look up as
        the first buffer."""
        with self._lock:
            self._first_ready = self._first_ready or _register(self._engines[0], self._scratch[0])
            return self._first_ready


class _Peer:
    """Which paths the lanes to a peer take; none while it has not been reached."""

    __slots__ = ("lock", "paths")

    def __init__(self) -> None:
        self.paths: tuple[int | None, ...] = ()
        self.lock = threading.Lock()


def _register(engine: Any, scratch: "ctypes.Array[ctypes.c_char]") -> bool:
    return bool(engine.register_memory(ctypes.addressof(scratch), len(scratch)) == DONE)


def why_one(
    protocol: str,
    device_name: str,
    hostname: str,
    metadata_server: str,
    environment: Mapping[str, str] = os.environ,
) -> str | None:
    """Why an engine with these arguments can't be several; None if it can."""
    reasons = {
        f"its protocol is {protocol}; known are tcp and rdma": protocol not in {"tcp", "rdma"},
        "several engines of one name need the metadata server P2PHANDSHAKE": metadata_server
        != "P2PHANDSHAKE",
        f"its name {hostname} has a port, which several engines can't share": hostname.count(":") == 1,
        f"unset {TCP_LANES}": protocol == "tcp" and environment.get(TCP_LANES, "1") != "1",
        f"set {QUEUE_PAIRS}=1 on prefill and decode hosts, for one queue pair an engine and peer": (
            protocol == "rdma" and environment.get(QUEUE_PAIRS) != "1"
        ),
        "name one NIC as its device; over several, one transfer takes several paths": (
            protocol == "rdma" and (not device_name or "," in device_name)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
