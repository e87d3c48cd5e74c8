"""The C reader and writer of the local API: the same messages as in Python, and no harm in any bytes."""

import ctypes
import subprocess
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integrations.preload.compiled import PROGRAMS, SANITIZERS, SOURCES, compile_c

from ark.client.messages import (
    Acquire,
    Grant,
    Hello,
    Lane,
    Lanes,
    Refusal,
    Release,
    Reply,
    Report,
    Welcome,
    frame,
    request_frames,
)

pytestmark = pytest.mark.slow

LANES_MAX: Final = 1024
REASON_MAX: Final = 160
REPLY_MAX: Final = 65_536


class CWay(ctypes.Structure):
    _fields_ = (
        ("target", ctypes.c_char * 64),
        ("nic", ctypes.c_char * 64),
        ("dport", ctypes.c_uint16),
        ("proto", ctypes.c_uint8),
    )


class CLane(ctypes.Structure):
    _fields_ = (("path", ctypes.c_uint16), ("source_port", ctypes.c_uint16), ("flow_label", ctypes.c_uint32))


class CReply(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("handle", ctypes.c_uint64),
        ("hold_ns", ctypes.c_uint64),
        ("lane_count", ctypes.c_uint32),
        ("lanes", CLane * LANES_MAX),
        ("reason", ctypes.c_char * REASON_MAX),
    )


@pytest.fixture(scope="module")
def code(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    del scratch  # without a compiler these tests are skipped
    folder = tmp_path_factory.mktemp("messages")
    sources = [SOURCES / "messages.c", SOURCES / "msgpack.c"]
    made = ctypes.CDLL(str(compile_c(folder / "messages.so", sources, "-shared", "-fPIC")))
    for name in ("ark_hello", "ark_acquire", "ark_lanes", "ark_release", "ark_frame_length"):
        getattr(made, name).restype = ctypes.c_size_t
    made.ark_read_reply.restype = ctypes.c_bool
    return made


texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=63)
handles = st.integers(1, 2**63 - 1)
lanes = st.builds(Lane, st.integers(0, 65_535), st.integers(0, 65_535), st.integers(0, 0xF_FFFF))
long_texts = st.text(max_size=300)
grants = st.builds(
    Grant, handles, long_texts, st.lists(lanes, max_size=70).map(tuple), long_texts, long_texts, long_texts
)


def requested(code: ctypes.CDLL, name: str, *arguments: object) -> object:
    """What an agent understands of a request that the C code writes."""
    into = ctypes.create_string_buffer(1024)
    length = getattr(code, name)(into, ctypes.c_size_t(1024), *arguments)
    (message,) = request_frames().feed(into.raw[:length])
    return message


@given(texts, texts, st.integers(0, 65_535), st.sampled_from([6, 17]), handles, st.integers(0, 2**50))
def test_requests_are_understood(
    code: ctypes.CDLL, target: str, nic: str, dport: int, proto: int, handle: int, size_bytes: int
) -> None:
    way = ctypes.byref(CWay(target.encode(), nic.encode(), dport, proto))
    number, size = ctypes.c_uint64(handle), ctypes.c_uint64(size_bytes)
    assert requested(code, "ark_hello", target.encode()) == Hello(1, target)
    assert requested(code, "ark_acquire", number, way, size) == Acquire(
        handle, target, size_bytes, dport, proto, nic
    )
    assert requested(code, "ark_lanes", number, way) == Lanes(handle, target, dport, proto, nic)
    assert requested(code, "ark_release", number) == Release(handle)


def test_a_request_that_does_not_fit_is_none(code: ctypes.CDLL) -> None:
    into = ctypes.create_string_buffer(10)
    assert code.ark_hello(into, ctypes.c_size_t(8), b"a name that is longer") == 0


def read(code: ctypes.CDLL, body: bytes) -> CReply | None:
    reply = CReply()
    return reply if code.ark_read_reply(body, ctypes.c_size_t(len(body)), ctypes.byref(reply)) else None


