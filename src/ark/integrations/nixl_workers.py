"""Threads by which a Python program picks the UCX worker, and so the connection, of a NIXL transfer.

NIXL's UCX backend makes one connection to a peer for each of its ``num_workers`` workers. Its C++ interface
takes the worker's number with a transfer, the Python one does not; there a transfer belongs to the worker of
the thread that made it, and each thread is given a worker when it first makes one, in turn, beginning with
number 1. So one thread is kept for each worker, and makes transfers there; any thread may post and poll them.
"""

import ctypes
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

FIRST: Final = 1
"""The worker that the first thread is given."""

BACKEND: Final = "UCX"


class Workers:
    """One thread for each UCX worker of an agent."""

    def __init__(self, count: int) -> None:
        self._queues: list[queue.SimpleQueue[Callable[[], None] | None]] = [
            queue.SimpleQueue() for _ in range(count)
        ]
        for number, work in enumerate(self._queues):
            threading.Thread(target=_serve, args=(work,), name=f"ark-nixl-{number}", daemon=True).start()

    def __len__(self) -> int:
        return len(self._queues)

    def run(self, worker: int, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Call a function in the thread of a worker, and wait: its result, or its exception."""
        result: Future[T] = Future()

        def call() -> None:
            try:
                result.set_result(function(*arguments, **named))
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                result.set_exception(error)

        self._queues[worker].put(call)
        return result.result()

    def bind(self, agent: Any) -> None:
        """Give each thread its worker, before any other thread is given one.

        A transfer from the agent to itself is made, and never posted.
        """
        scratch = ctypes.create_string_buffer(64)
        region = (ctypes.addressof(scratch), len(scratch), 0)
        registered = agent.register_memory([(*region, "")], "DRAM", [BACKEND])
        try:
            descriptors = agent.get_xfer_descs([region], "DRAM")
            for turn in range(len(self)):
                worker = (FIRST + turn) % len(self)
                self.run(worker, _make_and_drop, agent, descriptors)
        finally:
            agent.deregister_memory(registered, [BACKEND])

    def stop(self) -> None:
        """End the threads once they have done what they were asked for."""
        for work in self._queues:
            work.put(None)


def _serve(work: "queue.SimpleQueue[Callable[[], None] | None]") -> None:
    while (call := work.get()) is not None:
        call()
        del call  # while this thread waits, nothing of the caller's is kept alive


def _make_and_drop(agent: Any, descriptors: Any) -> None:
    agent.initialize_unsteered("WRITE", descriptors, descriptors, agent.name, b"", [BACKEND]).release()
