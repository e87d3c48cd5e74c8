"""The Unix socket where applications ask: connections, frames, bounds. What is asked is the service's."""

import asyncio
import errno
import logging
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

from ark.agent.logs import log
from ark.client.messages import VERSION, Hello, Refusal, Reply, Request, Welcome, frame, request_frames
from ark.errors import ConfigError, Fault, PeerProtocolError

CONNECTIONS_MAX: Final = 1024
"""Processes served at once. Full: further ones are closed at once and counted; their transfers go on
without."""

REPLIES_AT_ONCE: Final = 16
"""Replies to requests that came together leave together, so many at most: the first waits below 2 ms."""

BACKLOG: Final = 1024
MODE: Final = 0o660
_CREDENTIALS: Final = struct.Struct("3i")


class Service(Protocol):
    """Answers requests."""

    def request(self, connection: "Connection", request: Request) -> None:
        """A request came; any answer goes to ``connection.reply``."""

    def gone(self, connection: "Connection") -> None:
        """The application has closed its socket, or has died."""


class Connection(asyncio.Protocol):
    """One application."""

    def __init__(self, server: "LocalServer") -> None:
        self._server = server
        self._frames = request_frames()
        self._transport: asyncio.Transport | None = None
        self._replies: list[bytes] = []
        self._gathering = False
        self.name = ""
        self.pid = 0
        self.uid = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """An application has connected."""
        transport = cast("asyncio.Transport", transport)  # uvloop's are of no common class
        self._transport = transport
        server = self._server
        if len(server.connections) >= CONNECTIONS_MAX:
            server.turned_away += 1
            transport.abort()
            return
        server.connections.add(self)
        peer = transport.get_extra_info("socket")
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.pid, self.uid, _ = _CREDENTIALS.unpack(credentials)

    def data_received(self, data: bytes) -> None:
        """Requests, or parts of them."""
        server = self._server
        try:
            requests = self._frames.feed(data)
            self._gathering = len(requests) > 1  # a lone one is answered before its news are sealed for peers
            for request in requests:
                server.requests += 1
                if self.name:
                    server.service.request(self, request)
                else:
                    self._greet(request)
        except PeerProtocolError as error:
            server.malformed += 1
            log(logging.WARNING, "a client was cut off", pid=self.pid, uid=self.uid, detail=str(error)[:200])
            self.close()
        finally:
            self._gathering = False
            self._write()

    def pause_writing(self) -> None:
        """The application does not read its replies: take no more of its requests."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        """The application has closed its socket, or has died."""
        self._transport = None
        if self in self._server.connections:
            self._server.connections.remove(self)
            self._server.service.gone(self)

    def reply(self, message: Reply) -> None:
        """Answer; an application that has gone needs none."""
        self._replies.append(frame(message))
        if not self._gathering or len(self._replies) >= REPLIES_AT_ONCE:
            self._write()

    def close(self) -> None:
        """End the connection once the replies are out."""
        self._write()
        if self._transport is not None:
            self._transport.close()

    def _write(self) -> None:
        replies, self._replies = self._replies, []
        if replies and self._transport is not None and not self._transport.is_closing():
            self._transport.write(replies[0] if len(replies) == 1 else b"".join(replies))

    def _greet(self, request: Request) -> None:
        if not isinstance(request, Hello):
            raise PeerProtocolError("a request before hello")
        if request.version != VERSION:
            self.reply(Refusal(0, f"version {request.version} of the local API; this agent has {VERSION}"))
            raise PeerProtocolError(f"version {request.version}")
        self.name = request.name or "unnamed"
        self.reply(self._server.welcome())


class LocalServer:
    """Listens on the Unix socket.

    Parameters
    ----------
    path, gid
        The socket, and the group that may use it (None: the agent's own).
    welcome
        Makes the answer to ``Hello``.

    Attributes
    ----------
    requests, malformed, turned_away
        Counts since the start.
    """

    def __init__(self, path: Path, gid: int | None, service: Service, welcome: Callable[[], Welcome]) -> None:
        self.path = path
        self.service = service
        self.welcome = welcome
        self.connections: set[Connection] = set()
        self.requests = 0
        self.malformed = 0
        self.turned_away = 0
        self._gid = gid
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Begin to listen.

        Raises
        ------
        ConfigError
            If the socket can't be made, or another agent listens there.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._bind(listening)
        except OSError as error:
            listening.close()
            raise ConfigError(
                Fault(str(self.path), f"can't be made: {error.strerror or error}; set api.socket")
            ) from None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: Connection(self), sock=listening, backlog=BACKLOG
        )

    async def stop(self) -> None:
        """Listen no more, and end all connections."""
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.close()
            self.path.unlink(missing_ok=True)

    def _bind(self, listening: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            if probe.connect_ex(str(self.path)) in {0, errno.EAGAIN}:  # of which one: too busy to accept
                raise OSError("another agent listens there")
        if self.path.exists() and not self.path.is_socket():
            raise OSError("there is a file of another kind")
        self.path.unlink(missing_ok=True)
        before = os.umask(0o777 & ~MODE)
        try:
            listening.bind(str(self.path))
        finally:
            os.umask(before)
        if self._gid is not None:
            os.chown(self.path, -1, self._gid)
