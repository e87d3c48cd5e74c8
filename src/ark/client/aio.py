"""The client for asyncio: one connection an event loop, with the same promises as the one for threads."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ark.client.blocking import RECONNECT_S, STATUS_TIMEOUT_S
from ark.client.held import Laned, Steered
from ark.client.messages import Grant, Reply
from ark.client.session import (
    RETRY_S,
    TIMEOUT_S,
    Assignment,
    Session,
    assignment,
    checked_size,
    peer,
    socket_path,
    table_of,
)
from ark.errors import PeerProtocolError


class _Connection(asyncio.Protocol):
    """One open socket; tells the client what comes and when it ends."""

    def __init__(self, client: "AsyncClient") -> None:
        self._client = client
        self.transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._client.received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        self._client.lost(self)


class AsyncClient:
    """An event loop's connection to the agent of its host.

    Parameters
    ----------
    path
        The agent's socket; by default that of ``ARK_SOCKET``, or ``/run/ark/agent.sock``.
    timeout_s
        How long to wait for an answer, beside the agent's hold.
    """

    def __init__(self, path: str | Path | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        self.session = Session()
        self._path = socket_path(path)
        self._timeout_s = timeout_s
        self._connection: _Connection | None = None
        self._welcomed: asyncio.Future[None] | None = None
        self._opening: asyncio.Task[bool] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Reply | None]] = {}
        self._retry_at = 0.0
        self._closed = False

    def transfer(
        self,
        dst: str,
        nbytes: int,
        *,
        dport: int,
        proto: str = "udp",
        src: str | None = None,
        nic: str | int | None = None,
        ahead: bool = False,
    ) -> "AsyncTransfer":
        """A transfer for ``async with``; arguments as of ``ark.transfer``."""
        to, size_bytes = peer(dst, dport, proto, src, nic), checked_size("nbytes", nbytes)
        return AsyncTransfer(self, lambda: self.session.acquire(to, size_bytes, ahead=ahead))

    def lanes(
        self,
        dst: str,
        dport: int,
        *,
        proto: str = "udp",
        src: str | None = None,
        nic: str | int | None = None,
    ) -> "AsyncLanes":
        """Lanes for ``async with``; arguments as of ``ark.lanes``."""
        to = peer(dst, dport, proto, src, nic)
        return AsyncLanes(self, lambda: self.session.lanes(to))

    async def status(self, question: str = "summary", argument: int = 0) -> dict[str, object]:
        """A table of what the agent knows; ``AgentUnavailable`` if none answers."""
        _, reply = await self.ask(lambda: self.session.status(question, argument), timeout_s=STATUS_TIMEOUT_S)
        return table_of(reply, self._path)

    async def close(self) -> None:
        """End the connection; the agent then releases everything that was acquired over it."""
        self._closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            with suppress(asyncio.CancelledError):
                await self._reconnecting
        if self._connection is not None and self._connection.transport is not None:
            self._connection.transport.close()

    async def ask(
        self,
        make: Callable[[], tuple[int, bytes]],
        *,
        timeout_s: float | None = None,
        keep: bool = False,
    ) -> tuple[int, Reply | None]:
        """Send a request that ``make`` takes from the session, and wait: its handle, and the reply or None.

        Nothing is asked where ``make`` has nothing to send: another thread or task has ended the transfer.

        Without a reply what was asked for is given up, or (``keep``) stays as it was.
        """
        loop = asyncio.get_running_loop()
        if timeout_s is None and loop.time() < self._retry_at:
            return 0, None
        if not await self._connect(self._timeout_s if timeout_s is None else timeout_s):
            return 0, None
        welcome = self.session.welcome
        hold_s = 0 if welcome is None else welcome.hold_ns * 1e-9
        handle, data = make()
        if not data:
            return handle, None
        answer = self._waiting[handle] = loop.create_future()
        reply = None
        try:
            self._send(data)
            async with asyncio.timeout((self._timeout_s if timeout_s is None else timeout_s) + hold_s):
                reply = await answer
        except TimeoutError:
            self._retry_at = loop.time() + RETRY_S
        finally:
            self._waiting.pop(handle, None)
            if reply is None and keep:
                self.session.give_up(handle)
            elif reply is None:
                self._send(self.session.release(handle))
        return handle, reply

    def tell(self, handle: int) -> None:
        """Release a transfer or lanes."""
        self._send(self.session.release(handle))

    def received(self, connection: _Connection, data: bytes) -> None:
        """Bytes came from the agent."""
        if connection is not self._connection:
            return
        try:
            answers = self.session.receive(data)
        except PeerProtocolError:
            self.lost(connection)
            return
        self._retry_at = 0.0
        for handle, reply in answers:
            answer = self._waiting.get(handle)
            if answer is not None and not answer.done():
                answer.set_result(reply)
        if self.session.welcome is not None and self._welcomed is not None and not self._welcomed.done():
            self._welcomed.set_result(None)

    def lost(self, connection: _Connection) -> None:
        """A connection is over: nobody will be answered on it."""
        if connection is not self._connection:
            return
        self._connection = None
        if connection.transport is not None:
            connection.transport.close()
        for handle in self.session.lost():
            answer = self._waiting.get(handle)
            if answer is not None and not answer.done():
                answer.set_result(None)
        if self._welcomed is not None and not self._welcomed.done():
            self._welcomed.cancel()
        if self._reconnecting is None and len(self.session) and not self._closed:
            self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    def _send(self, data: bytes) -> None:
        if data and self._connection is not None and self._connection.transport is not None:
            self._connection.transport.write(data)

    async def _connect(self, timeout_s: float) -> bool:
        """Whether there is a connection; several callers wait for one attempt."""
        if self._connection is not None and self.session.welcome is not None:
            return True
        if self._closed or self._reconnecting is not None:
            return False
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open(timeout_s))
        return await asyncio.shield(self._opening)

    async def _open(self, timeout_s: float) -> bool:
        """Connect, be welcomed, and register what runs."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                self._welcomed = loop.create_future()
                _, connection = await loop.create_unix_connection(lambda: _Connection(self), self._path)
                self._connection = connection
                self._send(self.session.connect())
                await self._welcomed
        except (OSError, asyncio.CancelledError):  # of which TimeoutError is one
            connection_now, self._connection = self._connection, None
            if connection_now is not None and connection_now.transport is not None:
                connection_now.transport.close()
            self._retry_at = loop.time() + RETRY_S
            return False
        finally:
            self._opening = None
        self._send(self.session.resume())
        return True

    async def _reconnect(self) -> None:
        wait_s = RECONNECT_S
        try:
            while len(self.session) and not self._closed and not await self._open(self._timeout_s):
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, RETRY_S)
            self._retry_at = 0.0
        finally:
            self._reconnecting = None


