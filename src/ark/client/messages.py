"""The local API: every message between an application and the agent of its host, and their frames.

A frame is the length of its body in 4 bytes, big-endian, and one msgpack array in fixed field order whose
first element is the message's number. ``docs/reference/local-api.md`` describes all of them. Every field has
a type and bounds; whatever breaks them raises ``PeerProtocolError``.
"""

from typing import Annotated, Final, Generic, TypeVar

import msgspec
from msgspec import Meta

from ark.errors import PeerProtocolError

VERSION: Final = 1
REQUEST_MAX: Final = 16_384
"""Bytes of the longest request: room for the lanes of 1024 paths."""
REPLY_MAX: Final = 4 * 2**20
"""Bytes of the longest reply: a status table of 10,000 rows."""
LANES_MAX: Final = 1024
"""Lanes of one transfer or of one set: more than a fabric has equal-cost paths."""
BYTES_MAX: Final = 2**50
"""Largest transfer, 1 PiB, as on the wire between agents."""
NAME_MAX: Final = 255
"""Characters of a name of a host, a NIC or a program."""
TCP: Final = 6
UDP: Final = 17

HANDLE_MAX: Final = 2**63 - 1
"""Largest number of a transfer, of a set of lanes, and of what a question is about."""
QUESTION_MAX: Final = 32
"""Characters of a table's name."""

Handle = Annotated[int, Meta(ge=1, le=HANDLE_MAX)]
Name = Annotated[str, Meta(max_length=NAME_MAX)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Size = Annotated[int, Meta(ge=0, le=BYTES_MAX)]
Proto = Annotated[int, Meta(ge=TCP, le=UDP)]


class Lane(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One way to send: a path and what leads there.

    Parameters
    ----------
    path
        Number of the path.
    source_port
        Source port whose hash leads there; 0 where none is known.
    flow_label
        Flow label that makes a RoCE driver use that port; 0 where it can't.
    """

    path: Annotated[int, Meta(ge=0, le=65_535)]
    source_port: Port = 0
    flow_label: Annotated[int, Meta(ge=0, le=0xF_FFFF)] = 0


Ways = Annotated[tuple[Lane, ...], Meta(max_length=LANES_MAX)]


class _Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What all messages have in common."""


class Hello(_Message, frozen=True, tag=0):
    """First message of a connection."""

    version: Annotated[int, Meta(ge=0, le=255)]
    name: Name


class Acquire(_Message, frozen=True, tag=1):
    """A transfer is to start: which path? ``handle`` is the client's own number of it.

    ``nic`` is a NIC's name, address or number on this host, or "" for the agent to choose. ``ahead`` reserves
    for a transfer whose start ``Start`` will tell.
    """

    handle: Handle
    target: Name
    size_bytes: Size
    dport: Port
    proto: Proto
    nic: Name = ""
    ahead: bool = False


class Resume(_Message, frozen=True, tag=2):
    """A transfer runs already on these lanes: the agent has restarted."""

    handle: Handle
    target: Name
    size_bytes: Size
    dport: Port
    proto: Proto
    nic: Name
    lanes: Ways


class Start(_Message, frozen=True, tag=3):
    """A transfer that was reserved ahead begins."""

    handle: Handle


class Segment(_Message, frozen=True, tag=4):
    """A segment is sent, so much is left; may the transfer move?"""

    handle: Handle
    bytes_left: Size


class Release(_Message, frozen=True, tag=5):
    """A transfer, or a set of lanes, is over. There is no reply; an unknown handle changes nothing."""

    handle: Handle


class Lanes(_Message, frozen=True, tag=6):
    """One source port for each path, for connections made ahead; ``taken`` after a restart of the agent."""

    handle: Handle
    target: Name
    dport: Port
    proto: Proto
    nic: Name = ""
    taken: Ways = ()


class Status(_Message, frozen=True, tag=7):
    """What the agent knows: ``question`` is the name of a table, ``argument`` what it is about."""

    handle: Handle
    question: Annotated[str, Meta(max_length=QUESTION_MAX)]
    argument: Annotated[int, Meta(ge=0, le=HANDLE_MAX)] = 0


class Welcome(_Message, frozen=True, tag=0):
    """The agent's answer to ``Hello``: who it is, and how long it may hold an answer back."""

    version: int
    host: str
    hold_ns: int


class Grant(_Message, frozen=True, tag=1):
    """Where a transfer goes, one lane a stripe; none for "no preference". Or the lanes of a set.

    ``kind`` says how that was chosen, ``reason`` why there is no preference; ``source`` and ``target`` are
    the addresses of the NICs between which it holds.
    """

    handle: int
    kind: str
    lanes: Ways
    source: str = ""
    target: str = ""
    reason: str = ""


class Refusal(_Message, frozen=True, tag=2):
    """A request makes no sense to the agent; the connection goes on."""

    handle: int
    reason: str


class Report(_Message, frozen=True, tag=3):
    """The table that ``Status`` asked for."""

    handle: int
    table: dict[str, object]


Request = Hello | Acquire | Resume | Start | Segment | Release | Lanes | Status
Reply = Welcome | Grant | Refusal | Report
T = TypeVar("T")

_PREFIX: Final = 4
_encoder: Final = msgspec.msgpack.Encoder()
_requests: Final = msgspec.msgpack.Decoder(Request)
_replies: Final = msgspec.msgpack.Decoder(Reply)


def frame(message: Request | Reply) -> bytes:
    """The bytes of a message on the socket."""
    body = _encoder.encode(message)
    return len(body).to_bytes(_PREFIX, "big") + body


class Frames(Generic[T]):
    """Messages out of a stream of bytes; what is not yet whole is kept, up to one frame."""

    __slots__ = ("_bytes_max", "_decoder", "_left")

    def __init__(self, decoder: "msgspec.msgpack.Decoder[T]", bytes_max: int) -> None:
        self._decoder = decoder
        self._bytes_max = bytes_max
        self._left = b""

    def feed(self, data: bytes) -> list[T]:
        """The messages that are whole now.

        Raises
        ------
        PeerProtocolError
            If the bytes are no frames; the stream can't be read any further.
        """
        if self._left:
            data = self._left + data
        messages = []
        start = 0
        while len(data) - start >= _PREFIX:
            size = int.from_bytes(data[start : start + _PREFIX], "big")
            if size > self._bytes_max:
                raise PeerProtocolError(f"a message of {size} bytes; allowed are {self._bytes_max}")
            end = start + _PREFIX + size
            if len(data) < end:
                break
            messages.append(self._decode(data[start + _PREFIX : end]))
            start = end
        self._left = data[start:]
        return messages

    def _decode(self, body: bytes) -> T:
        try:
            return self._decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError) as error:
            raise PeerProtocolError(f"no message of the local API: {error}") from error


def request_frames() -> Frames[Request]:
    """The agent's reader."""
    return Frames(_requests, REQUEST_MAX)


def reply_frames() -> Frames[Reply]:
    """The client's reader."""
    return Frames(_replies, REPLY_MAX)
