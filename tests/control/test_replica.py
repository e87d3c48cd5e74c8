"""Rules 11 to 14, 16 to 18: membership, first contact, epochs, leases, leaks, and hostile peers."""

from random import Random

import msgspec
import pytest
from tests.control.rig import (
    ADDRESSES,
    FABRIC,
    KEY,
    SIZE,
    WALL_NS,
    A,
    B,
    C,
    Wires,
    acquainted,
    controller,
    datagram,
)  # fmt: skip

from ark.control import own_id, peer_rows, replica, wire
from ark.control import peer as peer_module
from ark.control.epoch import EPOCH_MAX
from ark.control.lease import LEASE_NS
from ark.control.reports import Ignored, Trouble
from ark.control.stream import OutStream
from ark.control.wire import (
    Answer,
    Ask,
    Beat,
    Challenge,
    Chunk,
    Drop,
    Key,
    Keys,
    Message,
    Newer,
    Numbered,
    Put,
    direct,
)  # fmt: skip
from ark.units import NS_PER_S

PUT = Put(1, 1, (2,), 0, 1, SIZE, WALL_NS, fallback=False, moves=0)


def ignored(wires: Wires, host: int = A) -> dict[Ignored, int]:
    return {why: count for why, count in wires.hosts[host].replica.counters.ignored.items() if count}


def troubles(wires: Wires) -> set[Trouble]:
    return {report.trouble for report in wires.reports}


def test_rows_of_a_stranger_count_once_it_has_answered_a_nonce() -> None:
    wires = Wires({A: controller(A)})
    output = wires.give(A, datagram(B, PUT), ADDRESSES[B])
    assert not wires.rows(A, B)
    (challenge,) = output.sends
    assert (challenge.host, challenge.address) == (B, ADDRESSES[B])
    said = wire.open_datagram(challenge.data, Keys(KEY)).messages[0]
    assert isinstance(said, Challenge)
    wires.give(A, datagram(B, Answer(said.nonce ^ 1), subject=direct(A)), ADDRESSES[B])
    assert not wires.rows(A, B)
    wires.give(A, datagram(B, Answer(said.nonce), subject=direct(A), number=1001), ADDRESSES[B])
    assert wires.rows(A, B) == {1}
    assert wires.hosts[A].replica.heard == 1
    wires.give(A, datagram(B, Answer(said.nonce), subject=direct(A), number=1002), ADDRESSES[B])
    assert wires.hosts[A].replica.heard == 1


def test_a_recording_played_to_a_restarted_receiver_changes_nothing() -> None:
    wires = acquainted(A, B)
    wires.arrive(B, 7)
    recorded = [send for source, send in wires.sent if source == B]
    wires.deliver()
    assert wires.rows(A, B) == {7}
    restarted = Wires({A: controller(A, epoch=101)})
    for send in recorded:
        restarted.give(A, send.data, ADDRESSES[B])
    restarted.wait(100_000_000)
    assert not restarted.rows(A, B)
    assert restarted.hosts[A].replica.heard == 0


@pytest.mark.parametrize(
    ("data", "address", "why", "trouble"),
    [
        (datagram(B, fabric=bytes(16)), ADDRESSES[B], Ignored.OTHER_FABRIC, Trouble.OTHER_FABRIC),
        (datagram(77), "10.0.0.77", Ignored.UNKNOWN_HOST, None),
        (datagram(B), "10.0.0.77", Ignored.WRONG_ADDRESS, Trouble.WRONG_ADDRESS),
        (datagram(B, subject="up.3"), ADDRESSES[B], Ignored.WRONG_SUBJECT, None),
        (datagram(B, subject=direct(C)), ADDRESSES[B], Ignored.WRONG_SUBJECT, None),
        (datagram(A), ADDRESSES[A], Ignored.OWN_ECHO, None),
        (datagram(A, epoch=5), ADDRESSES[A], Ignored.OWN_ECHO, None),
        (datagram(A), ADDRESSES[B], Ignored.OWN_ID, Trouble.CLONE),
        (datagram(A, epoch=101), ADDRESSES[A], Ignored.OWN_ID, Trouble.CLONE),
        (datagram(B, epoch=99), ADDRESSES[B], Ignored.OLD_EPOCH, None),
        (datagram(B, number=1), ADDRESSES[B], Ignored.REPLAYED, None),
        (datagram(B, Challenge(1)), ADDRESSES[B], Ignored.MISPLACED, None),
        (datagram(B, PUT, subject=direct(A)), ADDRESSES[B], Ignored.MISPLACED, None),
        (datagram(B, Chunk("", 5, 1, 0, 1, ()), subject=direct(A)), ADDRESSES[B], Ignored.UNASKED, None),
    ],
)  # fmt: skip
def test_what_is_ignored_is_counted_and_changes_nothing(
    data: bytes, address: str, why: Ignored, trouble: Trouble | None
) -> None:
    wires = acquainted(A, B)
    wires.arrive(B, 7)
    wires.deliver()
    before = list(wires.hosts[A].view.table)
    wires.give(A, data, address)
    assert ignored(wires) == {why: 1}
    assert troubles(wires) == ({trouble} if trouble else set())
    assert list(wires.hosts[A].view.table) == before
    assert wires.hosts[A].replica.cloned == (why is Ignored.OWN_ID)


