"""NIXL's agent with a choice of path: several UCX workers, each with its own connection to a peer.

:func:`steered_agent` makes a class that stands in for ``nixl_agent``. It knows each transfer's bytes from the
descriptors, its peer from the agent that the remote descriptors belong to, its start when it is made, and its
end from the poll that sees it. Writes are steered. With a read the bytes leave the peer's NIC: it is counted.
"""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from ark.integrations.logs import log
from ark.integrations.nixl_sizes import Sizes, sizes_of, total_bytes
from ark.integrations.nixl_workers import BACKEND, Workers
from ark.integrations.sessions import peer_at_hand
from ark.integrations.steering import Sending, Steering
from ark.integrations.wiring import ConnectionLog, steering_over

DLISTS_MAX: Final = 65_536
"""Prepared lists whose sizes are kept; with more, transfers of the oldest go unsteered."""

OVER: Final = frozenset({"DONE", "ERR"})

NO_RDMA: Final = frozenset({"tcp", "sm", "self", "cuda", "cuda_copy", "cuda_ipc", "shm"})
"""Transports of ``UCX_TLS`` that send nothing over RoCE."""


class Prepared(NamedTuple):
    """What is known about a prepared list of descriptors."""

    agent: str
    sizes: Sizes | None


class Remote(NamedTuple):
    """What is known about a remote agent: the engine's name of its host, and the path of each worker."""

    session: str
    paths: tuple[int | None, ...]


