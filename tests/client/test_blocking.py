"""The client against agents that answer, answer too late, or die."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ark
from ark.client import Client
from ark.client import blocking as blocking_module
from ark.client.messages import (
    Frames,
    Grant,
    Hello,
    Lane,
    Refusal,
    Release,
    Request,
    Welcome,
    frame,
    request_frames,
)
from ark.errors import AgentUnavailable, LocalProtocolError

HEAVY = ("numpy", "asyncio", "rich", "cyclopts", "prometheus_client", "ark.control", "ark.fabric")
PATIENCE_S = 30.0


class ScriptedAgent:
    """A socket on which a test plays the agent, message by message."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()
        self.listening.settimeout(PATIENCE_S)
        self.frames: Frames[Request] = request_frames()
        self.heard: list[Request] = []
        self.connection: socket.socket | None = None

    def accept(self) -> None:
        self.connection, _ = self.listening.accept()
        self.connection.settimeout(PATIENCE_S)
        self.frames, self.heard = request_frames(), []
        assert isinstance(self.next(), Hello)
        self.say(frame(Welcome(1, "h0", 0)))

    def next(self) -> Request:
        assert self.connection is not None
        while not self.heard:
            data = self.connection.recv(65_536)
            assert data, "the client has gone"
            self.heard += self.frames.feed(data)
        return self.heard.pop(0)

    def say(self, data: bytes) -> None:
        assert self.connection is not None
        self.connection.sendall(data)

    def close(self) -> None:
        for one in (self.connection, self.listening):
            if one is not None:
                one.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[ScriptedAgent]:
    made = ScriptedAgent(tmp_path / "agent.sock")
    yield made
    made.close()


def in_thread(work: "object") -> threading.Thread:
    assert callable(work)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_an_agent_that_does_not_answer_costs_its_timeout_once(
    agent: ScriptedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking_module, "RETRY_S", 1000.0)
    client = Client(agent.path)
    assert all(client.transfer("h2", 1, dport=1).path is None for _ in range(100))
    agent.listening.settimeout(0)
    agent.listening.accept()[0].close()
    with pytest.raises(BlockingIOError):
        agent.listening.accept()
    client.close()


def test_an_answer_too_late_is_given_back(agent: ScriptedAgent) -> None:
    client = Client(agent.path, timeout_s=0.05)
    thread = in_thread(agent.accept)
    client.transfer("h2", 1, dport=1)
    thread.join(PATIENCE_S)
    first = agent.next()
    assert agent.next() == Release(first.handle)  # type: ignore[union-attr]
    client.close()


def test_running_transfers_are_registered_with_the_next_agent(agent: ScriptedAgent) -> None:
    client = Client(agent.path, timeout_s=PATIENCE_S)

    def first_life() -> None:
        agent.accept()
        request = agent.next()
        agent.say(frame(Grant(request.handle, "steered", (Lane(2, 50_000, 1),))))  # type: ignore[union-attr]

    thread = in_thread(first_life)
    transfer = client.transfer("h2", 5, dport=1)
    thread.join(PATIENCE_S)
    assert (transfer.path, transfer.source_port, transfer.flow_label) == (2, 50_000, 1)
    assert agent.connection is not None
    agent.connection.close()
    agent.accept()
    resumed = agent.next()
    assert resumed.lanes == (Lane(2, 50_000, 1),)  # type: ignore[union-attr]
    transfer.release()
    assert agent.next() == Release(resumed.handle)  # type: ignore[union-attr]
    client.close()


def test_garbage_from_the_agent_ends_the_connection_not_the_program(agent: ScriptedAgent) -> None:
    client = Client(agent.path, timeout_s=PATIENCE_S)

    def life() -> None:
        agent.accept()
        agent.next()
        agent.say(b"\xff" * 100)

    thread = in_thread(life)
    assert client.transfer("h2", 1, dport=1).reason == "no agent answers"
    thread.join(PATIENCE_S)
    client.close()


def connected(client: Client) -> bool:
    return client._connection is not None


@pytest.mark.slow
def test_an_agent_that_does_not_read_is_given_up(
    agent: ScriptedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking_module, "UNSENT_MAX", 2**16)
    client = Client(agent.path, timeout_s=0.001)

    def life() -> None:
        agent.accept()
        agent.say(frame(Refusal(agent.next().handle, "no")))  # type: ignore[union-attr]

    thread = in_thread(life)
    with pytest.raises(AgentUnavailable):
        client.status()
    thread.join(PATIENCE_S)
    assert connected(client)
    for _ in range(100_000):
        client._retry_at = 0.0
        client.transfer("h2" * 100, 1, dport=1).release()
        if not connected(client):
            break
    assert not connected(client)
    client.close()


def test_a_forked_child_leaves_the_parents_transfers_alone(agent: ScriptedAgent) -> None:
    client = Client(agent.path, timeout_s=PATIENCE_S)

    def life() -> None:
        agent.accept()
        request = agent.next()
        agent.say(frame(Grant(request.handle, "steered", (Lane(2, 50_000, 1),))))  # type: ignore[union-attr]

    thread = in_thread(life)
    transfer = client.transfer("h2", 5, dport=1)
    thread.join(PATIENCE_S)
    child = os.fork()
    if child == 0:  # what fails here shows as an exit code
        code = 1
        try:
            transfer.release()
            transfer.move(1)
            code = 0 if client._connection is None and len(client.session) == 0 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    transfer.release()
    assert isinstance(agent.next(), Release)
    client.close()


def test_a_transfer_that_another_thread_ends_is_not_asked_about(
    agent: ScriptedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known when ``move`` looks, and gone when ``move`` asks."""
    client = Client(agent.path, timeout_s=PATIENCE_S)

    def life() -> None:
        agent.accept()
        request = agent.next()
        agent.say(frame(Grant(request.handle, "steered", (Lane(2, 50_000, 1),))))  # type: ignore[union-attr]

    thread = in_thread(life)
    transfer = client.transfer("h2", 5, dport=1)
    thread.join(PATIENCE_S)
    transfer.release()
    monkeypatch.setattr(client.session, "knows", lambda _: True)
    assert transfer.move(1) is False
    transfer.start()
    assert transfer.path == 2
    client.close()


def test_closed_clients_stay_closed(agent: ScriptedAgent) -> None:
    client = Client(agent.path)
    client.close()
    assert client.transfer("h2", 1, dport=1).path is None


def test_status_without_an_agent_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match=r"no agent answers at .*none\.sock"):
        Client(tmp_path / "none.sock").status()


def test_wrong_arguments_are_told_also_without_an_agent(tmp_path: Path) -> None:
    client = Client(tmp_path / "none.sock")
    with pytest.raises(LocalProtocolError, match="dport"):
        client.transfer("h2", 1, dport=-1)
    with pytest.raises(LocalProtocolError, match="nbytes"):
        client.transfer("h2", -1, dport=1)


def test_the_top_level_functions_use_one_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARK_SOCKET", str(tmp_path / "none.sock"))
    monkeypatch.setattr("ark.client._default", None)
    with ark.transfer("h2", 1, dport=4791) as transfer, ark.lanes("h2", 4791) as lanes:
        assert transfer.path is None
        assert len(lanes) == 0
        assert transfer._client is lanes._client
    with pytest.raises(AttributeError):
        _ = ark.nonsense
    with pytest.raises(AttributeError):
        _ = ark.client.nonsense


@pytest.mark.slow
def test_applications_load_only_what_is_light() -> None:
    code = f"import ark, sys; ark.transfer; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
