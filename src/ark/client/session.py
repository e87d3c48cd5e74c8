"""The client's side of the local API without sockets: what it has asked, and what must be asked again.

Both clients, the one for threads and the one for asyncio, are shells around a :class:`Session`. It outlives
connections: after the agent's restart ``resume`` registers everything that is still running once more, on the
same paths.
"""

import os
import sys
from itertools import count
from operator import index
from pathlib import Path
from typing import Final, NamedTuple, SupportsIndex

from msgspec.structs import replace

from ark.client.messages import (
    BYTES_MAX,
    HANDLE_MAX,
    NAME_MAX,
    QUESTION_MAX,
    TCP,
    UDP,
    VERSION,
    Acquire,
    Grant,
    Hello,
    Lane,
    Lanes,
    Refusal,
    Release,
    Reply,
    Report,
    Resume,
    Segment,
    Start,
    Status,
    Welcome,
    frame,
    reply_frames,
)
from ark.errors import AgentUnavailable, LocalProtocolError

SOCKET: Final = "/run/ark/agent.sock"
"""Where the agent listens by default."""

TIMEOUT_S: Final = 0.02
"""How long an answer may take, beside the agent's hold, before the transfer goes on without."""

RETRY_S: Final = 0.25
"""How long an agent that is not there, or does not answer, is not asked again."""

PROTOCOLS: Final = {"tcp": TCP, "udp": UDP}
NO_AGENT: Final = "no agent answers"


def socket_path(path: str | Path | None) -> str:
    """The socket to use: the one given, that of the environment variable ``ARK_SOCKET``, or the default."""
    return str(path or os.environ.get("ARK_SOCKET") or SOCKET)


class Peer(NamedTuple):
    """Where to, and from which NIC: what transfers and lanes have in common."""

    target: str
    dport: int
    proto: int
    nic: str


def peer(target: str, dport: int, proto: str, src: str | None, nic: str | int | None) -> Peer:
    """The checked arguments of a call.

    Raises
    ------
    LocalProtocolError
        If one is out of its bounds.
    """
    faults = []
    port = _whole(dport)
    number = next((number for name, number in PROTOCOLS.items() if name == proto), None)
    if not (target and _is_name(target)):
        faults.append(f"dst {target!r:.60}: give a host, a NIC or an address")
    if port is None or not 0 <= port <= 65_535:
        faults.append(f"dport {dport!r:.60}: allowed are 0 to 65535")
    if number is None:
        faults.append(f'proto {proto!r:.60}: allowed are "udp" and "tcp"')
    if src is not None and nic is not None:
        faults.append("src and nic: give one of them")
    named, card = ("src", src) if nic is None else ("nic", nic)
    card = "" if card is None else str(card)
    if not _is_name(card):
        faults.append(f"{named} {card!r:.60}: give a NIC of this host, or its address")
    if faults or port is None or number is None:
        raise LocalProtocolError("; ".join(faults))
    return Peer(target, port, number, card)


def _is_name(text: object) -> bool:
    """Whether the agent can read a name: what it can't would end the connection for all that runs on it."""
    if not isinstance(text, str) or len(text) > NAME_MAX:
        return False
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _whole(number: SupportsIndex) -> int | None:
    """A whole number of any type, NumPy's too, as a plain one; None if it is none."""
    try:
        return int(index(number))
    except TypeError:
        return None


def checked_size(name: str, size_bytes: int) -> int:
    """A whole number of bytes within bounds.

    Raises
    ------
    LocalProtocolError
        If it is not.
    """
    checked = _whole(size_bytes)
    if checked is None or not 0 <= checked <= BYTES_MAX:
        raise LocalProtocolError(f"{name} {size_bytes!r:.60}: allowed are 0 to {BYTES_MAX} whole bytes")
    return checked