class AsyncTransfer(Steered):
    """A transfer for ``async with``: acquired at its beginning, released at its end."""

    def __init__(self, client: AsyncClient, acquire: Callable[[], tuple[int, bytes]]) -> None:
        super().__init__(client.session, 0, Assignment((), "none", "not asked for yet", "", ""))
        self._client = client
        self._acquire = acquire

    async def __aenter__(self) -> Self:
        self._handle, reply = await self._client.ask(self._acquire)
        self.assignment = assignment(reply)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        handle, self._handle = self._handle, 0
        self._client.tell(handle)

    async def start(self) -> None:
        """A transfer reserved ahead begins: where it goes is fixed from now to its next segment end."""
        await self._ask(lambda: (self._handle, self._session.start(self._handle)))

    async def move(self, bytes_left: int) -> bool:
        """A segment has been sent and so much is left: whether the rest should go elsewhere."""
        left = checked_size("bytes_left", bytes_left)
        before = self.lanes
        await self._ask(lambda: (self._handle, self._session.segment(self._handle, left)))
        return self.lanes != before

    async def _ask(self, make: Callable[[], tuple[int, bytes]]) -> None:
        if self._session.knows(self._handle):
            _, reply = await self._client.ask(make, keep=True)
            if isinstance(reply, Grant):
                self.assignment = assignment(reply)


class AsyncLanes(Laned):
    """Lanes for ``async with``: acquired at its beginning, released at its end."""

    def __init__(self, client: AsyncClient, acquire: Callable[[], tuple[int, bytes]]) -> None:
        super().__init__(client.session, 0, Assignment((), "none", "not asked for yet", "", ""))
        self._client = client
        self._acquire = acquire

    async def __aenter__(self) -> Self:
        self._handle, reply = await self._client.ask(self._acquire)
        self.assignment = assignment(reply)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        handle, self._handle = self._handle, 0
        self._client.tell(handle)
