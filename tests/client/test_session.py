import numpy as np
import pytest

from ark.client.messages import (
    Acquire,
    Grant,
    Hello,
    Lane,
    Lanes,
    Refusal,
    Release,
    Resume,
    Welcome,
    frame,
    request_frames,
)
from ark.client.session import Peer, Session, assignment, checked_size, peer, socket_path
from ark.errors import LocalProtocolError

TO = Peer("h2", 4791, 17, "")


def sent(data: bytes) -> list[object]:
    return list(request_frames().feed(data))


def test_everything_that_runs_is_registered_again_as_it_is_now() -> None:
    session = Session()
    first, _ = session.acquire(TO, 100, ahead=False)
    second, _ = session.acquire(TO, 200, ahead=True)
    third, _ = session.lanes(TO)
    fourth, _ = session.acquire(TO, 300, ahead=False)
    session.receive(frame(Grant(first, "steered", (Lane(1, 5),))))
    session.receive(frame(Grant(second, "steered", (Lane(2, 6),))))
    session.receive(frame(Grant(third, "lanes", (Lane(0, 7), Lane(1, 8)))))
    session.segment(first, 50)
    session.release(fourth)
    assert session.lost() == [first]
    assert isinstance(sent(session.connect())[0], Hello)
    assert sent(session.resume()) == [
        Resume(first, "h2", 50, 4791, 17, "", (Lane(1, 5),)),
        Acquire(second, "h2", 200, 4791, 17, "", ahead=True),
        Lanes(third, "h2", 4791, 17, "", (Lane(0, 7), Lane(1, 8))),
    ]


def test_a_refused_transfer_is_not_registered_again() -> None:
    session = Session()
    handle, _ = session.acquire(TO, 100, ahead=False)
    assert session.receive(frame(Refusal(handle, "no"))) == [(handle, Refusal(handle, "no"))]
    assert not session.knows(handle)
    assert session.resume() == b""
    assert session.release(handle) == b""


def test_of_a_transfer_that_is_over_nothing_is_asked() -> None:
    session = Session()
    assert session.start(7) == b""
    assert session.segment(7, 1) == b""
    assert session.lost() == []


def test_answers_that_nobody_waits_for_are_kept_and_not_told() -> None:
    session = Session()
    handle, _ = session.acquire(TO, 100, ahead=False)
    session.give_up(handle)
    assert session.receive(frame(Grant(handle, "steered", (Lane(3, 9),)))) == []
    assert sent(session.resume()) == [Resume(handle, "h2", 100, 4791, 17, "", (Lane(3, 9),))]
    assert sent(session.release(handle)) == [Release(handle)]


def test_a_welcome_is_remembered_until_the_next_connection() -> None:
    session = Session()
    session.receive(frame(Welcome(1, "h0", 5)))
    assert session.welcome == Welcome(1, "h0", 5)
    session.connect()
    assert session.welcome is None


def test_two_questions_at_once_about_one_transfer_are_refused() -> None:
    session = Session()
    handle, _ = session.acquire(TO, 100, ahead=False)
    with pytest.raises(LocalProtocolError, match="another thread waits"):
        session.segment(handle, 1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("", 1, "udp", None, None), "dst '': give a host"),
        (("h2", 65_536, "udp", None, None), "dport 65536: allowed are 0 to 65535"),
        (("h2", 1, "sctp", None, None), "proto 'sctp': allowed"),
        (("h2", 1, "udp", "10.0.0.1", 0), "src and nic: give one of them"),
        ((None, 1, "udp", None, None), "dst None: give a host"),
        (("h\udcff", 1, "udp", None, None), r"dst 'h\\udcff': give a host"),
        (("h2", 1.0, "udp", None, None), "dport 1.0: allowed are 0 to 65535"),
        (("h2", "1", "udp", None, None), "dport '1': allowed are 0 to 65535"),
        (("h2", 1, ["udp"], None, None), r"proto \['udp'\]: allowed"),
        (("h2", 1, "udp", "10.0.0.1" * 40, None), r"src .10\.0\.0\.110.*: give a NIC"),
        (("h2", 1, "udp", None, "\udcff"), r"nic '\\udcff': give a NIC"),
    ],
)
def test_arguments_have_bounds(
    arguments: tuple[str, int, str, str | None, int | None], expected: str
) -> None:
    """What the agent could not read would end the connection, and all other transfers with it."""
    with pytest.raises(LocalProtocolError, match=expected):
        peer(*arguments)


@pytest.mark.parametrize("size", [-1, 2**50 + 1, 1e9, "5", None])
def test_sizes_have_bounds(size: int) -> None:
    with pytest.raises(LocalProtocolError, match="nbytes"):
        checked_size("nbytes", size)


@pytest.mark.parametrize("number", [np.int64(1000), np.uint16(1000), True])
def test_whole_numbers_of_any_type_reach_the_agent(number: int) -> None:
    session = Session()
    _, data = session.acquire(peer("h2", number, "udp", None, None), checked_size("n", number), ahead=False)
    assert sent(data) == [Acquire(1, "h2", int(number), int(number), 17)]


@pytest.mark.parametrize(("question", "argument"), [("x" * 33, 0), ("why", -1), ("why", 2**63), ("why", 1.5)])
def test_questions_have_bounds(question: str, argument: int) -> None:
    with pytest.raises(LocalProtocolError, match="allowed are"):
        Session().status(question, argument)


@pytest.mark.parametrize("arguments", [[], ["\udcff" * 300], ["/x/" + "é" * 300]])
def test_a_program_of_any_name_says_hello(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", arguments)
    assert isinstance(sent(Session().connect())[0], Hello)


def test_no_reply_is_no_preference() -> None:
    assert assignment(None).reason == "no agent answers"
    assert assignment(Refusal(1, "why")).reason == "why"


def test_the_socket_is_the_one_given_or_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARK_SOCKET", "/somewhere")
    assert socket_path("/here") == "/here"
    assert socket_path(None) == "/somewhere"
    monkeypatch.delenv("ARK_SOCKET")
    assert socket_path(None) == "/run/ark/agent.sock"