def test_bytes_without_a_key_of_ours_are_refused() -> None:
    wires = acquainted(A, B)
    wires.give(A, datagram(B, PUT, key=Key(1, bytes(16))), ADDRESSES[B])
    assert wires.hosts[A].replica.counters.refused[wire.Refusal.FORGED] == 1
    assert not wires.rows(A, B)


def test_keys_are_rotated_without_a_gap() -> None:
    wires = acquainted(A, B)
    new = Key(2, b"the next secret of the cluster")
    for step in (Keys(KEY, new), Keys(new, KEY), Keys(new)):
        for one in wires.hosts.values():
            one.replica.reconfigure(step, one.replica.config.peers)
        wires.wait(1_000_000_000)
    wires.arrive(B, 7)
    wires.deliver()
    assert wires.rows(A, B) == {7}
    assert not any(wires.hosts[A].replica.counters.refused.values())


def test_a_lease_ends_the_rows_and_keeps_epoch_and_seq_and_wants_a_new_proof() -> None:
    wires = acquainted(A, B)
    wires.arrive(B, 7, size_bytes=10**12)
    wires.deliver()
    wires.wait(2_900_000_000, lost=True)
    assert wires.rows(A, B) == {7}
    wires.wait(200_000_000, lost=True)
    assert not wires.rows(A, B)
    known = wires.hosts[A].replica.peers[B]
    assert (known.epoch, known.streams[""].through, known.proven) == (100, 1, False)
    assert not wires.hosts[A].replica.is_live(B)
    wires.wait(1_000_000_000)
    assert wires.rows(A, B) == {7}


def test_a_snapshot_mends_a_loss_and_is_asked_for_again_until_whole() -> None:
    wires = acquainted(A, B)
    for flow in range(1, 101):
        wires.arrive(B, flow, size_bytes=10**13)
    wires.wait(10_000_000, lost=True)
    lost = Random(5)
    end = wires.now + 2_000_000_000
    while wires.now < end:
        wires.wait(1_000_000, lost=False) if lost.random() < 0.5 else wires.wait(1_000_000, lost=True)
    assert wires.rows(A, B) == set(range(1, 101))
    assert wires.hosts[A].replica.counters.mended >= 1


def test_a_peer_that_restarts_begins_with_nothing() -> None:
    wires = acquainted(A, B)
    wires.arrive(B, 7)
    wires.deliver()
    wires.hosts[B] = controller(B, epoch=200, now=wires.now)
    wires.wait(1_000_000_000)
    assert not wires.rows(A, B)
    assert wires.hosts[A].replica.peers[B].epoch == 200
    assert wires.hosts[A].replica.counters.epochs_seen == 1


def test_a_newcomer_with_a_smaller_epoch_is_told_and_jumps_with_all_its_rows() -> None:
    wires = acquainted(A, B)
    wires.hosts[B] = controller(B, epoch=50, now=wires.now)
    wires.arrive(B, 7)
    wires.wait(500_000_000)
    assert wires.hosts[B].replica.epoch == wires.hosts[B].decider.epoch == 101
    assert wires.rows(A, B) == {7}
    assert troubles(wires) == {Trouble.NEW_EPOCH}


