"""Rule 17: the wire form, and that no bytes whatever do more than be refused."""

from contextlib import suppress
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.control import wire
from ark.control.wire import (
    CHUNKS_MAX,
    DATAGRAM_MAX,
    Answer,
    Ask,
    Beat,
    Challenge,
    Chunk,
    Datagram,
    Drop,
    Key,
    Keys,
    Message,
    Newer,
    Numbered,
    Put,
    Refusal,
    RefusedDatagram,
    encode_message,
    open_datagram,
    seal,
)
from ark.errors import LocalProtocolError

OLD = Key(3, b"the old secret of the cluster")
NEW = Key(4, b"the new secret of the cluster")
STRANGER = Key(4, b"the secret of another cluster")
FABRIC = bytes(range(16))

naturals = st.integers(0, 2**63 - 1)
numbers = st.integers(1, 2**63 - 1)
words = st.integers(0, 2**64 - 1)
indices = st.integers(0, 65_535)
subjects = st.sampled_from(["", "up.3", "down.65535", wire.direct(2**64 - 1)])
puts = st.builds(
    Put,
    flow=naturals,
    state=st.integers(0, 1),
    paths=st.lists(indices, min_size=1, max_size=16).map(tuple),
    source=indices,
    target=indices,
    size_bytes=st.integers(0, 2**50),
    stamp=naturals,
    fallback=st.booleans(),
    moves=indices,
)
numbered = st.builds(Numbered, seq=st.integers(1, 2**63 - 1), put=puts)
messages = st.one_of(
    puts,
    st.builds(Drop, naturals),
    st.builds(Beat, naturals, words),
    st.builds(Ask, subjects, words),
    st.builds(
        Chunk,
        subjects,
        words,
        naturals,
        st.integers(0, CHUNKS_MAX - 1),
        st.integers(1, CHUNKS_MAX),
        st.lists(numbered, max_size=5).map(tuple),
    ),
    st.builds(Challenge, words),
    st.builds(Answer, words),
    st.builds(Newer, naturals),
)


def sealed(parts: list[bytes], key: Key = NEW) -> bytes:
    return seal(key, FABRIC, 2**64 - 1, 9, "", 5, 7, parts)


def signed(body: bytes, key: Key = NEW) -> bytes:
    return body + wire.mac(body, key)


@given(
    words,
    naturals,
    subjects,
    st.integers(1, 2**63 - 1),
    st.integers(1, 2**63 - 1),
    st.lists(messages, max_size=2),
)
def test_what_is_packed_is_what_is_read(
    host: int, epoch: int, subject: str, number: int, first_seq: int, said: list[Message]
) -> None:
    data = seal(
        NEW, FABRIC, host, epoch, subject, number, first_seq, [encode_message(message) for message in said]
    )
    assert open_datagram(data, Keys(NEW)) == Datagram(
        1, FABRIC, host, epoch, subject, number, first_seq, NEW.id, tuple(said), data[-16:]
    )
    assert msgspec.msgpack.decode(data)[2] == host


def test_both_keys_of_a_rotation_are_accepted_and_no_third() -> None:
    during = Keys(NEW, OLD)
    assert open_datagram(sealed([], NEW), during).key_id == NEW.id
    assert open_datagram(sealed([], OLD), during).key_id == OLD.id
    for data, keys in [
        (sealed([], OLD), Keys(NEW)),
        (sealed([], STRANGER), during),
        (sealed([], STRANGER), Keys(OLD)),
    ]:
        with pytest.raises(RefusedDatagram) as caught:
            open_datagram(data, keys)
        assert caught.value.refusal is Refusal.FORGED


def test_each_bit_of_a_datagram_is_under_the_mac() -> None:
    data = sealed([encode_message(Drop(5))])
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RefusedDatagram):
            open_datagram(bytes(changed), Keys(NEW, OLD))


@pytest.mark.parametrize("length", [0, 1, 16, DATAGRAM_MAX + 1, 65_507])
def test_a_datagram_of_impossible_length_is_refused_unread(length: int) -> None:
    with pytest.raises(RefusedDatagram) as caught:
        open_datagram(bytes(length), Keys(NEW))
    assert caught.value.refusal is Refusal.SIZE


def test_another_version_is_told_from_garbage() -> None:
    body = sealed([])[:-16]
    with pytest.raises(RefusedDatagram, match="version 02, this is version 1") as caught:
        open_datagram(signed(body[:1] + b"\x02" + body[2:]), Keys(NEW))
    assert caught.value.refusal is Refusal.VERSION
    with pytest.raises(RefusedDatagram) as caught:
        open_datagram(signed(b"\x9b" + body[1:]), Keys(NEW))
    assert caught.value.refusal is Refusal.MALFORMED


def test_a_datagram_must_name_the_key_that_signed_it() -> None:
    lying = Key(OLD.id, NEW.secret)
    with pytest.raises(RefusedDatagram, match="names key 3, is signed by key 4"):
        open_datagram(sealed([], lying), Keys(NEW, OLD))


