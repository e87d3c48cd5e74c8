"""Stands in for ``nixl._api``: an agent whose transfers are over when a test says so.

Threads are given workers as the UCX backend does it: in turn when they first make a transfer, from 1 on.
Signatures are those of the real class, which the contract tests compare.
"""

import itertools
import threading
from collections.abc import Callable
from typing import Any


class nixl_prepped_dlist_handle:
    __slots__ = ("_agent", "_handle", "_released")

    def __init__(self, agent: Any, value: int) -> None:
        self._handle = value
        self._agent = agent
        self._released = False


class nixl_xfer_handle:
    __slots__ = ("_agent", "_handle", "_released")

    def __init__(self, agent: Any, value: int) -> None:
        self._handle = value
        self._agent = agent
        self._released = False

    def release(self) -> None:
        self._released = True


class nixl_agent_config:
    def __init__(
        self,
        enable_prog_thread: bool = True,
        enable_listen_thread: bool = False,
        listen_port: int = 5555,
        capture_telemetry: bool = False,
        num_threads: int = 0,
        backends: list[str] = ["UCX"],
        sync_mode: Any = None,
    ) -> None:
        self.backends = backends
        self.num_threads = num_threads


class nixl_agent:
    def __init__(
        self, agent_name: str, nixl_conf: nixl_agent_config | None = None, instantiate_all: bool = False
    ) -> None:
        config = nixl_conf or nixl_agent_config()
        self.agent = object()  # in NIXL, the one in C++
        self.name = agent_name
        self.backends: dict[str, dict[str, str]] = {}
        self.numbers = itertools.count(0x5500_0000, 16)
        self.worker_of: dict[int, int] = {}
        self.turn = itertools.count(1)
        self.made: list[tuple[int, str, Any]] = []  # worker, operation, remote
        self.state = "PROC"
        self.raises: Exception | None = None
        self.notified: list[tuple[str, bytes]] = []
        self.connecting: Callable[[int], None] = lambda worker: None
        self.polling: Callable[[], None] = lambda: None
        for backend in config.backends:
            params = {"num_threads": str(config.num_threads)} if config.num_threads else {}
            self.create_backend(backend, params)

    def create_backend(self, backend: str, initParams: dict[str, str] = {}) -> None:
        self.backends[backend] = dict(initParams)

    def register_memory(self, reg_list: Any, mem_type: str | None = None, backends: list[str] = []) -> Any:
        assert all(backend in self.backends for backend in backends)
        return reg_list

    def deregister_memory(self, dereg_list: Any, backends: list[str] = []) -> None:
        assert all(backend in self.backends for backend in backends)

    def get_reg_descs(self, descs: Any, mem_type: str | None = None) -> Any:
        return descs

    def get_xfer_descs(self, descs: Any, mem_type: str | None = None) -> Any:
        return descs

    def add_remote_agent(self, metadata: bytes) -> bytes:
        for worker in range(self._workers()):
            self.connecting(worker)
        return metadata

    def prep_xfer_dlist(
        self,
        agent_name: str,
        xfer_list: Any,
        mem_type: str | None = None,
        backends: list[str] = [],
    ) -> nixl_prepped_dlist_handle:
        return nixl_prepped_dlist_handle(self.agent, next(self.numbers))

    def make_prepped_xfer(
        self,
        operation: str,
        local_xfer_side: Any,
        local_indices: Any,
        remote_xfer_side: Any,
        remote_indices: Any,
        notif_msg: bytes = b"",
        backends: list[str] = [],
        skip_desc_merge: bool = False,
    ) -> nixl_xfer_handle:
        return self._make(operation, remote_xfer_side)

    def initialize_xfer(
        self,
        operation: str,
        local_descs: Any,
        remote_descs: Any,
        remote_agent: str,
        notif_msg: bytes = b"",
        backends: list[str] = [],
    ) -> nixl_xfer_handle:
        return self._make(operation, remote_agent)

    def transfer(self, handle: nixl_xfer_handle, notif_msg: bytes = b"") -> str:
        if self.raises is not None:
            raise self.raises
        return self.state

    def check_xfer_state(self, handle: nixl_xfer_handle) -> str:
        self.polling()
        if self.raises is not None:
            raise self.raises
        return self.state

    def get_xfer_telemetry(self, handle: nixl_xfer_handle) -> None:
        pass

    def release_xfer_handle(self, handle: nixl_xfer_handle) -> None:
        if self.raises is not None:
            raise self.raises
        handle.release()

    def release_dlist_handle(self, handle: nixl_prepped_dlist_handle) -> None:
        handle._released = True

    def send_notif(self, remote_agent_name: str, notif_msg: bytes, backend: str | None = None) -> None:
        self._worker()
        self.notified.append((remote_agent_name, notif_msg))

    def _worker(self) -> int:
        thread = threading.get_ident()
        if thread not in self.worker_of:
            self.worker_of[thread] = next(self.turn) % self._workers()
        return self.worker_of[thread]

    def _workers(self) -> int:
        return int(self.backends.get("UCX", {}).get("num_workers", "1"))

    def _make(self, operation: str, remote: Any) -> nixl_xfer_handle:
        worker = self._worker()
        if remote != self.name:
            self.made.append((worker, operation, remote))
        return nixl_xfer_handle(self.agent, next(self.numbers))