def test_jumps_are_limited_and_too_many_mean_that_somebody_lives_under_our_id() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]

    def tell(known: int, number: int) -> None:
        wires.give(A, datagram(B, Newer(known), subject=direct(A), number=number), ADDRESSES[B])

    def state() -> tuple[int, bool]:
        return one.replica.epoch, one.replica.cloned

    tell(EPOCH_MAX, 1)
    tell(50, 2000)
    tell(EPOCH_MAX, 2001)
    assert troubles(wires) == {Trouble.LAST_EPOCH}
    assert one.replica.counters.jumps == 0
    tell(200, 2002)
    tell(300, 2003)
    assert state() == (201, False)
    for jump in range(2, own_id.JUMPS_MAX + 1):
        wires.now += own_id.JUMP_NS
        tell(1000 * jump, 2003 + jump)
    last = 1000 * own_id.JUMPS_MAX + 1
    assert state() == (last, False)
    wires.now += own_id.JUMP_NS
    tell(10**6, 3000)
    tell(10**6, 3001)
    assert state() == (last, True)
    wires.wait(own_id.CLONE_LEASES * LEASE_NS + 1)
    assert state()[1] is False


def test_a_row_counts_as_long_as_the_heartbeats_of_its_owner_count_it() -> None:
    """A row that its owner has no more is no leak here for long: the digest shows it."""
    wires = acquainted(A, B)
    stream = OutStream()
    stream.put(PUT)

    def beat(times: int) -> None:
        for _ in range(times):
            beat = Beat(len(stream.rows), stream.digest)
            number = 1000 + wires.now
            wires.give(A, datagram(B, beat, number=number, first_seq=stream.seq + 1), ADDRESSES[B])
            wires.wait(NS_PER_S)

    del wires.hosts[B]
    wires.give(A, datagram(B, PUT, first_seq=1), ADDRESSES[B])
    beat(60)
    assert wires.rows(A, B) == {1}
    stream.drop(PUT.flow)
    beat(1)
    assert not wires.rows(A, B)
    assert Trouble.LEAK not in troubles(wires)


def test_a_row_that_does_not_fit_the_fabric_never_counts_and_hides_what_it_replaces() -> None:
    wires = acquainted(A, B)
    wires.give(A, datagram(B, PUT), ADDRESSES[B])
    assert wires.rows(A, B) == {1}
    bad = [
        msgspec.structs.replace(PUT, paths=(4,)),
        msgspec.structs.replace(PUT, source=2),
        msgspec.structs.replace(PUT, target=65_535),
        msgspec.structs.replace(PUT, paths=(1, 1)),
    ]
    for seq, put in enumerate(bad, 2):
        wires.give(A, datagram(B, put, number=1000 + seq, first_seq=seq), ADDRESSES[B])
        assert not wires.rows(A, B)
    assert wires.hosts[A].replica._rows.misfits == 4


def test_a_row_of_a_stranger_that_does_not_fit_does_not_count_when_it_has_answered_either() -> None:
    wires = Wires({A: controller(A)})
    bad = msgspec.structs.replace(PUT, flow=2, paths=(4,))
    (challenge,) = wires.give(A, datagram(B, PUT, bad), ADDRESSES[B]).sends
    said = wire.open_datagram(challenge.data, Keys(KEY)).messages[0]
    assert isinstance(said, Challenge)
    wires.give(A, datagram(B, Answer(said.nonce), subject=direct(A), number=1001), ADDRESSES[B])
    known = wires.hosts[A].replica.peers[B]
    assert known.proven
    assert known.streams[""].rows.keys() == {1, 2}  # held, so that digests agree
    assert wires.rows(A, B) == {1}


def test_a_drop_that_a_newer_put_has_overtaken_ends_nothing() -> None:
    wires = acquainted(A, B)
    again = msgspec.structs.replace(PUT, paths=(3,))
    for seq, message in ((1, PUT), (3, again), (2, Drop(PUT.flow))):
        wires.give(A, datagram(B, message, number=1000 + seq, first_seq=seq), ADDRESSES[B])
    row = wires.hosts[A].view.table.get(B, PUT.flow)
    assert row is not None
    assert (row.seq, row.paths) == (3, (3,))
    assert wires.hosts[A].replica.counters.drops == 0
    assert not ignored(wires)
    wires.give(A, datagram(B, Drop(PUT.flow), number=1004, first_seq=4), ADDRESSES[B])
    assert not wires.rows(A, B)
    assert wires.hosts[A].replica.counters.drops == 1


