"""The client for threads: one connection a process, shared by all of them, and the transfers on it.

Nothing here can keep a transfer from going on: without an agent, or with one that does not answer in time,
the answer is "no preference". Whichever thread waits for an answer reads for all that wait; a thread of the
client's own only watches for the connection's end, reconnects, and registers what still runs.
"""

import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

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

UNSENT_MAX: Final = 2**20
"""Bytes that wait because the agent does not read. More: the connection is given up."""

RECONNECT_S: Final = 0.02
"""First wait before a lost agent is looked for again; doubled each time up to ``RETRY_S``."""

STATUS_TIMEOUT_S: Final = 5.0
_BLOCK: Final = 65_536
_HANG_UP: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class Connection:
    """One open socket. Only the watcher closes it; others end it by ``end``, which wakes the watcher."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self._unsent = bytearray()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._reading = select.poll()
        self._reading.register(self.socket, select.POLLIN)

    def send(self, data: bytes) -> None:
        """Send; what the agent does not take now is kept, and the watcher sends it as soon as that is
        possible."""
        if not self._unsent:
            with suppress(BlockingIOError):
                data = data[self.socket.send(data) :]
            if not data:
                return
        self._unsent += data
        if len(self._unsent) > UNSENT_MAX:
            raise PeerProtocolError("the agent does not read")
        os.eventfd_write(self._wake, 1)

    def flush(self) -> None:
        """Send what was kept."""
        with suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]

    def read(self, timeout_s: float) -> bytes | None:
        """What has come; None if nothing does in time, no bytes if the agent is gone."""
        try:
            if not self._reading.poll(max(0.0, timeout_s) * 1000):
                return None
            return self.socket.recv(_BLOCK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def end(self) -> None:
        """Let both sides know that it is over."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the socket of this process."""
        self.socket.close()
        os.close(self._wake)

    def watch(self, lock: threading.Condition) -> None:
        """Send what was kept; return when either side has ended the connection."""
        watching = select.poll()
        watching.register(self._wake, select.POLLIN)
        while True:
            watching.register(self.socket, _HANG_UP | (select.POLLOUT if self._unsent else 0))
            happened = dict(watching.poll())
            if happened.get(self.socket.fileno(), 0) & _HANG_UP:
                return
            with lock:
                if self._wake in happened:
                    os.eventfd_read(self._wake)
                try:
                    self.flush()
                except OSError:
                    return