def test_keys_and_datagrams_of_our_own_that_break_a_bound_are_our_fault() -> None:
    for key_id, secret in [(128, bytes(16)), (-1, bytes(16)), (1, bytes(15)), (1, bytes(65))]:
        with pytest.raises(LocalProtocolError):
            Key(key_id, secret)
    with pytest.raises(LocalProtocolError, match="both keys have the id 4"):
        Keys(NEW, STRANGER)
    with pytest.raises(LocalProtocolError, match="too many"):
        sealed([encode_message(Drop(2**63 - 1))] * 200)


def test_the_room_for_messages_is_what_the_longest_envelope_leaves() -> None:
    longest = seal(
        Key(127, bytes(16)),
        FABRIC,
        2**64 - 1,
        2**63 - 1,
        "x" * wire.SUBJECT_MAX,
        2**63 - 1,
        2**63 - 1,
        [bytes(1)] * wire.ROOM,
    )
    assert len(longest) == DATAGRAM_MAX


def test_names_become_ids_and_subjects() -> None:
    # BLAKE2b as RFC 7693 has it: 8 bytes of "h0", personalized by "ark-host-id". Hosts rely on this number.
    assert wire.host_id("h0") == 0x6419_EBAA_968F_A99F != wire.host_id("h1")
    assert (wire.up(3), wire.down(70)) == ("up.3", "down.70")
    assert len(wire.direct(2**64 - 1)) <= wire.SUBJECT_MAX


GOOD: list[object] = [1, FABRIC, 5, 9, "", 5, 7, NEW.id, [[0, 1, 1, [2], 0, 1, 100, 8, False, 0]]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (1, bytes(15)), (1, "text of 16 bytes"), (2, -1), (2, 1.0), (3, -1), (3, 2**63), (3, None),
        (4, "x" * 25), (4, 7), (5, 0), (5, 2**63), (6, 0), (7, 128), (8, None),
        (8, [[8]]), (8, [[0]]), (8, [[1, 2, 3]]), (8, [[]]),
        (8, [0]), (8, [["0"]]), (8, [[0, 1, 2, [2], 0, 1, 100, 8, False, 0]]),
        (8, [[0, 1, 1, [], 0, 1, 100, 8, False, 0]]), (8, [[0, 1, 1, [2] * 17, 0, 1, 100, 8, False, 0]]),
        (8, [[0, 1, 1, [65_536], 0, 1, 100, 8, False, 0]]),
        (8, [[0, 1, 1, [2], 0, 1, 2**50 + 1, 8, False, 0]]),
        (8, [[0, 1, 1, [2], 0, 1, 100, 8, 0, 0]]), (8, [[0, 1, 1, [2], 0, 1, float("nan"), 8, False, 0]]),
        (8, [[4, "", 1, 1, CHUNKS_MAX, CHUNKS_MAX, []]]), (8, [[4, "", 1, 1, 0, 0, []]]),
        (8, [[4, "", 1, 1, 0, 1, [[0, [0, 1, 1, [2], 0, 1, 100, 8, False, 0]]]]]),
    ],
)  # fmt: skip
def test_each_field_is_bounded_inside_a_valid_mac(field: int, value: object) -> None:
    assert open_datagram(signed(body_of(GOOD)), Keys(NEW)).first_seq == 7
    fields = list(GOOD)
    fields[field] = value
    with pytest.raises(RefusedDatagram) as caught:
        open_datagram(signed(body_of(fields)), Keys(NEW))
    assert caught.value.refusal is Refusal.MALFORMED


def body_of(fields: list[object]) -> bytes:
    return msgspec.msgpack.encode([*fields, bytes(16)])[:-16]


@given(st.binary(max_size=1300), st.booleans())
def test_no_bytes_raise_anything_but_a_refusal(data: bytes, sign: bool) -> None:
    with suppress(RefusedDatagram):
        open_datagram(signed(data) if sign else data, Keys(NEW, OLD))


def test_twenty_thousand_damaged_datagrams_are_read_or_refused() -> None:
    rng = Random(20_000)
    good = [
        sealed([encode_message(message)] * 3)
        for message in (
            Put(1, 1, (2,), 0, 1, 100, 8, False, 0), Drop(1), Beat(1, 2),
            Ask("", 3), Challenge(1), Answer(1), Newer(2),
            Chunk("", 1, 5, 0, 1, (Numbered(3, Put(1, 1, (2,), 0, 1, 100, 8, False, 0)),)),
        )
    ]  # fmt: skip
    refusals = dict.fromkeys(Refusal, 0)
    read = 0
    for turn in range(20_000):
        body = bytearray(rng.choice(good)[:-16])
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(body))
            damage = rng.randrange(4)
            if damage == 0:
                body[at] = rng.randrange(256)
            elif damage == 1:
                del body[at:]
            elif damage == 2:
                body[at:at] = rng.randbytes(rng.choice((1, 9, 300)))
            else:
                body[at:at] = bytes((rng.choice((0x91, 0x81, 0xDD, 0xC6)),)) * rng.choice((1, 5, 1000))
            body = body or bytearray(1)
        data = signed(bytes(body)) if turn % 2 else bytes(body) + rng.randbytes(16)
        try:
            open_datagram(data, Keys(NEW))
            read += 1
        except RefusedDatagram as error:
            refusals[error.refusal] += 1
    assert read + sum(refusals.values()) == 20_000
    assert min(read, *refusals.values()) > 50, (read, refusals)
