"""Rules 2, 10 and 11: seqs, gaps, tombstones, digests and snapshots of one stream."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ark.control import stream
from ark.control.stream import InStream, OutStream, ReplayWindow, mark
from ark.control.wire import Numbered, Put, encode_message, encode_numbered
from ark.errors import PeerProtocolError

Said = tuple[int, Put | int]
"""What a sender said: the seq, and the row it put or the flow it dropped."""


def row(flow: int, size_bytes: int = 100) -> Put:
    return Put(flow, 1, (2,), 0, 1, size_bytes, 8, fallback=False, moves=0)


def hear(receiver: InStream, said: Said) -> None:
    seq, what = said
    if isinstance(what, int):
        receiver.drop(seq, what)
    else:
        receiver.put(seq, what)
    receiver.check()


def held(stream: OutStream | InStream) -> dict[int, tuple[int, Put]]:
    return {flow: (row.seq, row.put) for flow, row in stream.rows.items()}


def snapshot(sender: OutStream) -> tuple[int, list[Numbered]]:
    return sender.seq, [Numbered(held.seq, held.put) for held in sender.rows.values()]


def speak(sender: OutStream, steps: Sequence[tuple[int, int]]) -> list[Said]:
    """Let the sender put (size >= 0) or drop (size < 0) flows, and return what it said."""
    said: list[Said] = []
    for flow, size in steps:
        if size >= 0:
            put = row(flow, size)
            said.append((sender.put(put), put))
        elif flow in sender.rows:
            said.append((sender.drop(flow), flow))
        sender.check()
    return said


steps_of_a_sender = st.lists(st.tuples(st.integers(1, 6), st.integers(-2, 2)), max_size=40)


@given(steps_of_a_sender, st.randoms(use_true_random=False))
def test_reordered_and_repeated_messages_change_nothing(steps: list[tuple[int, int]], rng: Random) -> None:
    sender, receiver = OutStream(), InStream()
    said = speak(sender, steps)
    for message in rng.sample(said * 2, len(said) * 2):
        hear(receiver, message)
    assert held(receiver) == held(sender)
    assert receiver.digest == sender.digest
    assert receiver.through == receiver.newest == sender.seq
    assert receiver.whole
    assert not receiver.tombstones


@given(steps_of_a_sender, st.integers(0, 40), st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_snapshot_mends_any_loss_and_brings_nothing_back(
    steps: list[tuple[int, int]], cut: int, kept_of_four: int, rng: Random
) -> None:
    """Messages are lost, late and repeated while a snapshot is under way; none may undo a DROP that was
    heard."""
    sender, receiver = OutStream(), InStream()
    early = speak(sender, steps[:cut])
    for message in rng.sample(early, len(early) * kept_of_four // 4):
        hear(receiver, message)
    receiver.hold_tombstones()
    seq, rows = snapshot(sender)
    late = speak(sender, [(flow + 10 if size >= 0 else flow, size) for flow, size in steps[cut:]])
    before = rng.sample(late, len(late) * kept_of_four // 4)
    for message in before:
        hear(receiver, message)
    dropped = {what for _, what in before if isinstance(what, int)}
    difference = receiver.apply_snapshot(seq, rows)
    receiver.check()
    assert difference is not None
    assert not dropped & receiver.rows.keys()
    assert not dropped & {held.put.flow for held, _ in difference.puts}
    for message in rng.sample(early + late, len(early + late)):
        hear(receiver, message)
        assert not dropped & receiver.rows.keys()
    assert held(receiver) == held(sender)
    assert receiver.whole


@given(steps_of_a_sender)
def test_the_digest_tells_any_two_sets_of_rows_apart(steps: list[tuple[int, int]]) -> None:
    sender = OutStream()
    seen: dict[int, dict[int, tuple[int, Put]]] = {}
    for step in steps:
        speak(sender, [step])
        assert seen.setdefault(sender.digest, held(sender)) == held(sender)


def test_a_late_put_is_refused_while_its_drop_waits_for_earlier_seqs_and_for_ever_after() -> None:
    receiver = InStream()
    assert receiver.drop(3, 7) is False
    assert receiver.tombstones == {7: 3}
    assert [receiver.covers(seq) for seq in (1, 2, 3, 4)] == [False, False, True, False]
    assert receiver.put(2, row(7)) is None
    assert receiver.put(1, row(7)) is None
    assert not receiver.tombstones
    assert receiver.put(1, row(7)) is None
    assert not receiver.rows


def test_a_drop_that_was_overtaken_by_a_later_put_ends_nothing() -> None:
    receiver = InStream()
    receiver.put(1, row(7))
    receiver.put(3, row(7, 50))
    assert receiver.drop(2, 7) is False
    assert receiver.rows[7].put.size_bytes == 50


def test_a_put_after_a_drop_of_the_same_flow_opens_its_row_again() -> None:
    receiver = InStream()
    receiver.drop(2, 7)
    assert receiver.put(3, row(7)) is not None
    receiver.check()


def test_an_old_snapshot_is_refused_when_drops_after_it_are_forgotten() -> None:
    sender, receiver = OutStream(), InStream()
    for message in speak(sender, [(1, 5)]):
        hear(receiver, message)
    seq, rows = snapshot(sender)
    for message in speak(sender, [(1, -1)]):
        hear(receiver, message)
    assert receiver.apply_snapshot(seq, rows) is None
    receiver.hold_tombstones()
    assert receiver.apply_snapshot(seq, rows) is None
    assert not receiver.rows


def test_a_snapshot_replaces_a_row_that_went_wrong() -> None:
    sender, receiver = OutStream(), InStream()
    speak(sender, [(1, 5), (2, 5)])
    hear(receiver, (1, row(1, 6)))
    hear(receiver, (2, row(2, 5)))
    assert receiver.digest != sender.digest
    difference = receiver.apply_snapshot(*snapshot(sender))
    assert difference is not None
    assert [held.put for held, _ in difference.puts] == [row(1, 5)]
    assert receiver.digest == sender.digest


@pytest.mark.parametrize(
    "rows",
    [[Numbered(6, row(1))], [Numbered(1, row(1)), Numbered(2, row(1))]],
    ids=["a row newer than its snapshot", "a flow twice"],
)
def test_a_snapshot_that_contradicts_itself_is_refused_whole(rows: list[Numbered]) -> None:
    receiver = InStream()
    with pytest.raises(PeerProtocolError):
        receiver.apply_snapshot(5, rows)
    assert not receiver.rows
    assert receiver.through == 0


def test_a_full_stream_refuses_further_flows_but_no_change_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "ROWS_MAX", 3)
    receiver = InStream()
    for seq in (1, 2, 3):
        receiver.put(seq, row(seq))
    with pytest.raises(PeerProtocolError, match="no room for a row beside the 3"):
        receiver.put(4, row(4))
    assert receiver.put(5, row(3, 50)) is not None
    assert receiver.drop(6, 2)
    assert receiver.put(7, row(5)) is not None
    receiver.check()
    with pytest.raises(PeerProtocolError):
        receiver.apply_snapshot(9, [Numbered(seq, row(seq)) for seq in (1, 2, 3, 4)])


def test_too_many_gaps_are_given_up_from_the_oldest_on() -> None:
    receiver = InStream()
    for seq in range(2, 2 * (stream.GAPS_MAX + 2), 2):
        hear(receiver, (seq, row(seq)))
    assert receiver.through == receiver.given_up + 1 == 2
    assert not receiver.whole
    hear(receiver, (1, row(1)))
    assert 1 not in receiver.rows
    assert receiver.apply_snapshot(0, []) is None
    assert receiver.apply_snapshot(1, [Numbered(1, row(1))]) is None
    receiver.hold_tombstones()
    newest = receiver.newest
    assert receiver.apply_snapshot(newest, [Numbered(1, row(1))]) is not None
    assert receiver.rows.keys() == {1}
    assert receiver.whole


def test_too_many_tombstones_give_up_every_gap_and_the_snapshot_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "TOMBSTONES_MAX", 3)
    receiver = InStream()
    hear(receiver, (5, 5))
    receiver.hold_tombstones()
    for seq in (6, 7, 8):
        hear(receiver, (seq, seq))
    assert not receiver.tombstones
    assert receiver.through == receiver.given_up == 8
    hear(receiver, (4, row(8)))
    assert receiver.apply_snapshot(7, [Numbered(4, row(8))]) is None
    assert not receiver.rows
    assert receiver.apply_snapshot(8, []) == ([], [])
    assert receiver.whole


def test_an_expired_stream_keeps_its_seq_and_waits_for_a_snapshot() -> None:
    sender, receiver = OutStream(), InStream()
    said = speak(sender, [(1, 5), (2, 5), (3, 5)])
    hear(receiver, said[0])
    hear(receiver, said[2])
    assert sorted(receiver.expire()) == [1, 3]
    receiver.check()
    assert receiver.through == 3
    assert not receiver.whole
    for message in said:
        hear(receiver, message)
    assert not receiver.rows
    assert receiver.apply_snapshot(*snapshot(sender)) is not None
    assert held(receiver) == held(sender)


def test_dropping_tombstones_of_a_snapshot_that_never_came() -> None:
    receiver = InStream()
    hear(receiver, (1, row(7)))
    receiver.hold_tombstones()
    hear(receiver, (2, 7))
    assert receiver.tombstones == {7: 2}
    receiver.release_tombstones()
    assert not receiver.tombstones


@given(st.lists(st.integers(1, 40), max_size=60))
def test_a_number_is_accepted_once(numbers: list[int]) -> None:
    window = ReplayWindow()
    seen: set[int] = set()
    for number in numbers:
        assert window.accept(number) == (number not in seen)
        seen.add(number)
        assert window.newest == max(seen)


@given(st.lists(st.integers(1, 6000), max_size=60))
@settings(max_examples=200)
def test_a_number_too_old_to_tell_is_refused(numbers: list[int]) -> None:
    window = ReplayWindow()
    seen: set[int] = set()
    for number in numbers:
        fresh = number not in seen and number > max(seen, default=0) - stream.WINDOW
        assert window.accept(number) == fresh
        if fresh:
            seen.add(number)


def test_a_mark_is_over_the_bytes_of_a_row_in_a_snapshot() -> None:
    for seq in (1, 127, 128, 2**40):
        assert encode_numbered(seq, encode_message(row(3))) == encode_message(Numbered(seq, row(3)))


def test_a_mark_depends_on_the_seq_and_on_every_field() -> None:
    put = row(1)
    marks = {mark(1, encode_message(put)), mark(2, encode_message(put))}
    for field, value in [
        ("flow", 2), ("state", 0), ("paths", (3,)), ("source", 1), ("target", 2), ("size_bytes", 1),
        ("stamp", 9), ("fallback", True), ("moves", 1),
    ]:  # fmt: skip
        fields = {name: getattr(put, name) for name in put.__struct_fields__} | {field: value}
        marks.add(mark(1, encode_message(Put(**fields))))
    assert len(marks) == 11
