"""Rule 19: rows at once while it is quiet, batched under load, never more than a datagram holds."""

import pytest

from ark.control import outbox as outbox_module
from ark.control.outbox import BATCH_NS, Outbox
from ark.control.wire import DATAGRAM_MAX, Beat, Datagram, Drop, Key, Keys, Put, open_datagram
from ark.errors import LocalProtocolError

KEY = Key(1, bytes(16))


def row(flow: int) -> Put:
    return Put(flow, 1, (2,), 0, 1, 100, 8, fallback=False, moves=0)


def new() -> Outbox:
    return Outbox(5, 100, bytes(16), KEY, [""])


def take(outbox: Outbox) -> list[Datagram]:
    outbox.check()
    return [open_datagram(send.data, Keys(KEY)) for send in outbox.take()]


def test_a_lone_row_goes_out_at_once_and_the_next_ones_share_a_datagram() -> None:
    outbox = new()
    outbox.put("", row(1), 0)
    outbox.tick(0)
    (first,) = take(outbox)
    assert (first.first_seq, first.messages) == (1, (row(1),))
    for flow in (2, 3):
        outbox.put("", row(flow), 10)
    outbox.drop("", 1, 20)
    outbox.tick(20)
    assert take(outbox) == []
    assert outbox.next_deadline() == BATCH_NS
    outbox.tick(BATCH_NS)
    (second,) = take(outbox)
    assert (second.number, second.first_seq) == (2, 2)
    assert second.messages == (row(2), row(3), Drop(1))
    assert outbox.next_deadline() is None


def test_a_full_datagram_does_not_wait_and_seqs_go_on_without_a_gap() -> None:
    outbox = new()
    for flow in range(1, 500):
        outbox.put("", row(flow), 0)
    outbox.beat(0)
    seq = 1
    for datagram in take(outbox):
        assert datagram.first_seq == seq
        seq += sum(isinstance(message, Put) for message in datagram.messages)
    assert seq == 500
    assert isinstance(datagram.messages[-1], Beat)
    assert datagram.messages[-1].rows == 499


def test_what_waits_can_be_sent_before_its_time() -> None:
    outbox = new()
    outbox.flush("", 0)
    outbox.flush("up.1", 0)
    outbox.put("", row(1), 0)
    outbox.flush("", 0)
    assert [datagram.messages for datagram in take(outbox)] == [(row(1),)]


def test_streams_are_opened_by_their_first_row_and_begin_anew_with_an_epoch() -> None:
    outbox = new()
    outbox.put("up.1", row(1), 0)
    assert set(outbox.subjects()) == {"", "up.1"}
    outbox.restart(101, [""])
    assert outbox.stream("up.1") is None
    outbox.put("", row(1), 0)
    outbox.tick(0)
    (datagram,) = take(outbox)
    assert (datagram.epoch, datagram.number, datagram.first_seq) == (101, 1, 1)


def test_a_stream_without_rows_falls_silent_unless_it_is_at_home() -> None:
    outbox = Outbox(5, 100, bytes(16), KEY, ["up.0"], idle_ns=100)

    def beats(now: int) -> set[str]:
        outbox.beat(now)
        return {send.subject for send in outbox.take()}

    outbox.put("down.1", row(1), 0)
    assert beats(0) == beats(1000) == {"up.0", "down.1"}
    outbox.drop("down.1", 1, 1000)
    assert beats(1000) == beats(1100) == {"up.0", "down.1"}
    assert beats(1101) == beats(2000) == {"up.0"}
    outbox.put("down.1", row(2), 3000)
    assert beats(3000) == {"up.0", "down.1"}


def test_a_host_may_announce_only_as_many_rows_as_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "ROWS_MAX", 2)
    outbox = new()
    for flow in (1, 2, 2):
        outbox.put("", row(flow), 0)
    with pytest.raises(LocalProtocolError, match="2 transfers at once"):
        outbox.put("", row(3), 0)


def test_direct_datagrams_are_numbered_together_and_sent_at_once() -> None:
    outbox = new()
    for host in (7, 8):
        outbox.direct(host, "there", Drop(1), b"\x92\x01\x02")
    sends = outbox.take()
    assert [(send.host, send.address, send.subject) for send in sends] == [
        (7, "there", "to.0000000000000007"), (8, "there", "to.0000000000000008"),
    ]  # fmt: skip
    assert [open_datagram(send.data, Keys(KEY)).number for send in sends] == [1, 2]
    assert all(len(send.data) <= DATAGRAM_MAX for send in sends)
