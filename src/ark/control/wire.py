"""Datagrams: messages packed into authenticated msgpack arrays, and back again.

One datagram is one msgpack array in fixed field order whose last field is a keyed BLAKE2b of all bytes before
it. The MAC is checked before anything is parsed, so a stranger's bytes reach neither the decoder nor the
protocol. After it every field has a type and bounds; whatever breaks them raises :class:`RefusedDatagram` and
nothing else. Here is no state: numbers, replay windows and meaning are the replica's.

The format is described field by field in ``docs/reference/wire.md``.
"""

import hashlib
import hmac
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ark.control.rows import STRIPES_MAX
from ark.errors import LocalProtocolError, PeerProtocolError

VERSION: Final = 1
"""First field of every datagram; a change of any field's meaning or order takes the next number."""

DATAGRAM_MAX: Final = 1200
"""Bytes: fits every path's MTU without fragments (the value of QUIC, RFC 9000 §14), tunnels included."""

MAC_BYTES: Final = 16
FABRIC_BYTES: Final = 16
SUBJECT_MAX: Final = 24
"""Characters of a subject; the longest, ``to.`` and 16 hexadecimal digits, has 19."""

PATHS_MAX: Final = 65_535
"""Largest path index and attachment number: 16 bits, as many as a 5-tuple has source ports."""

BYTES_MAX: Final = 2**50
"""Largest transfer, 1 PiB: the sum over all rows that a table may hold stays below 2⁶³."""

CHUNKS_MAX: Final = 2048
"""Chunks of one snapshot: room for the 16,384 rows of one host at 10 rows a chunk, the widest rows there
are."""

MISSING_MAX: Final = 256
"""Chunks named as missing in one request: what fits into one datagram. The next request names the next
ones."""

_MAC_PERSON: Final = b"ark-control-1"
_ARRAY_OF_TEN: Final = 0x9A
_ARRAY_OF_TWO: Final = b"\x92"

Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Word = Annotated[int, Meta(ge=0)]
"""Any 64-bit pattern: host ids, digests, nonces. The encoding itself ends at 2⁶⁴ - 1."""
Index = Annotated[int, Meta(ge=0, le=PATHS_MAX)]
ChunkIndex = Annotated[int, Meta(ge=0, lt=CHUNKS_MAX)]
Subject = Annotated[str, Meta(max_length=SUBJECT_MAX)]


class Put(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=0):
    """RESERVE or MOVE: the sender's whole row. Host, epoch and seq follow from the datagram around it."""

    flow: Natural
    state: Annotated[int, Meta(ge=0, le=1)]
    paths: Annotated[tuple[Index, ...], Meta(min_length=1, max_length=STRIPES_MAX)]
    source: Index
    target: Index
    size_bytes: Annotated[int, Meta(ge=0, le=BYTES_MAX)]
    stamp: Natural
    fallback: bool
    moves: Index


