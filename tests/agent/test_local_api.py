"""The Unix socket against clients that do not keep to the rules."""

import asyncio
import grp
import os
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import cast

import msgspec
import pytest
from tests.agent.cohort import PATIENCE_S, Cohort

from ark.agent import local_api
from ark.agent.local_api import LocalServer, Service
from ark.client.messages import (
    Acquire,
    Hello,
    Refusal,
    Reply,
    Report,
    Request,
    Segment,
    Start,
    Status,
    Welcome,
    frame,
    reply_frames,
)
from ark.errors import ConfigError


class Raw:
    """A client that sends whatever a test wants."""

    def __init__(self, cohort: Cohort, *hello: Request) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(cohort.folder / "h0.sock"))
        self.frames = reply_frames()
        self.heard: list[Reply] = []
        for message in hello:
            self.send(frame(message))

    def __del__(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def next(self) -> Reply | None:
        """The next reply; None if the agent has ended the connection."""
        while not self.heard:
            try:
                data = self.socket.recv(2**20)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.heard += self.frames.feed(data)
        return self.heard.pop(0)


HELLO = Hello(1, "raw")


def test_a_client_is_welcomed(four: Cohort) -> None:
    assert Raw(four, HELLO).next() == Welcome(1, "h0", 0)


def test_requests_that_come_together_are_answered_in_order(four: Cohort) -> None:
    count = 3 * local_api.REPLIES_AT_ONCE + 1
    client = Raw(four, HELLO)
    client.send(b"".join(frame(Start(handle)) for handle in range(1, count + 1)))
    assert client.next() == Welcome(1, "h0", 0)
    answers = [client.next() for _ in range(count)]
    assert [one.handle for one in answers if isinstance(one, Refusal)] == list(range(1, count + 1))


def test_another_version_is_refused_by_name(four: Cohort) -> None:
    client = Raw(four, Hello(2, "new"))
    assert client.next() == Refusal(0, "version 2 of the local API; this agent has 1")
    assert client.next() is None


@pytest.mark.parametrize(
    "data",
    [
        frame(Start(1)),
        b"\0\0\0\1\xc0",
        b"\xff\xff\xff\xff",
        frame(HELLO) + b"\0\0\0\2\x91\x63",
        frame(HELLO) + b"\0\0\x50\0",
    ],
)
def test_who_breaks_the_form_is_cut_off_alone(four: Cohort, data: bytes) -> None:
    polite = Raw(four, HELLO)
    before = four.call(lambda: four["h0"].server.malformed)
    rude = Raw(four)
    rude.send(data)
    while rude.next() is not None:
        pass
    assert four.call(lambda: four["h0"].server.malformed) == before + 1
    polite.send(frame(Status(7, "summary")))
    assert isinstance(polite.next(), Welcome)
    assert isinstance(polite.next(), Report)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ((HELLO,), "hello has been said"),
        ((Start(5),), "no transfer has the handle 5"),
        ((Segment(5, 1),), "no transfer has the handle 5"),
        ((Status(5, "x"),), "no table 'x'; there are summary, peers, reservations, digest, links,"),
        ((Acquire(5, "h2", 1, 1, 17), Acquire(5, "h2", 1, 1, 17)), "handle 5 is in use"),
        ((Acquire(5, "h2", 10**9, 4791, 17, "", ahead=True), Segment(5, 1)), "flow"),
    ],
)
def test_requests_without_sense_are_refused_and_the_connection_goes_on(
    four: Cohort, requests: tuple[Request, ...], expected: str
) -> None:
    client = Raw(four, HELLO, *requests, Status(9, "summary"))
    replies = []
    while not isinstance(reply := client.next(), Report):
        replies.append(reply)
    refusals = [reply.reason for reply in replies if isinstance(reply, Refusal)]
    assert len(refusals) == 1
    assert refusals[0].startswith(expected)


def test_the_socket_is_for_owner_and_group(four: Cohort) -> None:
    path = four.folder / "h0.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_the_socket_may_be_given_to_a_group(folder: Path) -> None:
    own = grp.getgrgid(os.getgid())
    cohort = Cohort(folder, 1, more=f'[api]\nsocket = "h0.sock"\ngroup = "{own.gr_name}"\n')
    assert (folder / "h0.sock").stat().st_gid == own.gr_gid
    cohort.close()
    assert not (folder / "h0.sock").exists()