class Session:
    """What one application has asked its agent for.

    Attributes
    ----------
    welcome
        What the agent said of itself when the current connection began; None before that.
    """

    def __init__(self) -> None:
        self.welcome: Welcome | None = None
        self._handles = count(1)
        self._open: dict[int, Acquire | Resume | Lanes] = {}
        self._waiting: set[int] = set()
        self._frames = reply_frames()

    def __len__(self) -> int:
        """How many transfers and sets of lanes a new connection would have to register again."""
        return len(self._open)

    def connect(self) -> bytes:
        """Begin a connection: the first bytes to send. ``welcome`` is set once the agent has answered."""
        self.welcome = None
        self._frames = reply_frames()
        program = Path((sys.argv or [""])[0] or "python").name.encode(errors="replace").decode()
        return frame(Hello(VERSION, f"{program[:200]}:{os.getpid()}"))

    def lost(self) -> list[int]:
        """The connection is gone: the handles that will get no answer."""
        self.welcome = None
        unanswered, self._waiting = self._waiting, set()
        return sorted(unanswered)

    def resume(self) -> bytes:
        """What to send once a later connection is welcome: all that runs."""
        return b"".join(frame(message) for message in self._open.values())

    def acquire(self, to: Peer, size_bytes: int, *, ahead: bool) -> tuple[int, bytes]:
        """Ask for the paths of a transfer: its handle, and the bytes to send."""
        handle = next(self._handles)
        message = Acquire(handle, to.target, size_bytes, to.dport, to.proto, to.nic, ahead)
        self._open[handle] = message if ahead else _running(message)
        self._waiting.add(handle)
        return handle, frame(message)

    def lanes(self, to: Peer) -> tuple[int, bytes]:
        """Ask for a source port for each path."""
        handle = next(self._handles)
        message = self._open[handle] = Lanes(handle, to.target, to.dport, to.proto, to.nic)
        self._waiting.add(handle)
        return handle, frame(message)

    def start(self, handle: int) -> bytes:
        """Say that a transfer reserved ahead begins, and ask where it goes; nothing to send if it is over."""
        pending = self._open.get(handle)
        if pending is None:
            return b""
        self._ask(handle)
        if isinstance(pending, Acquire):
            self._open[handle] = _running(pending)
        return frame(Start(handle))

    def segment(self, handle: int, bytes_left: int) -> bytes:
        """Say what is left of a transfer, and ask where that goes; nothing to send if it is over."""
        running = self._open.get(handle)
        if running is None:
            return b""
        if not isinstance(running, Resume):
            raise LocalProtocolError("a transfer that was reserved ahead moves only after start()")
        self._ask(handle)
        self._open[handle] = replace(running, size_bytes=bytes_left)
        return frame(Segment(handle, bytes_left))

    def status(self, question: str, argument: int) -> tuple[int, bytes]:
        """Ask for a table of what the agent knows."""
        about = _whole(argument)
        if about is None or not 0 <= about <= HANDLE_MAX or len(question) > QUESTION_MAX:
            raise LocalProtocolError(
                f"status {question!r:.60} about {argument!r:.60}: allowed are {QUESTION_MAX} characters, "
                f"and 0 to {HANDLE_MAX}"
            )
        handle = next(self._handles)
        self._waiting.add(handle)
        return handle, frame(Status(handle, question, about))

    def release(self, handle: int) -> bytes:
        """End a transfer or a set of lanes; nothing to send if the agent does not know it."""
        self._waiting.discard(handle)
        return frame(Release(handle)) if self._open.pop(handle, None) is not None else b""

    def give_up(self, handle: int) -> None:
        """Wait no longer for an answer about something that goes on."""
        self._waiting.discard(handle)

    def knows(self, handle: int) -> bool:
        """Whether a transfer is registered; one that got no answer is not."""
        return handle in self._open

    def receive(self, data: bytes) -> list[tuple[int, Reply]]:
        """The answers in what the agent sent, by handle; those that nobody waits for are left out.

        Raises
        ------
        PeerProtocolError
            If the bytes are no messages.
        """
        answers: list[tuple[int, Reply]] = []
        for message in self._frames.feed(data):
            if isinstance(message, Welcome):
                self.welcome = message
                continue
            handle = message.handle
            if isinstance(message, Grant):
                self._keep(message)
            elif isinstance(message, Refusal):
                self._open.pop(handle, None)
            if handle in self._waiting:
                self._waiting.remove(handle)
                answers.append((handle, message))
        return answers

    def _ask(self, handle: int) -> None:
        if handle in self._waiting:
            raise LocalProtocolError("another thread waits for an answer about this transfer")
        self._waiting.add(handle)

    def _keep(self, grant: Grant) -> None:
        """Remember the lanes, so that a new agent can be told."""
        running = self._open.get(grant.handle)
        if isinstance(running, Resume):
            self._open[grant.handle] = replace(running, lanes=grant.lanes)
        elif isinstance(running, Lanes):
            self._open[grant.handle] = replace(running, taken=grant.lanes)


def _running(message: Acquire) -> Resume:
    """How a transfer will be registered again."""
    return Resume(
        message.handle, message.target, message.size_bytes, message.dport, message.proto, message.nic, ()
    )


class Assignment(NamedTuple):
    """An answer as applications see it; without lanes there is no preference, and ``reason`` says why."""

    lanes: tuple[Lane, ...]
    kind: str
    reason: str
    source: str
    target: str


def assignment(reply: Reply | None) -> Assignment:
    """What a reply, or none, means for a transfer."""
    if isinstance(reply, Grant):
        return Assignment(reply.lanes, reply.kind, reply.reason, reply.source, reply.target)
    reason = reply.reason if isinstance(reply, Refusal) else NO_AGENT
    return Assignment((), "none", reason, "", "")


def table_of(reply: Reply | None, path: str) -> dict[str, object]:
    """The table that a status request asked for.

    Raises
    ------
    AgentUnavailable
        If there is none.
    """
    if isinstance(reply, Report):
        return reply.table
    raise AgentUnavailable(reply.reason if isinstance(reply, Refusal) else f"no agent answers at {path}")
