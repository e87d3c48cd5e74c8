"""Which paths the connections of an engine take: read from the log of ``ark run``.

An engine opens its connections itself. Under ``ark run`` the preload library chooses their ports, and with
``ARK_RUN_LOG`` writes one line for each, with the path. An adapter lets the engine open several connections
to a peer, one after the other, and reads here which path each has got. Without that log nobody knows where a
connection leads, and to reserve a path for a transfer on it would tell the peers what is not so.
"""

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ark.client import Client, default_client
from ark.errors import ArkError
from ark.integrations.steering import ROCE_PORT, Steering

LANES_MAX: Final = 16
"""Connections of an engine to one peer: each costs memory on the NIC."""

PEERS_ASKED: Final = 64
"""Peers that are looked at for how many paths there are."""

LOG: Final = "ARK_RUN_LOG"
"""Environment variable: the file in which the preload library writes a line for each connection."""

LANES: Final = "ARK_LANES"
"""Environment variable: how many connections to make to each peer; by default one for each path."""

READ_MAX: Final = 1 << 20
"""Bytes read at once; more lines than that while one peer is met are not looked at."""


class Opened(NamedTuple):
    """A connection of this process: where to, and its path; None where it was not steered."""

    kind: str
    target: str
    dport: int
    path: int | None


class ConnectionLog:
    """The connections that this process has opened over one protocol.

    Parameters
    ----------
    proto
        ``"tcp"``, or ``"udp"`` for RoCE.
    environment
        Where ``ARK_RUN_LOG`` stands; without it there are no connections here.
    """

    def __init__(self, proto: str, environment: Mapping[str, str] = os.environ) -> None:
        self._file = Path(environment.get(LOG, "") or os.devnull)
        self._is_tcp = proto == "tcp"

    def mark(self) -> int:
        """Where the log ends now."""
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    def since(self, mark: int) -> list[Opened]:
        """The connections opened since a mark, the oldest first."""
        try:
            with self._file.open("rb") as file:
                file.seek(mark)
                text = file.read(READ_MAX).decode(errors="replace")
        except OSError:
            return []
        found = (opened_by(line, os.getpid()) for line in text.splitlines())
        return [one for one in found if one is not None and (one.kind == "tcp") is self._is_tcp]

    def path_since(self, mark: int, *, but_port: int) -> int | None:
        """The path of the last connection opened since a mark, to another port than that; None if unknown."""
        found = [one for one in self.since(mark) if one.dport != but_port]
        return found[-1].path if found else None

    def paths_since(self, mark: int, count: int) -> tuple[int | None, ...]:
        """The paths of the connections since a mark to the one peer to which there are so many; else none."""
        peers: dict[tuple[str, int], list[int | None]] = defaultdict(list)
        for one in self.since(mark):
            peers[one.target, one.dport].append(one.path)
        fitting = [paths for paths in peers.values() if len(paths) == count]
        return tuple(fitting[0]) if len(fitting) == 1 else ()


def opened_by(line: str, pid: int) -> Opened | None:
    """What a line of the log says; None if it is of another process, or no such line."""
    facts = line.partition(" not steered: ")[0]
    fields = dict(part.split("=", 1) for part in facts.split() if "=" in part)
    path, dport = fields.get("path", ""), fields.get("dport", "")
    if fields.get("pid") != str(pid) or not (dport.isascii() and dport.isdecimal()):
        return None
    steered = path.isascii() and path.isdecimal()
    return Opened(
        fields.get("kind", ""), fields.get("target", ""), int(dport[:5]), int(path[:5]) if steered else None
    )


def lanes_to_make(
    *, dport: int, proto: str, client: Client | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """How many connections an engine should make to each peer; 1 where nobody tells which path they take."""
    if not environment.get(LOG):
        return 1
    wish = environment.get(LANES, "")
    if wish.isascii() and wish.isdecimal():
        return max(1, min(int(wish[:3]), LANES_MAX))
    return _paths_expected(default_client() if client is None else client, dport=dport, proto=proto)


def steering_over(proto: str, *, several: bool = True) -> Steering:
    """What asks the agent for an engine's transfers over ``"tcp"``, or ``"udp"`` for RoCE.

    ``several`` is whether the engine can have more than one connection to a peer.
    """
    dport = 0 if proto == "tcp" else ROCE_PORT  # TCP engines listen on ports of any number
    lanes = lanes_to_make(dport=dport, proto=proto) if several else 1
    return Steering(lanes, dport=dport, proto=proto)


def _paths_expected(client: Client, *, dport: int, proto: str) -> int:
    """How many connections to a peer are worth making: the most paths to any host, up to 16; else 1."""
    most = 1
    try:
        rows = client.status("peers").get("results")
        for row in rows[:PEERS_ASKED] if isinstance(rows, list) else []:
            with client.lanes(str(row["host"]), dport, proto=proto) as lanes:
                most = max(most, len(lanes))
    except ArkError:
        return 1
    return min(most, LANES_MAX)