def start_at(path: Path) -> None:
    """Try to listen; who asks gets no answer."""

    def welcome() -> Welcome:
        raise AssertionError("nobody asks")

    async def work() -> None:
        await LocalServer(path, None, cast("Service", None), welcome).start()

    asyncio.run(work())


def test_a_file_in_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    """A slip of the pen in the configuration costs nobody a file."""
    path = tmp_path / "fabric.toml"
    path.write_text("precious")
    with pytest.raises(ConfigError, match=r"fabric\.toml: can't be made: there is a file of another kind"):
        start_at(path)
    assert path.read_text() == "precious"


def test_the_socket_of_an_agent_that_accepts_nobody_is_not_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as stuck, ExitStack() as waiting:
        stuck.bind(str(path))
        stuck.listen(0)
        full = 0
        while not full:
            kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
            full = waiting.enter_context(socket.socket(socket.AF_UNIX, kind)).connect_ex(str(path))
        with pytest.raises(ConfigError, match="another agent listens there"):
            start_at(path)
        assert path.is_socket()


def test_more_clients_than_allowed_are_turned_away(four: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    four.until(lambda: not four["h0"].server.connections or not four.clients)
    monkeypatch.setattr(local_api, "CONNECTIONS_MAX", four.call(lambda: len(four["h0"].server.connections)))
    assert Raw(four).next() is None
    assert four.call(lambda: four["h0"].server.turned_away) == 1


def test_a_client_that_reads_nothing_is_not_read_either(four: Cohort) -> None:
    """Its replies would otherwise pile up in the agent."""
    client = Raw(four, HELLO)
    client.socket.settimeout(0.0)
    request = frame(Status(9, "links"))
    sent = 0
    with suppress(BlockingIOError):
        while sent < 2**24:
            sent += client.socket.send(request)
    assert sent < 2**24
    polite = Raw(four, HELLO)
    assert isinstance(polite.next(), Welcome)


def fuzz(four: Cohort, requests: int, seed: int) -> None:
    """Requests of all kinds, right, wrong, cut and spoilt; the agent lives and holds nothing afterwards."""
    rng = Random(seed)
    client = Raw(four, HELLO)
    server = four["h0"].server
    enough = server.requests + requests
    while server.requests < enough:
        data = b"".join(random_frame(rng) for _ in range(50))
        if rng.random() < 0.05:
            place = rng.randrange(len(data))
            data = data[:place] + rng.randbytes(rng.randrange(8)) + data[place + rng.randrange(8) :]
        try:
            client.send(data)
            client.socket.setblocking(False)
            while client.socket.recv(2**20):
                pass
            client = Raw(four, HELLO)
        except BlockingIOError:
            client.socket.settimeout(PATIENCE_S)
        except OSError:
            client = Raw(four, HELLO)
    client.socket.close()
    four.until(lambda: not four["h0"].service.transfers and not four.rows("h3"))
    four.call(four["h0"].controller.check)
    assert four.call(lambda: four["h0"].service.lane_sets) == 0


def random_frame(rng: Random) -> bytes:
    handle = rng.randrange(1, 40)
    target = rng.choice(["h1", "h2", "h3", "10.0.0.3", "h0", "nobody", ""])
    lanes = [[rng.randrange(6), rng.randrange(2**16), 0] for _ in range(rng.randrange(4))]
    bodies: list[list[object]] = [
        [0, 1, "again"],
        [1, handle, target, rng.choice([0, 10**6, 10**9]), 4791, 17, "", rng.random() < 0.2],
        [1, handle, target, 10**9, rng.choice([0, 4791, 9]), 6, rng.choice(["", "h0", "0", "9"]), False],
        [2, handle, target, 10**9, 4791, 17, "", lanes],
        [3, handle],
        [4, handle, rng.randrange(10**9)],
        [5, handle],
        [6, handle, target, 4791, 17, "", lanes],
        [7, handle, rng.choice(["summary", "peers", "why", "x"]), rng.randrange(100)],
    ]
    body = rng.choice(bodies)
    if rng.random() < 0.01:
        body[rng.randrange(len(body))] = rng.choice([None, -1, 2**64 - 1, "", [], {}, 1.5, b"\xff"])
    data = msgspec.msgpack.encode(body)
    return len(data).to_bytes(4, "big") + data


@pytest.mark.slow
def test_fuzzed_requests_change_nothing_for_good(four: Cohort) -> None:
    fuzz(four, int(os.environ.get("ARK_FUZZ_REQUESTS", "3000")), seed=1)
