"""What the real engines' programs look at: their TCP connections, and which of them carried what."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import ark.client
from ark.integrations import wiring


def connections() -> dict[str, tuple[int, int]]:
    """This process's connections, by both ends: descriptor, and bytes sent."""
    shown = subprocess.run(
        ["ss", "-tniHOp", "state", "established"], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for line in shown.splitlines():
        mine = re.search(rf"pid={os.getpid()},fd=(\d+)", line)
        if mine:
            fields = line.split()
            sent = re.search(r"bytes_sent:(\d+)", line)
            found[f"{fields[2]} {fields[3]}"] = (int(mine[1]), int(sent[1]) if sent else 0)
    return found


class OpenedHere(wiring.ConnectionLog):
    """In the place of the log of ``ark run``: paths are given to connections in turn, as they are opened."""

    paths: dict[str, int] = {}  # noqa: RUF012 - one for the whole program

    def mark(self) -> int:
        """How many connections there are now."""
        self.since(0)
        return len(self.paths)

    def since(self, mark: int) -> list[wiring.Opened]:
        """The connections found since then."""
        now = connections()
        for ends in sorted(now.keys() - self.paths.keys(), key=lambda ends: now[ends][0]):
            self.paths[ends] = len(self.paths) % 4
        opened = []
        for ends, path in list(self.paths.items())[mark:]:
            host, _, port = ends.split()[1].rpartition(":")
            opened.append(wiring.Opened("tcp", host, int(port), path))
        return opened


def carrier(before: dict[str, tuple[int, int]], size_bytes: int) -> str | None:
    """The connection that carried a transfer; None if it was spread over several."""
    grown = {ends: sent - before.get(ends, (0, 0))[1] for ends, (_, sent) in connections().items()}
    most = max(grown, key=lambda ends: grown[ends])
    return most if size_bytes <= grown[most] <= 1.1 * size_bytes + 100_000 else None


def path_of(ends: str | None) -> int | None:
    """The path of a connection: as ``OpenedHere`` has given it, or of its port in the log of ``ark run``."""
    if ends is None:
        return None
    if OpenedHere.paths:
        return OpenedHere.paths[ends]
    port, dport = (end.rpartition(":")[2] for end in ends.split())
    lines = Path(os.environ["ARK_RUN_LOG"]).read_text().splitlines()
    found = [
        re.search(rf"pid={os.getpid()} .* dport={dport} path=(\d+) port={port}$", line) for line in lines
    ]
    return next((int(one[1]) for one in found if one), None)


def be_patient() -> None:
    """Wait longer for the agent than a transfer should: the machine of a test may be busy."""
    client = ark.client.Client(timeout_s=30)
    vars(ark.client)["_default"] = client


def record(steering: Any) -> list[int | None]:
    """Let a steering note the path of each transfer, as the agent chose it; None for others."""
    paths: list[int | None] = []
    begin = steering.begin

    def noting(session: str, size_bytes: int, lanes: Any) -> Any:
        sending = begin(session, size_bytes, lanes)
        paths.append(lanes[sending.lane] if sending.steered else None)
        return sending

    steering.begin = noting
    return paths
