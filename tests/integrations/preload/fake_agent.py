"""An agent that a test plays: it answers as told, and keeps what it heard."""

import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ark.client.messages import (
    Acquire,
    Grant,
    Hello,
    Lane,
    Lanes,
    Release,
    Reply,
    Report,
    Request,
    Status,
    Welcome,
    frame,
    request_frames,
)
from ark.errors import PeerProtocolError
from ark.fabric.roce import flow_label_of_sport

PATIENCE_S = 30.0
Answer = Callable[["FakeAgent", Request], "bytes | None"]


class FakeAgent:
    """Listens until closed; each connection has a thread.

    Attributes
    ----------
    ports
        Source ports by path; each set of lanes gets the next of each path.
    heard
        All requests but hello, in order.
    connections
        How many there have been.
    """

    def __init__(self, path: Path, ports: dict[int, list[int]], answer: Answer) -> None:
        self.path = path
        self.ports = ports
        self.answer = answer
        self.heard: list[Request] = []
        self.connections = 0
        self.malformed = 0
        self.changed = threading.Condition()
        self.sets: dict[object, int] = defaultdict(int)
        self._open: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(128)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def of(self, kind: type) -> list[Request]:
        """What was heard of one kind."""
        with self.changed:
            return [request for request in self.heard if isinstance(request, kind)]

    def wait_for(self, condition: Callable[["FakeAgent"], object]) -> None:
        """Wait until something has been heard."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), PATIENCE_S), self.heard

    def close(self) -> None:
        """Die: the socket is gone, all connections end."""
        self.path.unlink(missing_ok=True)
        with self.changed:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            for one in self._open:
                one.shutdown(socket.SHUT_RDWR)
            self._open.clear()
        self._thread.join(PATIENCE_S)

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self._listening.accept()
            except OSError:
                return
            with self.changed:
                self._open.append(made)
                self.connections += 1
            threading.Thread(target=self._serve, args=(made,), daemon=True).start()

    def _serve(self, made: socket.socket) -> None:
        frames = request_frames()
        with made:
            while True:
                try:
                    data = made.recv(65_536)
                    requests = frames.feed(data)
                except OSError:
                    break
                except PeerProtocolError:
                    self.malformed += 1
                    break
                if not data:
                    break
                for request in requests:
                    self._take(made, request)
            with self.changed:
                if made in self._open:
                    self._open.remove(made)

    def _take(self, made: socket.socket, request: Request) -> None:
        with self.changed:
            reply = self.answer(self, request)
            if not isinstance(request, Hello):
                self.heard.append(request)
            self.changed.notify_all()
        if reply:
            try:
                made.sendall(reply)
            except OSError:
                return


def well(agent: FakeAgent, request: Request) -> bytes | None:
    """Answer as an agent does."""
    reply: Reply
    match request:
        case Hello():
            reply = Welcome(1, "h0", 0)
        case Lanes(target=target, dport=dport):
            number = agent.sets[target, dport]
            agent.sets[target, dport] += 1
            lanes = tuple(_lane(path, ports[number % len(ports)]) for path, ports in agent.ports.items())
            reply = Grant(request.handle, "lanes", lanes, "127.0.0.1", target)
        case Acquire():
            path = sum(isinstance(one, Acquire) for one in agent.heard) % len(agent.ports)
            reply = Grant(request.handle, "steered", (_lane(path, agent.ports[path][0]),), "127.0.0.1", "")
        case Status():
            reply = Report(request.handle, {"host": "h0"})
        case _:
            return None
    return frame(reply)


def _lane(path: int, port: int) -> Lane:
    return Lane(path, port, flow_label_of_sport(port) if port >= 0xC000 else 0)


@contextmanager
def agent(path: Path, ports: dict[int, list[int]], answer: Answer = well) -> Iterator[FakeAgent]:
    """A fake agent until the end of the block."""
    made = FakeAgent(path, ports, answer)
    try:
        yield made
    finally:
        if path.exists():
            made.close()
        assert made.malformed == 0


__all__ = ["Acquire", "FakeAgent", "Lanes", "Release", "agent", "well"]
