"""Ready TCP connections to one peer, one a path, of which each transfer takes the one that ARK chose.

Connections are made ahead from the ports of ``ark.lanes``; a transfer asks ``ark.transfer`` and borrows the
connection of its path. If that one is busy with another transfer, a further one is made over the same path
and kept. Without a preference any ready connection serves.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from ark.client import Client, Transfer, default_client
from ark.integrations.tcp import connect, source_port

READY_MAX: Final = 16
"""Idle connections kept for a path, which has 16 ports. More: closed when their transfer ends."""

PORTS_A_PATH: Final = 4
"""Ports asked for each path: if the first is in use on this host, the next is tried."""


class Borrowed(NamedTuple):
    """A connection for the time of one transfer, and what ARK said about that."""

    socket: socket.socket
    transfer: Transfer


class TcpLanes:
    """Connections to one peer; threads may share them.

    Parameters
    ----------
    target
        Name or address of the peer, as the fabric file has it, and the port where it listens.
    address
        Where to connect to; by default the address that the agent says, else the name.
    source
        NIC or address to send from; "" leaves it to the agent.
    client
        The connection to the agent; by default that of the process.
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        address: str = "",
        source: str = "",
        client: Client | None = None,
    ) -> None:
        self._name, self._dport = target
        self._client = default_client() if client is None else client
        self._source = source or None
        self._sets = [
            self._client.lanes(self._name, self._dport, proto="tcp", src=self._source)
            for _ in range(PORTS_A_PATH)
        ]
        self._address = address or self._sets[0].target_address or self._name
        self._lock = threading.Lock()
        self._idle: list[tuple[int | None, socket.socket]] = []  # the longest idle first
        self._closed = False

    @property
    def ready(self) -> list[int | None]:
        """The path of each idle connection; None where it is not known."""
        with self._lock:
            return [path for path, _ in self._idle]

    def open(self) -> Self:
        """Make one connection a path, or a single one where no path is known, so that no transfer waits.

        Raises
        ------
        OSError
            If the peer does not accept.
        """
        paths: list[int | None] = [lane.path for lane in self._sets[0]]
        for path in paths or [None]:
            self._keep(*self._connect(path, ()))
        return self

    @contextmanager
    def transfer(self, size_bytes: int) -> Iterator[Borrowed]:
        """Borrow a connection for a transfer; after an exception it is closed, as nobody knows its state.

        Raises
        ------
        OSError
            If a connection had to be made, and the peer does not accept.
        """
        with self._client.transfer(
            self._name, size_bytes, dport=self._dport, proto="tcp", src=self._source
        ) as chosen:
            path, made = self._take(chosen.path) or self._connect(
                chosen.path, () if chosen.source_port is None else (chosen.source_port,)
            )
            try:
                yield Borrowed(made, chosen)
            except BaseException:
                made.close()
                raise
            self._keep(path, made)

    def close(self) -> None:
        """Close what is idle now, and each borrowed connection when its transfer ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for _, made in idle:
            made.close()
        for lanes in self._sets:
            lanes.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, wanted: int | None) -> tuple[int | None, socket.socket] | None:
        """The connection that has been idle longest, of a path if one is wanted."""
        while True:
            with self._lock:
                fitting = [pair for pair in self._idle if wanted in {None, pair[0]}]
                if not fitting:
                    return None
                self._idle.remove(fitting[0])
            path, made = fitting[0]
            if _alive(made):
                return path, made
            made.close()

    def _keep(self, path: int | None, made: socket.socket) -> None:
        with self._lock:
            if not self._closed and sum(idle == path for idle, _ in self._idle) < READY_MAX:
                self._idle.append((path, made))
                return
        made.close()

    def _connect(self, path: int | None, first: tuple[int, ...]) -> tuple[int | None, socket.socket]:
        """A new connection, and the path it takes: None if no port of the wanted one was free."""
        lanes = (lane for lanes in self._sets for lane in lanes)
        more = (lane.source_port for lane in lanes if lane.path == path and lane.source_port)
        ports = tuple(dict.fromkeys((*first, *more)))
        source = self._sets[0].source_address or ""
        made = connect((self._address, self._dport), source=source, ports=ports)
        return path if source_port(made) in ports else None, made


def _alive(made: socket.socket) -> bool:
    """Whether the other side still holds an idle connection."""
    try:
        return bool(made.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False
