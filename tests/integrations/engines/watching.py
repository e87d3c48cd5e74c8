"""What the tests of the adapters look at: an agent's transfers, and the log of ``ark run``."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.agent.cohort import PATIENCE_S, Cohort

from ark.client import Client


class Reserved(NamedTuple):
    """A transfer as the agent has it."""

    target: str
    size_bytes: int
    paths: tuple[int, ...]


class Watched:
    """One agent, and the client that an adapter uses."""

    def __init__(self, four: Cohort, client: Client) -> None:
        self.four = four
        self.client = client
        self._outside = four.client("h0")

    def transfers(self) -> list[Reserved]:
        """All transfers that the agent of h0 has now."""
        rows: Any = self._outside.status("transfers")["results"]
        return [
            Reserved(row["target"].partition(".")[0], row["size_bytes"], tuple(row["paths"])) for row in rows
        ]

    def settled(self) -> list[Reserved]:
        """The same once all releases have arrived: those are told without an answer."""
        self.client.status()
        return self.transfers()


class RunLog:
    """The file in which the preload library tells what connections were opened."""

    def __init__(self, file: Path, pid: int) -> None:
        self.file = file
        self.pid = pid

    def opened(
        self, path: int | None, *, target: str = "10.9.0.2", dport: int = 15918, kind: str = "tcp"
    ) -> None:
        """Write one line."""
        how = f"path={path} port=51000" if path is not None else "not steered: no agent answers"
        with self.file.open("a") as file:
            file.write(f"pid={self.pid} kind={kind} source=10.9.0.1 target={target} dport={dport} {how}\n")


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Start something that blocks."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def join(thread: threading.Thread) -> None:
    """Wait for the end of a thread."""
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
