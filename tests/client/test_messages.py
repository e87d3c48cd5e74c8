"""Frames and messages: any split gives the same messages, anything else gives one kind of error."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.client.messages import (
    REQUEST_MAX,
    Acquire,
    Grant,
    Hello,
    Lane,
    Lanes,
    Refusal,
    Release,
    Report,
    Request,
    Resume,
    Segment,
    Start,
    Status,
    Welcome,
    frame,
    reply_frames,
    request_frames,
)
from ark.errors import PeerProtocolError

handles = st.integers(1, 2**63 - 1)
names = st.text(max_size=255)
ports = st.integers(0, 65_535)
sizes = st.integers(0, 2**50)
ways = st.lists(st.builds(Lane, ports, ports, st.integers(0, 0xF_FFFF)), max_size=20).map(tuple)
protos = st.sampled_from([6, 17])
requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(Hello, st.integers(0, 255), names),
    st.builds(Acquire, handles, names, sizes, ports, protos, names, st.booleans()),
    st.builds(Resume, handles, names, sizes, ports, protos, names, ways),
    st.builds(Start, handles),
    st.builds(Segment, handles, sizes),
    st.builds(Release, handles),
    st.builds(Lanes, handles, names, ports, protos, names, ways),
    st.builds(Status, handles, st.text(max_size=32), st.integers(0, 2**63 - 1)),
)


@pytest.mark.slow
@given(st.lists(requests, max_size=5), st.lists(st.integers(0, 2000), max_size=10))
def test_messages_survive_any_split(sent: list[Request], cuts: list[int]) -> None:
    data = b"".join(map(frame, sent))
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    frames = request_frames()
    heard = [message for start, end in pairwise(places) for message in frames.feed(data[start:end])]
    assert heard == sent


@given(st.binary(max_size=200))
def test_garbage_is_one_kind_of_error(data: bytes) -> None:
    frames = request_frames()
    try:
        frames.feed(len(data).to_bytes(4, "big") + data)
    except PeerProtocolError:
        return


@pytest.mark.parametrize(
    "body",
    [
        [1, 0, "h2", 1, 1, 17, "", False],
        [1, 1, "h2", -1, 1, 17, "", False],
        [1, 1, "h2", 2**50 + 1, 1, 17, "", False],
        [1, 1, "h2", 1, 65_536, 17, "", False],
        [1, 1, "h2", 1, 1, 300, "", False],
        [1, 1, "x" * 256, 1, 1, 17, "", False],
        [1, 1, "h2", 1, 1, 17, "", False, "more"],
        [1, 1, "h2", 1.5, 1, 17, "", False],
        [2, 1, "h2", 1, 1, 17, "", [[0, 1, 2]] * 1025],
        [99],
        [],
        {},
        None,
    ],
)
def test_fields_keep_their_bounds(body: object) -> None:
    data = msgspec.msgpack.encode(body)
    with pytest.raises(PeerProtocolError):
        request_frames().feed(len(data).to_bytes(4, "big") + data)


def test_a_frame_too_long_is_refused_before_it_is_there() -> None:
    with pytest.raises(PeerProtocolError, match="allowed are 16384"):
        request_frames().feed((REQUEST_MAX + 1).to_bytes(4, "big"))


@pytest.mark.parametrize(
    "reply",
    [
        Welcome(1, "h0", 1_000_000),
        Grant(1, "steered", (Lane(1, 2, 3),), "10.0.0.1", "10.0.0.2"),
        Refusal(1, "no"),
        Report(1, {"results": [{"host": "h1"}]}),
    ],
)
def test_replies_survive(reply: Welcome | Grant | Refusal | Report) -> None:
    assert reply_frames().feed(frame(reply)) == [reply]
