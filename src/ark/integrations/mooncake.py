"""Mooncake's Transfer Engine with a choice of path: several engines in one, of which each transfer takes one.

A Mooncake engine spreads a transfer over all its connections to a peer. So that a transfer can take one path,
:class:`SteeredEngine` is as many engines as there are paths, each with one connection to a peer, made one
after the other when the peer is first met. It stands in for ``mooncake.engine.TransferEngine``
and has its methods.

Only writes are steered: with a read the bytes leave the peer's NIC.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from ark.client import LaneSet
from ark.integrations.logs import log
from ark.integrations.mooncake_lanes import DONE, TCP_LANES, EngineLanes, why_one
from ark.integrations.steering import Sending, Steering
from ark.integrations.wiring import ConnectionLog, steering_over

BATCHES_MAX: Final = 65_536
"""Asynchronous transfers whose end nobody has asked for yet; with more, the oldest counts as ended."""

IN_PROGRESS: Final = 0


class SteeredEngine:
    """``mooncake.engine.TransferEngine`` with one engine a path; unknown methods are the first engine's.

    Parameters
    ----------
    make
        ``mooncake.engine.TransferEngine``.
    steering
        What asks the agent; by default made by ``initialize``, for its protocol.
    """

    def __init__(self, make: Callable[[], Any], steering: Steering | None = None) -> None:
        self._engines = EngineLanes(make)
        self._lock = threading.Lock()
        self._batches: OrderedDict[int, tuple[Any, Sending]] = OrderedDict()
        self.steering = steering

    def __getattr__(self, name: str) -> Any:
        if name == "_engines":  # of a copy that has not been built
            raise AttributeError(name)
        return getattr(self._engines[0], name)

    @property
    def lanes(self) -> int:
        """How many engines there are: paths that a transfer can take."""
        return len(self._engines)

    def initialize(self, local_hostname: str, metadata_server: str, protocol: str, device_name: str) -> int:
        """Initialize all engines; the result is the first one's."""
        arguments = (local_hostname, metadata_server, protocol, device_name)
        if self.steering is None:
            self.steering = _steering(
                protocol, why_one(protocol, device_name, local_hostname, metadata_server)
            )
        if protocol == "tcp" and self.steering.lanes > 1:
            os.environ.setdefault(TCP_LANES, "1")
        self._engines.log = ConnectionLog(self.steering.proto)
        return self._engines.initialize(self.steering.lanes, *arguments)

    def register_memory(self, buffer_addr: int, capacity: int, *location: str) -> int:
        """Register a buffer with all engines."""
        return self._engines.register("register_memory", buffer_addr, capacity, *location)

    def batch_register_memory(
        self, buffer_addresses: Sequence[int], capacities: Sequence[int], *location: str
    ) -> int:
        """Register buffers with all engines."""
        return self._engines.register("batch_register_memory", buffer_addresses, capacities, *location)

    def unregister_memory(self, buffer_addr: int) -> int:
        """Forget a buffer in all engines."""
        return self._engines.forget("unregister_memory", buffer_addr)

    def batch_unregister_memory(self, buffer_addresses: Sequence[int]) -> int:
        """Forget buffers in all engines."""
        return self._engines.forget("batch_unregister_memory", buffer_addresses)

    def transfer_sync_write(
        self, target_hostname: str, buffer: int, peer_buffer_address: int, length: int, *more: Any
    ) -> int:
        """Write one buffer, over the path that the agent chooses; reserved as long as the call lasts."""
        with self._begin(target_hostname, length) as sending:
            engine = self._engines[sending.lane]
            return int(
                engine.transfer_sync_write(target_hostname, buffer, peer_buffer_address, length, *more)
            )

    def batch_transfer_sync_write(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        *more: Any,
    ) -> int:
        """Write buffers, all over the path that the agent chooses; reserved as long as the call lasts."""
        with self._begin(target_hostname, sum(lengths)) as sending:
            engine = self._engines[sending.lane]
            return int(
                engine.batch_transfer_sync_write(
                    target_hostname, buffers, peer_buffer_addresses, lengths, *more
                )
            )

    def transfer_submit_write(
        self, target_hostname: str, buffer: int, peer_buffer_address: int, length: int, *more: Any
    ) -> int:
        """Begin to write one buffer; reserved until ``transfer_check_status`` tells the end."""
        arguments = (target_hostname, buffer, peer_buffer_address, length, *more)
        return self._submit("transfer_submit_write", length, arguments)

    def batch_transfer_async_write(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        *more: Any,
    ) -> int:
        """Begin to write buffers; reserved until the end is told by one of the two methods for that."""
        arguments = (target_hostname, buffers, peer_buffer_addresses, lengths, *more)
        return self._submit("batch_transfer_async_write", sum(lengths), arguments)

    def transfer_check_status(self, batch_id: int) -> int:
        """1 when a transfer is done, 0 while it goes on, less when it failed."""
        status = int(self._engine_of(batch_id).transfer_check_status(batch_id))
        if status != IN_PROGRESS:
            self._over(batch_id)
        return status

    def get_batch_transfer_status(self, batch_ids: Sequence[int]) -> int:
        """Wait for transfers: 0 when all are done, less when one failed."""
        result = DONE
        try:
            for batch_id in batch_ids:
                status = int(self._engine_of(batch_id).get_batch_transfer_status([batch_id]))
                result = status if result == DONE else result
        finally:
            for batch_id in batch_ids:
                self._over(batch_id)
        return result

    def _begin(self, session: str, size_bytes: int) -> Sending:
        if self.steering is None:
            return Sending(0)
        paths = self._engines.paths(session) if self.lanes > 1 else ()
        if len(paths) < 2:
            self.steering.observe(size_bytes)
            return Sending(0)
        return self.steering.begin(session, size_bytes, paths)

    def _submit(self, name: str, size_bytes: int, arguments: tuple[Any, ...]) -> int:
        sending = self._begin(arguments[0], size_bytes)
        engine = self._engines[sending.lane]
        try:
            batch_id = int(getattr(engine, name)(*arguments))
        except BaseException:
            sending.end()
            raise
        over = []
        with self._lock:
            if batch_id in self._batches:
                over.append(self._batches.pop(batch_id))
            self._batches[batch_id] = (engine, sending)
            if len(self._batches) > BATCHES_MAX:
                over.append(self._batches.popitem(last=False)[1])
        for _, forgotten in over:
            forgotten.end()
        return batch_id

    def _engine_of(self, batch_id: int) -> Any:
        with self._lock:
            entry = self._batches.get(batch_id)
        return self._engines[0] if entry is None else entry[0]

    def _over(self, batch_id: int) -> None:
        with self._lock:
            entry = self._batches.pop(batch_id, None)
        if entry is not None:
            entry[1].end()


def _steering(protocol: str, why_one_engine: str | None) -> Steering:
    """What asks the agent, and how many engines there are to be."""
    if why_one_engine is not None:
        log.warning("ark: Mooncake's transfers are counted, not steered: %s", why_one_engine)
    return steering_over("tcp" if protocol == "tcp" else "udp", several=why_one_engine is None)


def udp_sports(lanes: LaneSet) -> str:
    """``MC_MLX5_QP_UDP_SPORTS`` with one port a path; empty where no ports are known.

    With ``MC_NUM_QP_PER_EP`` set to the number of ports on both sides, Mooncake spreads each transfer evenly
    over the paths. It takes the list once a process and for all peers, so nothing is chosen for a transfer.
    Needs a Mooncake built with ``USE_MLX5DV``; its PyPI wheels ignore the list, and say so.
    """
    return ",".join(str(lane.source_port) for lane in lanes if lane.source_port)