class Drop(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """RELEASE: the sender's row of this flow is gone."""

    flow: Natural


class Beat(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """Heartbeat of a stream: how many rows it holds, and their digest, after all rows of this datagram."""

    rows: Natural
    digest: Word


class Ask(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """Please send me a snapshot of your stream ``subject``, marked ``request``; of its chunks only
    ``missing``.

    Without any missing ones it is the first request, or all of the chunks are.
    """

    subject: Subject
    request: Word
    missing: Annotated[tuple[ChunkIndex, ...], Meta(max_length=MISSING_MAX)] = ()


class Numbered(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One row of a snapshot with the seq of the PUT that last wrote it."""

    seq: Number
    put: Put


class Chunk(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """Part ``index`` of ``count`` of the sender's own rows in stream ``subject`` as they were at ``seq``."""

    subject: Subject
    request: Word
    seq: Natural
    index: ChunkIndex
    count: Annotated[int, Meta(ge=1, le=CHUNKS_MAX)]
    rows: tuple[Numbered, ...]


class Challenge(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """I have never heard you before: repeat this number, so that I know you are no recording."""

    nonce: Word


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The number of your challenge."""

    nonce: Word


class Newer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """I know an epoch of yours that is greater than the one you use: jump over it."""

    epoch: Natural


Message = Put | Drop | Beat | Ask | Chunk | Challenge | Answer | Newer


class Datagram(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Everything that one datagram says, in the order of the wire.

    ``number`` counts the datagrams of this stream (the replay window and the lease go by it), ``first_seq``
    is the seq of the first PUT or DROP in here; the others follow one by one. Without any it is the seq that
    the next one will have.
    """

    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    fabric: Annotated[bytes, Meta(min_length=FABRIC_BYTES, max_length=FABRIC_BYTES)]
    host: Word
    epoch: Natural
    subject: Subject
    number: Number
    first_seq: Number
    key_id: Annotated[int, Meta(ge=0, le=127)]
    messages: tuple[Message, ...]
    mac: Annotated[bytes, Meta(min_length=MAC_BYTES, max_length=MAC_BYTES)]


class Refusal(StrEnum):
    """Why a datagram was refused before the protocol saw it; each is a counter."""

    SIZE = "size"
    FORGED = "forged"
    VERSION = "version"
    MALFORMED = "malformed"


class RefusedDatagram(PeerProtocolError):  # noqa: N818 - what happened, as its parents are named
    """A datagram that is not one of ours, or not well-formed."""

    def __init__(self, refusal: Refusal, detail: str) -> None:
        self.refusal = refusal
        super().__init__(f"datagram refused ({refusal}): {detail}")


class Key(msgspec.Struct, frozen=True):
    """One cluster key: its id (0..127, named in each datagram) and 16 to 64 secret bytes."""

    id: int
    secret: bytes

    def __post_init__(self) -> None:
        if not 0 <= self.id <= 127:
            raise LocalProtocolError(f"key id {self.id} is not in 0..127")
        if not 16 <= len(self.secret) <= hashlib.blake2b.MAX_KEY_SIZE:
            raise LocalProtocolError(f"key {self.id} has {len(self.secret)} bytes; 16 to 64 are allowed")


class Keys(msgspec.Struct, frozen=True):
    """The key that signs, and during a rotation one more that is accepted too."""

    signing: Key
    accepted: Key | None = None

    def __post_init__(self) -> None:
        if self.accepted is not None and self.accepted.id == self.signing.id:
            raise LocalProtocolError(f"both keys have the id {self.signing.id}; give the new key another id")


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Datagram)
_UNSIGNED: Final = bytes(MAC_BYTES)
_CHUNK_TAG: Final = Chunk.__struct_config__.tag

ENVELOPE_MAX: Final = (
    len(
        _encoder.encode(
            (
                VERSION,
                bytes(FABRIC_BYTES),
                2**64 - 1,
                2**63,
                "x" * SUBJECT_MAX,
                2**63,
                2**63,
                127,
                (0,) * 16,
                _UNSIGNED,
            )
        )
    )
    - 16
)
"""Bytes of the longest envelope, all fields but the messages."""

ROOM: Final = DATAGRAM_MAX - ENVELOPE_MAX
"""Bytes that the messages of one datagram may take together."""

CHUNK_OVERHEAD: Final = (
    len(_encoder.encode(Chunk("x" * SUBJECT_MAX, 2**64 - 1, 2**63 - 1, CHUNKS_MAX - 1, CHUNKS_MAX, ()))) + 2
)
"""Bytes of the longest chunk without its rows."""


def up(attachment: int) -> str:
    """Subject of rows whose source hangs on ``attachment``: the links from it up."""
    return f"up.{attachment}"


def down(attachment: int) -> str:
    """Subject of rows whose destination hangs on ``attachment``: the links down to it."""
    return f"down.{attachment}"


def direct(host: int) -> str:
    """Subject of what is meant for one host alone: challenges, requests, snapshots."""
    return f"to.{host:016x}"


ALL: Final = ""
"""The one subject of rows on UDP."""


def host_id(name: str) -> int:
    """64-bit id of the host called ``name``: BLAKE2b of its UTF-8 bytes, big-endian."""
    return int.from_bytes(
        hashlib.blake2b(name.encode(), digest_size=8, person=b"ark-host-id").digest(), "big"
    )


def encode_message(message: Message | Numbered) -> bytes:
    """Bytes of one message as they stand in a datagram."""
    return _encoder.encode(message)


def encode_numbered(seq: int, part: bytes) -> bytes:
    """Bytes of a :class:`Numbered`, from its PUT as already encoded."""
    return _ARRAY_OF_TWO + _encoder.encode(seq) + part


def encode_chunk(
    subject: str, request: int, seq: int, index: int, count: int, rows: Sequence[bytes]
) -> bytes:
    """Bytes of the chunk that holds the encoded ``rows``."""
    raw = [msgspec.Raw(row) for row in rows]
    return _encoder.encode((_CHUNK_TAG, subject, request, seq, index, count, raw))


def seal(
    key: Key,
    fabric: bytes,
    host: int,
    epoch: int,
    subject: str,
    number: int,
    first_seq: int,
    parts: Sequence[bytes],
) -> bytes:
    """The datagram that holds the encoded messages ``parts``, signed.

    Raises
    ------
    LocalProtocolError
        If it would be longer than ``DATAGRAM_MAX``: the caller packs by ``ROOM``.
    """
    raw = [msgspec.Raw(part) for part in parts]
    data = _encoder.encode((VERSION, fabric, host, epoch, subject, number, first_seq, key.id, raw, _UNSIGNED))
    if len(data) > DATAGRAM_MAX:
        raise LocalProtocolError(f"{len(parts)} messages make a datagram of {len(data)} bytes, too many")
    body = data[:-MAC_BYTES]
    return body + mac(body, key)


def open_datagram(data: bytes, keys: Keys) -> Datagram:
    """What the datagram says, if one of our keys signed it and every field keeps its bounds.

    Raises
    ------
    RefusedDatagram
        For any other bytes.
    """
    if not MAC_BYTES < len(data) <= DATAGRAM_MAX:
        raise RefusedDatagram(Refusal.SIZE, f"{len(data)} bytes")
    body, signature = data[:-MAC_BYTES], data[-MAC_BYTES:]
    key = keys.signing
    if not hmac.compare_digest(mac(body, key), signature):
        other = keys.accepted
        if other is None or not hmac.compare_digest(mac(body, other), signature):
            raise RefusedDatagram(Refusal.FORGED, "no accepted key made its MAC")
        key = other
    if body[0] == _ARRAY_OF_TEN and body[1:2] != bytes((VERSION,)):
        raise RefusedDatagram(Refusal.VERSION, f"version {body[1:2].hex()}, this is version {VERSION}")
    try:
        datagram = _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError) as error:
        raise RefusedDatagram(Refusal.MALFORMED, str(error)) from error
    if datagram.key_id != key.id:
        raise RefusedDatagram(Refusal.MALFORMED, f"names key {datagram.key_id}, is signed by key {key.id}")
    return datagram


def mac(body: bytes, key: Key) -> bytes:
    """Keyed BLAKE2b of ``body``, 16 bytes. Source: RFC 7693; ``person`` keeps the key's other uses apart."""
    return hashlib.blake2b(body, digest_size=MAC_BYTES, key=key.secret, person=_MAC_PERSON).digest()