def test_a_snapshot_older_than_its_request_changes_nothing_and_is_asked_for_again() -> None:
    """A DROP between the two may be forgotten here."""
    wires = acquainted(A, B)
    one = wires.hosts[A]
    other = msgspec.structs.replace(PUT, flow=2)
    wires.give(A, datagram(B, PUT, first_seq=5), ADDRESSES[B])

    def answer(number: int, seq: int, *rows: Numbered) -> None:
        asks: list[Ask] = []
        while not asks:
            wires.now = max(wires.now, one.next_deadline())
            sends = wires.follow(A, one.tick(wires.now, WALL_NS + wires.now)).sends
            messages = [m for send in sends for m in wire.open_datagram(send.data, Keys(KEY)).messages]
            asks = [message for message in messages if isinstance(message, Ask)]
        chunk = Chunk("", asks[0].request, seq, 0, 1, rows)
        wires.give(A, datagram(B, chunk, subject=direct(A), number=number), ADDRESSES[B])

    answer(1001, 4, Numbered(4, other))
    assert wires.rows(A, B) == {1}
    assert (one.replica.counters.mended, ignored(wires)) == (0, {})
    wires.give(A, datagram(B, Beat(2, 0), number=1002, first_seq=6), ADDRESSES[B])
    answer(1002, 5, Numbered(4, other), Numbered(5, PUT))
    assert wires.rows(A, B) == {1, 2}
    assert (one.replica.counters.mended, ignored(wires)) == (1, {})


def test_a_stamp_from_the_future_is_told_and_its_row_kept_and_the_clock_left() -> None:
    wires = acquainted(A, B)
    ahead = msgspec.structs.replace(PUT, stamp=WALL_NS + 10**15)
    wires.give(A, datagram(B, ahead), ADDRESSES[B])
    assert wires.rows(A, B) == {1}
    assert troubles(wires) == {Trouble.CLOCK_AHEAD}
    assert wires.hosts[A].clock.last < WALL_NS + 10**12


def test_rows_beyond_the_room_are_ignored_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    wires = acquainted(A, B)
    monkeypatch.setattr(peer_rows, "ROWS_MAX", 3)
    for flow in range(1, 6):
        wires.arrive(B, flow, size_bytes=10**13)
    wires.wait(1_000_000_000)
    assert len(wires.rows(A, B)) == 3
    assert ignored(wires)[Ignored.TOO_MANY_ROWS] == 2
    assert ignored(wires)[Ignored.BAD_SNAPSHOT] >= 1
    monkeypatch.setattr(peer_rows, "ROWS_MAX", 5)
    wires.wait(1_000_000_000)
    assert wires.rows(A, B) == {1, 2, 3, 4, 5}


def test_a_full_list_of_peers_forgets_the_one_silent_for_longest_and_no_live_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replica, "PEERS_MAX", 2)
    wires = Wires({A: controller(A, members=False)})
    for host in (10, 11, 12):
        wires.give(A, datagram(host), f"10.0.0.{host}")
    assert wires.hosts[A].replica.peers.keys() == {10, 11}
    assert ignored(wires) == {Ignored.TOO_MANY_PEERS: 1}
    wires.wait(4_000_000_000, lost=True)
    wires.give(A, datagram(12), "10.0.0.12")
    assert wires.hosts[A].replica.peers.keys() == {11, 12}


def test_a_peer_that_sends_too_fast_is_cut_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "DATAGRAMS_BURST_MAX", 5)
    wires = acquainted(A, B, C)
    for number in range(20):
        wires.give(A, datagram(B, number=1000 + number), ADDRESSES[B])
    wires.give(A, datagram(C), ADDRESSES[C])
    assert 10 <= ignored(wires)[Ignored.TOO_FAST] <= 16
    received = wires.hosts[A].replica.counters.received
    wires.now += 1_000_000
    wires.give(A, datagram(B, number=2000), ADDRESSES[B])
    assert wires.hosts[A].replica.counters.received == received + 1