@given(grants)
def test_grants_are_understood(code: ctypes.CDLL, sent: Grant) -> None:
    reply = read(code, frame(sent)[4:])
    assert reply is not None
    assert (reply.kind, reply.handle, reply.lane_count) == (1, sent.handle, len(sent.lanes))
    assert [(lane.path, lane.source_port, lane.flow_label) for lane in reply.lanes[: len(sent.lanes)]] == [
        (lane.path, lane.source_port, lane.flow_label) for lane in sent.lanes
    ]
    assert reply.reason == sent.reason.encode().partition(b"\0")[0][: REASON_MAX - 1]


def test_shortened_messages_are_understood(code: ctypes.CDLL) -> None:
    """Fields at the end that have a default may be left out."""
    reply = read(code, msgspec.msgpack.encode([1, 7, "steered", [[3], [4, 50_000]]]))
    assert reply is not None
    assert [(lane.path, lane.source_port) for lane in reply.lanes[:2]] == [(3, 0), (4, 50_000)]


def test_other_replies_are_understood(code: ctypes.CDLL) -> None:
    welcome = read(code, frame(Welcome(1, "h0", 1_000_000))[4:])
    assert welcome is not None
    assert (welcome.kind, welcome.hold_ns) == (0, 1_000_000)
    refusal = read(code, frame(Refusal(9, "no such host"))[4:])
    assert refusal is not None
    assert (refusal.kind, refusal.handle, refusal.reason) == (2, 9, b"no such host")
    assert read(code, frame(Report(9, {"a": [1, {}]}))[4:]) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [0],
        [0, 2, "h0", 1],
        [0, 1, "h0", -1],
        [0, 1, "h0", 1, 1],
        [1, 1, "x", [[70_000]]],
        [1, 1, "x", [[1, 70_000]]],
        [1, 1, "x", [[1, 1, 2**20]]],
        [1, 1, "x", [[1, 1, 1, 1]]],
        [1, 1, "x", [[]]],
        [1, 1, "x", [[1]] * 1025],
        [1, 2**63, "x", []],
        [1, 1.0, "x", []],
        [1, 1, b"x", []],
        [1, 1, "x", {}],
        [4, 1, "x"],
        {"a": 1},
        None,
    ],
)
def test_what_is_no_reply_is_refused(code: ctypes.CDLL, wrong: object) -> None:
    assert read(code, msgspec.msgpack.encode(wrong)) is None


@given(grants, st.data())
def test_a_cut_reply_is_refused(code: ctypes.CDLL, sent: Grant, data: st.DataObject) -> None:
    body = frame(sent)[4:]
    assert read(code, body[: data.draw(st.integers(0, len(body) - 1))]) is None
    assert read(code, body + b"\0") is None


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_read_or_refused(code: ctypes.CDLL, body: bytes) -> None:
    read(code, body)


def test_frames_have_a_bound(code: ctypes.CDLL) -> None:
    assert code.ark_frame_length((REPLY_MAX - 4).to_bytes(4, "big")) == REPLY_MAX
    assert code.ark_frame_length((REPLY_MAX - 3).to_bytes(4, "big")) == 0
    assert code.ark_frame_length(b"\xff\xff\xff\xff") == 0


def test_mutated_replies_under_the_sanitizers(scratch: Path, tmp_path: Path) -> None:
    """300,000 replies, changed, cut and made up."""
    sources = [PROGRAMS / "fuzz.c", SOURCES / "messages.c", SOURCES / "msgpack.c"]
    fuzz = compile_c(tmp_path / "fuzz", sources, f"-I{SOURCES}", *SANITIZERS)
    replies: list[Reply] = [
        Welcome(1, "h0", 1_000_000),
        Refusal(300, "x" * 300),
        Grant(
            1, "lanes", tuple(Lane(path, 50_000 + path, path) for path in range(20)), "10.0.0.1", "10.0.0.2"
        ),
        Grant(2**40, "steered", (Lane(1, 0xC001, 1),), "fd00::1", "fd00::2", "a reason"),
        Report(3, {"rows": [1, "two", {"three": 3}]}),
    ]
    done = subprocess.run(
        [str(fuzz), "1", "300000"],
        input=b"".join(map(frame, replies)),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"ok\n"), done.stderr[-2000:]
