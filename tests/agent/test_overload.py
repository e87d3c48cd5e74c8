"""More than an agent can bear: queues are bounded, clients are answered first, and afterwards all agree."""

import socket
import time
from pathlib import Path

import pytest
from tests.agent.cohort import PATIENCE_S, Cohort, cohort

from ark.agent import transport as transport_module
from ark.agent.transport import UdpTransport
from ark.client.messages import VERSION, Acquire, Grant, Hello, Release, Welcome, frame, reply_frames
from ark.control import peer as peer_module
from ark.control.reports import Ignored

GB = 10**9
MANY = 1500
QUICK = '[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'


class Application:
    """A program that asks for everything before it reads an answer."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.frames = reply_frames()
        self.socket.sendall(frame(Hello(VERSION, "overload")))
        (welcome,) = self.read(1)
        assert isinstance(welcome, Welcome)

    def read(self, count: int) -> list[object]:
        replies: list[object] = []
        while len(replies) < count:
            replies += self.frames.feed(self.socket.recv(65_536))
        return replies

    def acquire(self, handles: range) -> list[object]:
        self.socket.sendall(b"".join(frame(Acquire(one, "h2", GB, 4791, 17)) for one in handles))
        return self.read(len(handles))

    def release(self, handles: range) -> None:
        self.socket.sendall(b"".join(frame(Release(one)) for one in handles))


def settled(made: Cohort) -> bool:
    return made.agree() and all(agent.controller.replica.heard == 2 for agent in made.agents.values())


@pytest.mark.slow
def test_a_burst_of_transfers_is_answered_whole_though_the_queue_of_datagrams_overflows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cohort(folder, 3, more=QUICK) as made:
        monkeypatch.setattr(transport_module, "QUEUE_MAX", 16)
        application = Application(folder / "h0.sock")
        handles = range(1, MANY + 1)
        replies = application.acquire(handles)
        assert [reply.kind for reply in replies if isinstance(reply, Grant)] == ["steered"] * MANY
        transport = made["h0"].transport
        assert isinstance(transport, UdpTransport)
        assert transport.queued <= 16
        made.until(lambda: len(made.rows("h1")) == MANY and settled(made))
        assert transport.counters.queue_full > 0
        application.release(handles)
        made.until(lambda: not made.rows("h1") and settled(made))
        assert isinstance(application.acquire(range(MANY + 1, MANY + 2))[0], Grant)
        application.socket.close()


@pytest.mark.slow
def test_a_peer_that_floods_is_cut_to_its_rate_and_clients_are_served_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_module, "DATAGRAMS_BURST_MAX", 100)
    monkeypatch.setattr(peer_module, "_TOKEN", 10**7)  # 100 datagrams a second
    with cohort(folder, 3, more=QUICK) as made:
        replica, flood = made["h0"].controller.replica, made["h1"]

        def storm() -> None:
            outbox = flood.controller.replica.outbox
            for _ in range(100):
                outbox.beat(time.monotonic_ns())
            flood.transport.send(outbox.take())

        application = Application(folder / "h0.sock")
        for handle in range(1, 11):
            made.call(storm)
            assert isinstance(application.acquire(range(handle, handle + 1))[0], Grant)
        made.until(lambda: replica.counters.ignored[Ignored.TOO_FAST] > 100)
        made.until(lambda: len(made.rows("h1")) == 10 and settled(made))
        application.socket.close()
        made.until(lambda: not made.rows("h1") and settled(made))
