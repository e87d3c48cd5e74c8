"""Stands in for ``mooncake.engine``: engines in one process that write into each other's record.

Signatures are those of the real binding, which the contract tests compare.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass
class Write:
    """One write that an engine was asked for."""

    engine: int
    session: str
    lengths: tuple[int, ...]


@dataclass
class Network:
    """What all engines of a test have in common."""

    writes: list[Write] = field(default_factory=list)
    reads: list[tuple[int, str]] = field(default_factory=list)
    buffers: dict[str, int] = field(default_factory=dict)
    gate: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    result: int = 0
    fails_to_start: frozenset[int] = frozenset()
    fails_to_connect: frozenset[int] = frozenset()
    raises: Exception | None = None
    connecting: Callable[[int, str], None] = lambda number, session: None


class TransferEngine:
    """An engine; number 0 is the first of a test."""

    network: ClassVar[Network]
    numbers: ClassVar["itertools.count[int]"]

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.memory: dict[int, int] = {}
        self.pending: dict[int, int] = {}
        self.initialized: tuple[str, ...] = ()

    def initialize(self, arg0: str, arg1: str, arg2: str, arg3: str) -> int:
        self.initialized = (arg0, arg1, arg2, arg3)
        return -1 if self.number in self.network.fails_to_start else 0

    def get_rpc_port(self) -> int:
        return 15_000 + self.number

    def get_engine(self) -> int:
        return self.number

    def register_memory(self, buffer_addr: int, capacity: int, location: str = "*") -> int:
        self.memory[buffer_addr] = capacity
        return 0

    def batch_register_memory(
        self, buffer_addresses: list[int], capacities: list[int], location: str = "*"
    ) -> int:
        self.memory |= dict(zip(buffer_addresses, capacities, strict=True))
        return 0

    def unregister_memory(self, arg0: int) -> int:
        return 0 if self.memory.pop(arg0, None) is not None else -1

    def batch_unregister_memory(self, arg0: list[int]) -> int:
        return min((self.unregister_memory(address) for address in arg0), default=0)

    def get_first_buffer_address(self, arg0: str) -> int:
        return self.network.buffers.get(arg0, 0)

    def transfer_sync_read(
        self,
        target_hostname: str,
        buffer: int,
        peer_buffer_address: int,
        length: int,
        transport_hint: str = "",
    ) -> int:
        assert buffer in self.memory, "a read needs registered memory"
        self.network.reads.append((self.number, target_hostname))
        self.network.connecting(self.number, target_hostname)
        return -1 if self.number in self.network.fails_to_connect else 0

    def transfer_sync_write(
        self,
        target_hostname: str,
        buffer: int,
        peer_buffer_address: int,
        length: int,
        transport_hint: str = "",
    ) -> int:
        return self._write(target_hostname, [length])

    def batch_transfer_sync_write(
        self,
        target_hostname: str,
        buffers: list[int],
        peer_buffer_addresses: list[int],
        lengths: list[int],
        transport_hint: str = "",
    ) -> int:
        return self._write(target_hostname, lengths)

    def transfer_submit_write(
        self,
        target_hostname: str,
        buffer: int,
        peer_buffer_address: int,
        length: int,
        transport_hint: str = "",
    ) -> int:
        return self._submit(target_hostname, [length])

    def batch_transfer_async_write(
        self,
        target_hostname: str,
        buffers: list[int],
        peer_buffer_addresses: list[int],
        lengths: list[int],
        transport_hint: str = "",
    ) -> int:
        return self._submit(target_hostname, lengths)

    def transfer_check_status(self, arg0: int) -> int:
        assert arg0 in self.pending, "a batch belongs to the engine that made it"
        return self.pending[arg0]

    def get_batch_transfer_status(self, arg0: list[int]) -> int:
        assert all(batch in self.pending for batch in arg0)
        return self.network.result

    def send_probe(self, arg0: str) -> int:
        return 0 if arg0 in self.network.buffers else -102

    def _write(self, session: str, lengths: list[int]) -> int:
        self.network.writes.append(Write(self.number, session, tuple(lengths)))
        self.network.arrived.release()
        assert self.network.gate.wait(30)
        if self.network.raises is not None:
            raise self.network.raises
        return self.network.result

    def _submit(self, session: str, lengths: list[int]) -> int:
        self.network.writes.append(Write(self.number, session, tuple(lengths)))
        batch = 94_000_000_000_000 + 16 * len(self.network.writes)
        self.pending[batch] = 0
        return batch


def fresh() -> Any:
    """The class with a network of its own, open to writes."""
    network = Network()
    network.gate.set()
    return type("TransferEngine", (TransferEngine,), {"network": network, "numbers": itertools.count()})
