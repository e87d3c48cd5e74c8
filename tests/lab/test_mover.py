"""The process of a host: real processes on loopback addresses, no root and no agent."""

import errno
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ark.client import Client
from ark.lab import mover
from ark.lab.mover import HEADER
from ark.lab.orders import PORT, Answer, Command, Done, Order, Ready, Run, Warm, answers, commands, line
from ark.lab.pattern import checksum, memory_file, pattern

PATIENCE_S = 30.0

BASE = f"127.{os.getpid() // 250 % 250 + 1}.{os.getpid() % 250}"
"""Loopback addresses of this test process alone: movers all listen on one port."""


class Process:
    """A mover and its pipes."""

    def __init__(self, last: int, directory: Path) -> None:
        self.address = f"{BASE}.{last}"
        file = memory_file(pattern())
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ark.lab.mover",
                f"h{last}",
                self.address,
                str(directory / "none.sock"),
                "65536",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[file],
            env=os.environ | {"ARK_LAB_PATTERN": str(file)},
        )
        os.close(file)
        self.left = b""

    def tell(self, command: Command) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line(command))
        self.process.stdin.flush()

    def hear(self) -> Answer:
        assert self.process.stdout is not None
        while b"\n" not in self.left:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
            assert ready, "the process says nothing"
            text = os.read(self.process.stdout.fileno(), 65_536)
            assert text, "the process has ended"
            self.left += text
        first, _, self.left = self.left.partition(b"\n")
        answer: Answer = answers.decode(first)
        return answer

    def hear_done(self, count: int) -> list[Done]:
        found: list[Done] = []
        while len(found) < count:
            answer = self.hear()
            if isinstance(answer, Done):
                found.append(answer)
        return sorted(found, key=lambda done: done.transfer)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    made = (Process(1, tmp_path), Process(2, tmp_path))
    try:
        for one in made:
            assert one.hear() == Ready()
        yield made
    finally:
        for one in made:
            one.end()


def order(transfer: int, address: str, size_bytes: int, *, port: int | None = None, wrong: int = 0) -> Order:
    right = checksum(memoryview(pattern()), transfer, size_bytes)
    return Order(transfer, "h2", address, size_bytes, 0, port, right ^ wrong)


def now(*orders: Order) -> Run:
    return Run(time.monotonic_ns(), orders)


@pytest.mark.slow
def test_transfers_arrive_whole_from_the_port_that_was_named(pair: tuple[Process, Process]) -> None:
    sender, receiver = pair
    sender.tell(
        now(
            *(
                order(n, receiver.address, size, port=51_000 + n)
                for n, size in enumerate((1, 70_000, 9_000_000))
            )
        )
    )
    done = sender.hear_done(3)
    assert [one.error for one in done] == ["", "", ""]
    assert [one.source_port for one in done] == [51_000, 51_001, 51_002]
    assert all(one.path is None and one.kind == "" and one.fct_ns > 0 for one in done)
    sender.tell(now(order(3, receiver.address, 10, port=51_000)))  # at once again: no TIME_WAIT keeps it
    assert sender.hear_done(1)[0].source_port == 51_000


@pytest.mark.slow
def test_without_an_agent_transfers_go_on_unsteered(pair: tuple[Process, Process]) -> None:
    sender, receiver = pair
    sender.tell(Warm(("h2",)))
    assert sender.hear() == Ready()
    sender.tell(now(order(0, receiver.address, 5_000)))
    (done,) = sender.hear_done(1)
    assert (done.error, done.kind, done.path) == ("", "none", None)
    assert done.reason


@pytest.mark.slow
def test_wrong_bytes_and_receivers_that_are_gone_are_told(pair: tuple[Process, Process]) -> None:
    sender, receiver = pair
    sender.tell(now(order(0, receiver.address, 5_000, wrong=1), order(1, f"{BASE}.3", 5_000)))
    wrong, gone = sender.hear_done(2)
    assert "checksum" in wrong.error
    assert gone.error == "Connection refused"


@pytest.mark.slow
def test_a_receiver_survives_senders_that_break_off_or_talk_nonsense(pair: tuple[Process, Process]) -> None:
    sender, receiver = pair
    for nonsense in (b"", b"short", HEADER.pack(1, 10**6) + b"x" * 100, HEADER.pack(2**64 - 1, 2**64 - 1)):
        with socket.create_connection((receiver.address, PORT), PATIENCE_S) as made:
            made.sendall(nonsense)
    sender.tell(now(order(5, receiver.address, 1000)))
    assert sender.hear_done(1)[0].error == ""


def test_a_host_that_no_route_leads_to_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers_of_kernel: list[OSError] = [OSError(errno.ENETUNREACH, ""), OSError(errno.EHOSTUNREACH, "")]

    def connect(*_: object, **__: object) -> socket.socket:
        if answers_of_kernel:
            raise answers_of_kernel.pop(0)
        return socket.socket()

    monkeypatch.setattr(mover, "connect", connect)
    monkeypatch.setattr(mover, "RETRY_S", 0.0)
    sender = mover.Mover("127.0.0.1", Client("/nowhere"), -1)
    with sender._connection(order(0, "127.0.0.2", 1), None):
        assert answers_of_kernel == []
    answers_of_kernel.append(OSError(errno.ECONNREFUSED, ""))
    with pytest.raises(ConnectionRefusedError):
        sender._connection(order(0, "127.0.0.2", 1), None)


def test_messages_are_lines_and_come_back() -> None:
    for command in (Warm(("h1", "h2")), now(order(1, "10.0.0.1", 5))):
        assert commands.decode(line(command)) == command
    for answer in (Ready(), Done(1, 2, None, "none", 'odd "reason"\n', 0, 0, 1, 0, "")):
        assert line(answer).count(b"\n") == 1
        assert answers.decode(line(answer)) == answer
    for garbage in (b"", b"{}", b'{"type":"run"}', b"[1]", b"\xff"):
        with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
            commands.decode(garbage)