class AgentSteering:
    """The part of a steered agent that is ARK's; the other base is ``nixl_agent``."""

    steering: ClassVar[Steering]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._ark_lock = threading.Lock()
        self._ark_workers: Workers | None = None
        self._ark_bound = False
        self._ark_remotes: dict[str, Remote] = {}
        self._ark_prepared: dict[int, Prepared] = {}
        self._ark_sendings: dict[int, Sending] = {}
        super().__init__(*arguments, **named)

    # Names and defaults of parameters are NIXL's.
    def create_backend(self, backend: str, initParams: Mapping[str, str] | None = None) -> Any:  # noqa: N803
        """As NIXL's; the UCX backend gets one worker a path, and no threads that would split transfers."""
        params = dict(initParams or {})
        lanes = self.steering.lanes
        if backend != BACKEND or lanes < 2:
            return super().create_backend(backend, params)  # type: ignore[misc]
        if "num_workers" in params:
            log.warning("ark: NIXL's transfers are counted, not steered: num_workers is set already")
            return super().create_backend(backend, params)  # type: ignore[misc]
        made = super().create_backend(  # type: ignore[misc]
            backend, params | {"num_workers": str(lanes), "num_threads": "0"}
        )
        self._ark_workers = Workers(lanes)
        return made

    def add_remote_agent(self, metadata: bytes) -> Any:
        """As NIXL's; remembers who the peer is, and gives the threads their workers before the first one."""
        self._ark_bind()
        opened = ConnectionLog(self.steering.proto)
        mark = opened.mark()
        name = super().add_remote_agent(metadata)  # type: ignore[misc]
        session, paths = peer_at_hand(), opened.paths_since(mark, self.steering.lanes)
        with self._ark_lock:
            before = self._ark_remotes.get(_text(name), Remote("", ()))
            self._ark_remotes[_text(name)] = Remote(session or before.session, paths or before.paths)
        return name

    def prep_xfer_dlist(self, agent_name: str, xfer_list: Any, *more: Any, **named: Any) -> Any:
        """As NIXL's; remembers the sizes."""
        handle = super().prep_xfer_dlist(agent_name, xfer_list, *more, **named)  # type: ignore[misc]
        with self._ark_lock:
            self._ark_prepared[_key(handle)] = Prepared(_text(agent_name), sizes_of(xfer_list))
            if len(self._ark_prepared) > DLISTS_MAX:
                del self._ark_prepared[next(iter(self._ark_prepared))]
        return handle

    def release_dlist_handle(self, handle: Any) -> Any:
        """As NIXL's."""
        with self._ark_lock:
            self._ark_prepared.pop(_key(handle), None)
        return super().release_dlist_handle(handle)  # type: ignore[misc]

    def make_prepped_xfer(
        self,
        operation: str,
        local_xfer_side: Any,
        local_indices: Any,
        remote_xfer_side: Any,
        *more: Any,
        **named: Any,
    ) -> Any:
        """As NIXL's; a write is made in the thread of the worker whose path the agent chooses."""
        with self._ark_lock:
            local = self._ark_prepared.get(_key(local_xfer_side))
            remote = self._ark_prepared.get(_key(remote_xfer_side))
        sizes = None if local is None else local.sizes
        size_bytes = None if sizes is None else sizes.of(local_indices)
        arguments = (operation, local_xfer_side, local_indices, remote_xfer_side, *more)
        peer = None if remote is None else remote.agent
        return self._ark_make(super().make_prepped_xfer, peer, size_bytes, arguments, named)  # type: ignore[misc]

    def initialize_xfer(
        self, operation: str, local_descs: Any, remote_descs: Any, remote_agent: str, *more: Any, **named: Any
    ) -> Any:
        """As NIXL's; a write is made in the thread of the worker whose path the agent chooses."""
        arguments = (operation, local_descs, remote_descs, remote_agent, *more)
        make = super().initialize_xfer  # type: ignore[misc]
        return self._ark_make(make, _text(remote_agent), total_bytes(local_descs), arguments, named)

    def initialize_unsteered(self, *arguments: Any) -> Any:
        """NIXL's own ``initialize_xfer``."""
        return super().initialize_xfer(*arguments)  # type: ignore[misc]

    def transfer(self, handle: Any, *more: Any, **named: Any) -> str:
        """As NIXL's; a transfer that is over at once, or can't be posted, is released."""
        return self._ark_state(handle, super().transfer, *more, **named)  # type: ignore[misc]

    def check_xfer_state(self, handle: Any) -> str:
        """As NIXL's; a transfer that is over, or whose state can't be read, is released."""
        return self._ark_state(handle, super().check_xfer_state)  # type: ignore[misc]

    def release_xfer_handle(self, handle: Any) -> Any:
        """As NIXL's; where NIXL can't release a transfer, it still goes on."""
        key = _key(handle)
        result = super().release_xfer_handle(handle)  # type: ignore[misc]
        self._ark_end(key)
        return result

    def _ark_make(
        self,
        make: Callable[..., Any],
        peer: str | None,
        size_bytes: int | None,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        workers = self._ark_workers
        if workers is None or arguments[0] != "WRITE":
            self.steering.observe(size_bytes or 0)
            return make(*arguments, **named)
        self._ark_bind()
        with self._ark_lock:
            met = self._ark_remotes.get(peer or "", Remote("", ()))
        unknown = (None,) * len(workers)
        sending = self.steering.begin(met.session, size_bytes or 0, met.paths or unknown)
        try:
            handle = workers.run(sending.lane, make, *arguments, **named)
        except BaseException:
            sending.end()
            raise
        with self._ark_lock:
            earlier = self._ark_sendings.pop(_key(handle), None)
            if sending.steered:
                self._ark_sendings[_key(handle)] = sending
        if earlier is not None:
            earlier.end()
        return handle

    def _ark_state(self, handle: Any, ask: Callable[..., Any], *more: Any, **named: Any) -> str:
        try:
            state = str(ask(handle, *more, **named))
        except BaseException:
            self._ark_end(_key(handle))
            raise
        if state in OVER:
            self._ark_end(_key(handle))
        return state

    def _ark_end(self, key: int) -> None:
        with self._ark_lock:
            sending = self._ark_sendings.pop(key, None)
        if sending is not None:
            sending.end()

    def _ark_bind(self) -> None:
        with self._ark_lock:
            if self._ark_workers is None or self._ark_bound:
                return
            self._ark_bound = True
            try:
                self._ark_workers.bind(self)
            except Exception as error:  # noqa: BLE001 - NIXL's errors have no base of their own
                log.warning("ark: NIXL's transfers are counted, not steered: %s", error)
                self._ark_workers.stop()
                self._ark_workers = None

    def __del__(self) -> None:
        workers = getattr(self, "_ark_workers", None)
        if workers is not None:
            workers.stop()
        for sending in list(getattr(self, "_ark_sendings", {}).values()):
            sending.end()
        inherited = getattr(super(), "__del__", None)
        if inherited is not None:
            inherited()


def steered_agent(base: type[Any], steering: Steering) -> type[Any]:
    """A class like ``nixl_agent``, or a subclass of it, that ARK steers."""
    return type(f"Steered{base.__name__}", (AgentSteering, base), {"steering": steering})


def steering_for_ucx(*, push: bool = True, environment: Mapping[str, str] = os.environ) -> Steering:
    """What asks the agent for transfers over UCX, TCP if ``UCX_TLS`` names nothing faster.

    ``push`` is whether this side writes; one that reads has no use for several connections.
    """
    transports = set(environment.get("UCX_TLS", "all").split(","))
    over_tcp = "tcp" in transports and transports <= NO_RDMA
    return steering_over("tcp" if over_tcp else "udp", several=push)


def _key(handle: Any) -> int:
    """NIXL's own number of a handle; of a handle that is a number, the number."""
    return int(getattr(handle, "_handle", handle))


def _text(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name
