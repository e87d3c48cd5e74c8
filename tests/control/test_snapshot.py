"""Rule 11: snapshots in chunks of one datagram each."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.control import snapshot
from ark.control.snapshot import Assembly, split
from ark.control.wire import (
    DATAGRAM_MAX,
    MISSING_MAX,
    SUBJECT_MAX,
    Chunk,
    Key,
    Numbered,
    Put,
    open_datagram,
    seal,
)
from ark.control.wire import Keys as WireKeys
from ark.errors import LocalProtocolError

KEY = Key(1, bytes(16))


def held(flow: int, *, wide: bool = False) -> Numbered:
    if wide:
        put = Put(
            2**62 + flow, 1, (65_535,) * 16, 65_535, 65_535, 2**50, 2**63 - 1, fallback=True, moves=65_535
        )
        return Numbered(2**62, put)
    return Numbered(flow, Put(flow, 1, (2,), 0, 1, 100, 8, fallback=False, moves=0))


def chunks_of(rows: list[Numbered], *, request: int = 5, seq: int = 2**62) -> list[Chunk]:
    """Cut, sent and read again."""
    chunks = []
    for part in split("x" * SUBJECT_MAX, request, seq, rows):
        data = seal(KEY, bytes(16), 2**64 - 1, 2**63 - 1, "x" * SUBJECT_MAX, 2**63 - 1, 1, [part])
        assert len(data) <= DATAGRAM_MAX
        (chunk,) = open_datagram(data, WireKeys(KEY)).messages
        assert isinstance(chunk, Chunk)
        chunks.append(chunk)
    return chunks


@given(st.lists(st.booleans(), max_size=150), st.randoms(use_true_random=False))
def test_chunks_fit_datagrams_and_give_the_rows_in_any_order(widths: list[bool], rng: Random) -> None:
    rows = [held(flow, wide=wide) for flow, wide in enumerate(widths, 1)]
    chunks = chunks_of(rows)
    assembly = Assembly(5)
    complete = [assembly.add(chunk) for chunk in rng.sample(chunks, len(chunks))]
    assert complete[:-1] == [None] * (len(chunks) - 1)
    assert complete[-1] == rows
    assert assembly.missing() == ()


def test_missing_chunks_are_named_as_many_as_fit_one_request() -> None:
    assembly = Assembly(5)
    assert assembly.missing() == ()
    assembly.add(Chunk("", 5, 9, 3, 1000, ()))
    assert assembly.missing() == (0, 1, 2, *range(4, MISSING_MAX + 1))


def test_chunks_of_two_snapshots_are_never_mixed() -> None:
    old, new = chunks_of([held(flow) for flow in range(1, 91)], seq=90), chunks_of([held(9)] * 120, seq=91)
    assembly = Assembly(5)
    assert assembly.add(old[0]) is None
    assert assembly.add(new[1]) is None
    assert assembly.add(old[1]) is None
    assert 0 in assembly.missing()
    other = msgspec.structs.replace(new[0], count=len(new) + 1)
    assert assembly.add(other) is None
    assert assembly.add(msgspec.structs.replace(new[0], index=len(new))) is None
    assert 0 in assembly.missing()
    assert assembly.seq == 91


def test_more_rows_than_a_snapshot_may_have_are_our_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "CHUNKS_MAX", 2)
    with pytest.raises(LocalProtocolError, match="a snapshot of 3 chunks"):
        split("", 1, 1, [held(flow, wide=True) for flow in range(21)])