class Client:
    """A process's connection to the agent of its host; threads and forks may share it.

    Parameters
    ----------
    path
        The agent's socket; by default that of ``ARK_SOCKET``, or ``/run/ark/agent.sock``.
    timeout_s
        How long to wait for an answer, beside the agent's hold.
    """

    def __init__(self, path: str | Path | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        self._path = socket_path(path)
        self._timeout_s = timeout_s
        self._begin()
        _clients.add(self)

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self.session = Session()
        self._connection: Connection | None = None
        self._answers: dict[int, Reply | None] = {}
        self._reading = False
        self._retry_at = 0.0
        self._watcher: threading.Thread | None = None
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
    ) -> "Transfer":
        """Reserve a path for a transfer that starts now (or, ``ahead``, when ``start`` says so).

        Parameters
        ----------
        dst
            Name or address of the host or NIC that receives.
        nbytes
            Size of the transfer.
        dport, proto
            Destination port, ``"udp"`` (RoCE too) or ``"tcp"``.
        src, nic
            The NIC that sends, by its address, or by its name or number; by default the agent's choice.

        Raises
        ------
        LocalProtocolError
            If an argument is out of its bounds.
        """
        to, size_bytes = peer(dst, dport, proto, src, nic), checked_size("nbytes", nbytes)
        handle, reply = self.ask(lambda: self.session.acquire(to, size_bytes, ahead=ahead))
        return Transfer(self, self.session, handle, assignment(reply))

    def lanes(
        self,
        dst: str,
        dport: int,
        *,
        proto: str = "udp",
        src: str | None = None,
        nic: str | int | None = None,
    ) -> "LaneSet":
        """One source port for each path to ``dst``, for connections made ahead; else as ``transfer``."""
        to = peer(dst, dport, proto, src, nic)
        handle, reply = self.ask(lambda: self.session.lanes(to))
        return LaneSet(self, self.session, handle, assignment(reply))

    def status(self, question: str = "summary", argument: int = 0) -> dict[str, object]:
        """A table of what the agent knows, for people and their tools.

        Raises
        ------
        AgentUnavailable
            If no agent answers, or it does not know the question.
        """
        _, reply = self.ask(lambda: self.session.status(question, argument), timeout_s=STATUS_TIMEOUT_S)
        return table_of(reply, self._path)

    def close(self) -> None:
        """End the connection; the agent then releases everything that was acquired over it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            if self._connection is not None:
                self._connection.end()

    def ask(
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
        deadline = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        with self._changed:
            if not self._connect(deadline, patient=timeout_s is not None):
                return 0, None
            welcome = self.session.welcome
            hold_s = 0 if welcome is None else welcome.hold_ns * 1e-9
            handle, data = make()
            if not data:
                return handle, None
            reply = None
            try:
                if self._send(data):
                    reply = self._wait(handle, deadline + hold_s)
            finally:
                if reply is None and not keep:
                    self._send(self.session.release(handle))
                elif reply is None:
                    self.session.give_up(handle)
            return handle, reply

    def tell(self, session: Session, handle: int) -> None:
        """Release a transfer or lanes of ``session``; nothing happens in a process forked since."""
        with self._changed:
            if session is self.session:
                self._send(session.release(handle))

    def _send(self, data: bytes) -> bool:
        connection = self._connection
        if connection is None:
            return False
        try:
            if data:
                connection.send(data)
        except (OSError, PeerProtocolError):
            self._lose(connection)
            return False
        return True

    def _connect(self, deadline: float, *, patient: bool) -> bool:
        """Whether there is a connection that answers; makes one where none is being looked for."""
        if not patient and time.monotonic() < self._retry_at:
            return False
        if self._connection is not None:
            return True
        if self._watcher is not None or self._closed:
            return False
        connection = self._open(deadline)
        if connection is None:
            return False
        self._watcher = threading.Thread(
            target=self._watch, args=(connection,), name="ark-client", daemon=True
        )
        self._watcher.start()
        return True

    def _open(self, deadline: float) -> Connection | None:
        """Connect, be welcomed, and register what runs; None if that fails."""
        try:
            connection = Connection(self._path)
        except OSError:
            self._retry_at = time.monotonic() + RETRY_S
            return None
        try:
            connection.send(self.session.connect())
            self._be_welcomed(connection, deadline)
            connection.send(self.session.resume())
        except (OSError, PeerProtocolError):
            connection.close()
            self._retry_at = time.monotonic() + RETRY_S
            return None
        self._retry_at = 0.0
        self._connection = connection
        return connection

    def _be_welcomed(self, connection: Connection, deadline: float) -> None:
        while self.session.welcome is None:
            data = connection.read(deadline - time.monotonic())
            if not data:
                raise PeerProtocolError("the agent gives no welcome")
            self.session.receive(data)

    def _wait(self, handle: int, deadline: float) -> Reply | None:
        """The reply, None if it does not come in time; reads for all threads if none does."""
        while handle not in self._answers:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                self._retry_at = time.monotonic() + RETRY_S
                return None
            if self._reading:
                self._changed.wait(left_s)
                continue
            connection = self._connection
            if connection is None:
                return None
            self._reading = True
            self._changed.release()
            try:
                data = connection.read(left_s)
            finally:
                self._changed.acquire()
                self._reading = False
            self._take(connection, data)
        return self._answers.pop(handle)

    def _take(self, connection: Connection, data: bytes | None) -> None:
        try:
            if data == b"":
                self._lose(connection)
            elif data is not None:
                self._answers.update(self.session.receive(data))
                self._retry_at = 0.0
        except PeerProtocolError:
            self._lose(connection)
        self._changed.notify_all()

    def _lose(self, connection: Connection) -> None:
        """A connection is over: nobody will be answered on it."""
        connection.end()
        if connection is self._connection:
            self._connection = None
            self._answers.update(dict.fromkeys(self.session.lost()))
            self._changed.notify_all()

    def _watch(self, connection: Connection) -> None:
        """Wait for the connection's end, and reconnect as long as something runs."""
        found: Connection | None = connection
        while found is not None:
            found.watch(self._changed)
            with self._changed:
                self._lose(found)
                found.close()
                found = self._reconnect()

    def _reconnect(self) -> Connection | None:
        wait_s = RECONNECT_S
        while len(self.session) and not self._closed:
            found = self._open(time.monotonic() + self._timeout_s)
            if found is not None:
                return found
            self._changed.wait_for(lambda: self._closed, wait_s)
            wait_s = min(2 * wait_s, RETRY_S)
        self._watcher = None
        return None

    def forget(self) -> None:
        """In a forked child: leave the parent's connection and transfers to the parent."""
        connection = self._connection
        self._begin()
        if connection is not None:
            connection.close()


class Releasing:
    """A ``with`` block that ends by ``release``."""

    def release(self) -> None:
        """Give it back."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class Transfer(Steered, Releasing):
    """A transfer until the end of its ``with`` block, or until ``release``, or until the process ends."""

    def __init__(self, client: Client, session: Session, handle: int, given: Assignment) -> None:
        super().__init__(session, handle, given)
        self._client = client

    def start(self) -> None:
        """A transfer reserved ahead begins: where it goes is fixed from now to its next segment end."""
        self._ask(lambda: (self._handle, self._session.start(self._handle)))

    def move(self, bytes_left: int) -> bool:
        """A segment has been sent and so much is left: whether the rest should go elsewhere."""
        left = checked_size("bytes_left", bytes_left)
        before = self.lanes
        self._ask(lambda: (self._handle, self._session.segment(self._handle, left)))
        return self.lanes != before

    def release(self) -> None:
        """The transfer is over; once is enough."""
        handle, self._handle = self._handle, 0
        self._client.tell(self._session, handle)

    def _ask(self, make: Callable[[], tuple[int, bytes]]) -> None:
        """Ask about this transfer; without an answer all stays as it is."""
        if self._client.session is self._session and self._session.knows(self._handle):
            _, reply = self._client.ask(make, keep=True)
            if isinstance(reply, Grant):
                self.assignment = assignment(reply)


class LaneSet(Laned, Releasing):
    """Lanes until the end of their ``with`` block, or until ``release``, or until the process ends."""

    def __init__(self, client: Client, session: Session, handle: int, given: Assignment) -> None:
        super().__init__(session, handle, given)
        self._client = client

    def release(self) -> None:
        """Let others have the ports; once is enough."""
        handle, self._handle = self._handle, 0
        self._client.tell(self._session, handle)


_clients: Final["weakref.WeakSet[Client]"] = weakref.WeakSet()


def _forget_all() -> None:
    for client in list(_clients):
        client.forget()


os.register_at_fork(after_in_child=_forget_all)