def test_a_stranger_gets_no_snapshot() -> None:
    wires = Wires({A: controller(A)})
    wires.give(A, datagram(B, Ask("", 5), subject=direct(A)), ADDRESSES[B])
    assert ignored(wires) == {Ignored.UNPROVEN: 1}
    assert wires.hosts[A].replica.counters.served == 0


def hostile(rng: Random) -> Message:
    """A message of right form and wrong sense, mostly."""
    seq = rng.choice((1, 2, 5, 2**62, 2**63 - 1))
    put = Put(
        rng.choice((1, 2, 3, 2**63 - 1)), rng.randrange(2), tuple(rng.choices(range(6), k=rng.randint(1, 3))),
        rng.choice((0, 1, 2, 65_535)), rng.choice((0, 1, 2)), rng.choice((0, SIZE, 2**50)),
        rng.choice((0, WALL_NS, 2**63 - 1)), rng.random() < 0.5, rng.choice((0, 1, 65_535)),
    )  # fmt: skip
    subject = rng.choice(("", "up.0", direct(A), direct(B)))
    return rng.choice(
        (
            put, put, Drop(put.flow), Beat(rng.choice((0, 1, 2**63 - 1)), rng.getrandbits(64)),
            Ask(subject, rng.getrandbits(64), tuple(rng.choices(range(2048), k=rng.randrange(9)))),
            Chunk(
                subject, rng.getrandbits(64), seq, rng.randrange(3), rng.randint(1, 3), (Numbered(seq, put),)
            ),
            Challenge(rng.getrandbits(64)), Answer(rng.getrandbits(64)),
            Newer(rng.choice((0, 99, EPOCH_MAX))),
        )
    )  # fmt: skip


@pytest.mark.slow
def test_twenty_thousand_hostile_datagrams_change_only_the_rows_of_their_signer() -> None:
    rng = Random(20_000)
    wires = acquainted(A, B, C)
    wires.arrive(B, 7, size_bytes=10**13)
    wires.arrive(A, 8, size_bytes=10**13)
    wires.deliver()
    one = wires.hosts[A]
    mine, theirs = one.view.table.get(A, 8), one.view.table.get(B, 7)
    assert mine is not None
    assert theirs is not None
    for number in range(20_000):
        data = datagram(
            C,
            *(hostile(rng) for _ in range(rng.randint(0, 4))),
            epoch=rng.choice((99, 100, 100, 100, 100 + number // 2000)),
            subject=rng.choice(("", "", direct(A), "up.1")),
            number=rng.choice((number + 1, number + 1, 1 + rng.randrange(number + 1))),
            first_seq=rng.choice((1, number + 1, 1 + rng.randrange(200), 2**63 - 1)),
        )
        if number % 2:
            body = bytearray(data[:-16])
            body[rng.randrange(len(body))] = rng.randrange(256)
            signed = bytes(body) + (wire.mac(bytes(body), KEY) if number % 4 == 1 else data[-16:])
            if signed[22:31] != data[22:31] or signed[:22] != data[:22]:
                continue  # Signed as another host: who holds the key can do that, and addresses are bound.
            data = signed
        output = one.message_received(wires.now, WALL_NS + wires.now, data, ADDRESSES[C])
        assert len(output.sends) <= 64
        if number % 100 == 0:
            one.check()
            wires.now += 1_000_000
            one.tick(wires.now, WALL_NS + wires.now)
    assert one.view.table.get(A, 8) is not None
    assert one.view.table.get(B, 7) == theirs
    assert {row.host for row in one.view.table} <= {A, B, C}
    assert len(one.view.table) < 10
    assert one.replica.peers.keys() == {B, C}
    counters = one.replica.counters
    assert counters.received > 1000
    for why in (
        Ignored.REPLAYED,
        Ignored.OLD_EPOCH,
        Ignored.MISPLACED,
        Ignored.UNASKED,
        Ignored.WRONG_SUBJECT,
    ):
        assert counters.ignored[why] > 20, why
    assert counters.refused[wire.Refusal.FORGED] > 1000
    assert FABRIC.digest() == one.replica.config.fabric


def test_a_subject_can_be_added_and_membership_opened() -> None:
    one = acquainted(A, B).hosts[A].replica
    one.listen("down.1")
    assert one.config.listens == {"", "down.1"}
    one.reconfigure(Keys(KEY), None)
    assert one.config.peers is None
    assert one.peers.keys() == {B}
