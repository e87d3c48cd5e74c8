"""The controller: rules 6, 9, 14, 15 and 10 as one machine, and that it says why."""

import pytest
from tests.control.rig import (
    ADDRESSES,
    KEY,
    RATE_BPS,
    SIZE,
    WALL_NS,
    A,
    B,
    C,
    Wires,
    acquainted,
    controller,
    datagram,
)

from ark.control import controller as controller_module
from ark.control.decision import Event, Kind
from ark.control.reports import Ignored, Trouble
from ark.control.rows import State
from ark.control.wire import Drop, Keys, Put
from ark.errors import ConfigError, LocalProtocolError
from ark.units import NS_PER_S


def test_a_transfer_is_answered_announced_and_withdrawn() -> None:
    wires = acquainted(A, B, C)
    one = wires.hosts[A]
    answer = wires.arrive(A, 7).decisions[0]
    assert (answer.kind, answer.event, len(answer.paths)) == (Kind.STEERED, Event.ASSIGNED, 1)
    wires.deliver()
    assert wires.rows(B, A) == wires.rows(C, A) == {7}
    other = wires.arrive(B, 7).decisions[0]
    assert other.paths != answer.paths
    wires.wait(2_000_000)
    wires.follow(A, one.segment_ended(wires.now, WALL_NS + wires.now, 7, SIZE // 2))
    wires.wait(2_000_000)
    row = wires.hosts[B].view.table.get(A, 7)
    assert row is not None
    assert (row.size_bytes, row.paths) == (SIZE // 2, answer.paths)
    wires.follow(A, one.flow_completed(wires.now, WALL_NS + wires.now, 7))
    wires.wait(2_000_000)
    assert not wires.rows(B, A)


def test_a_transfer_too_short_to_manage_is_answered_and_no_peer_hears_of_it() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    output = wires.arrive(A, 7, size_bytes=1)
    (arrived,) = output.decisions
    assert (arrived.kind, arrived.event, arrived.paths) == (Kind.UNMANAGED, Event.ASSIGNED, ())
    calls = [
        wires.follow(A, one.flow_started(wires.now, WALL_NS, 7)),
        wires.follow(A, one.segment_ended(wires.now, WALL_NS, 7, 0)),
        wires.follow(A, one.flow_completed(wires.now, WALL_NS, 7)),
    ]
    events = [output.decisions[0].event for output in calls]
    assert events == [Event.STARTED, Event.RENEWED, Event.RELEASED]
    wires.wait(NS_PER_S)
    assert not wires.rows(A, A) | wires.rows(B, A)
    assert wires.hosts[B].replica.peers[A].streams[""].newest == 0
    wires.arrive(A, 8)
    wires.deliver()
    assert wires.rows(B, A) == {8}
    assert wires.hosts[B].replica.peers[A].streams[""].newest == 1


def test_a_row_for_which_the_table_has_no_room_is_counted_and_decides_nothing() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    mine = wires.arrive(A, 7, size_bytes=10 * SIZE).decisions[0]
    one.view.table.rows_max = 1
    beats_mine = Put(1, State.ACTIVE, mine.paths, 0, 1, SIZE, 1, fallback=False, moves=0)
    output = wires.give(A, datagram(B, beats_mine), ADDRESSES[B])
    assert not output.decisions
    assert one.view.table.refused == 1
    assert (wires.rows(A, A), wires.rows(A, B)) == ({7}, set())
    assert one.decider.counters.conflicts == 0
    assert one.replica.peers[B].streams[""].rows.keys() == {1}


def test_news_for_peers_wait_until_the_client_has_its_answer() -> None:
    """Rule 19: nothing is sealed with an answer; it is due at once after it."""
    wires = acquainted(A, B)
    one = wires.hosts[A]
    now, wall_ns = wires.now, WALL_NS + wires.now
    outputs = [
        one.flow_arrived(now, wall_ns, 1, 0, 1, SIZE, ahead=True),
        one.flow_started(now, wall_ns, 1),
        one.segment_ended(now, wall_ns, 1, SIZE // 2),
        one.flow_completed(now, wall_ns, 1),
        one.flow_resumed(now, wall_ns, 2, 0, 1, SIZE, (3,)),
    ]
    assert [len(output.decisions) for output in outputs] == [1] * 5
    assert not any(output.sends for output in outputs)
    assert one.next_deadline() <= now
    assert len(one.tick(now, wall_ns).sends) == 1
    assert one.next_deadline() > now


def test_choices_are_blind_until_half_of_the_peers_are_heard() -> None:
    wires = Wires({A: controller(A)})
    assert wires.arrive(A, 1).decisions[0].kind is Kind.BLIND
    wires = acquainted(A, B)
    assert wires.arrive(A, 1).decisions[0].kind is Kind.STEERED
    wires.wait(4_000_000_000, lost=True)
    assert wires.arrive(A, 2).decisions[0].kind is Kind.BLIND


def test_a_transfer_reserved_ahead_starts_or_expires() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    for flow in (1, 2):
        wires.follow(A, one.flow_arrived(wires.now, WALL_NS + wires.now, flow, 0, 1, SIZE, ahead=True))
    started = wires.follow(A, one.flow_started(wires.now, WALL_NS + wires.now, 1))
    assert started.decisions[0].event is Event.STARTED
    wires.wait(1_000_000)
    row = wires.hosts[B].view.table.get(A, 1)
    assert row is not None
    assert row.state is State.ACTIVE
    wires.wait(31_000_000_000)
    assert not wires.rows(B, A)


def test_a_transfer_whose_client_forgot_it_leaks_and_its_end_is_still_understood() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    wires.arrive(A, 7)
    wires.wait(2_000_000_000)
    wires.follow(A, one.segment_ended(wires.now, WALL_NS, 7, SIZE // 2))
    wires.wait(2_000_000_000)
    assert wires.rows(A, A) == {7}
    wires.wait(2_000_000_000)
    assert not wires.rows(A, A)
    assert not wires.rows(B, A)
    assert Trouble.LEAK in {report.trouble for report in wires.reports}
    events = [
        wires.follow(A, one.flow_started(wires.now, WALL_NS, 7)).decisions[0],
        wires.follow(A, one.segment_ended(wires.now, WALL_NS, 7, 5)).decisions[0],
        wires.follow(A, one.flow_completed(wires.now, WALL_NS, 7)).decisions[0],
    ]
    assert [one.event for one in events] == [Event.STARTED, Event.RENEWED, Event.RELEASED]
    assert {one.kind for one in events} == {Kind.UNMANAGED}
    with pytest.raises(LocalProtocolError):
        one.flow_completed(wires.now, WALL_NS, 7)


def test_none_of_thousands_of_live_transfers_is_a_leak_while_the_nic_may_be_sending_it() -> None:
    """A NIC of 100 Gbit/s needs 240 s for 3,000 GB, 40 times a lone transfer's 10 x 4 x 80 ms."""
    wires = Wires({A: controller(A)})
    one = wires.hosts[A]
    for flow in range(3000):
        wires.sent.clear()
        one.flow_arrived(wires.now, WALL_NS, flow, 0, 1, SIZE)
    wires.wait(60 * NS_PER_S, lost=True)
    assert len(wires.rows(A, A)) == 3000
    assert not one.replica.counters.leaks
    one.check()


def test_a_row_is_a_leak_ten_times_after_all_that_its_nic_has_to_send_over_one_path() -> None:
    wires = acquainted(A, B)
    wires.arrive(A, 1)
    wires.arrive(A, 2, size_bytes=9 * SIZE)
    backlog_ns = 10 * 4 * 10 * SIZE * 8 * NS_PER_S // RATE_BPS
    wires.wait(backlog_ns - NS_PER_S)
    assert wires.rows(B, A) == wires.rows(A, A) == {1, 2}
    wires.wait(2 * NS_PER_S)
    assert not wires.rows(A, A) | wires.rows(B, A)
    assert wires.hosts[A].replica.counters.leaks == 2
    assert not wires.hosts[B].replica.counters.leaks


def test_what_comes_on_top_later_puts_a_leak_off() -> None:
    """A lone SIZE is a leak after 10 x 4 x 80 ms; with nine more that its NIC has to send, after 32 s."""
    wires = acquainted(A, B)
    wires.arrive(A, 1)
    wires.wait(3 * NS_PER_S)
    wires.arrive(A, 2, size_bytes=9 * SIZE)
    wires.wait(28 * NS_PER_S)
    assert wires.rows(A, A) == wires.rows(B, A) == {1, 2}
    assert not wires.hosts[A].replica.counters.leaks
    wires.wait(2 * NS_PER_S)
    assert wires.rows(A, A) == wires.rows(B, A) == {2}
    assert wires.hosts[A].replica.counters.leaks == 1


def test_the_backlog_of_a_nic_is_what_is_announced_now() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    for flow in (1, 2, 3):
        wires.arrive(A, flow, size_bytes=100 * SIZE)
    wires.follow(A, one.segment_ended(wires.now, WALL_NS, 1, SIZE))
    wires.follow(A, one.segment_ended(wires.now, WALL_NS, 2, SIZE))
    wires.follow(A, one.flow_completed(wires.now, WALL_NS, 3))
    wires.wait(10 * 4 * 2 * SIZE * 8 * NS_PER_S // RATE_BPS + NS_PER_S)
    assert not wires.rows(A, A)


def test_nothing_is_steered_while_another_uses_our_id() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    wires.give(A, datagram(A, epoch=500), "10.0.0.99")
    for answer in (
        wires.arrive(A, 7).decisions[0],
        wires.follow(A, one.flow_resumed(wires.now, WALL_NS, 8, 0, 1, SIZE, (2,))).decisions[0],
    ):
        assert (answer.kind, answer.paths, answer.announce) == (Kind.UNMANAGED, (), None)
    with pytest.raises(LocalProtocolError, match="arrived already"):
        wires.arrive(A, 7)
    wires.wait(31_000_000_000)
    assert wires.arrive(A, 9).decisions[0].kind is Kind.STEERED


def test_transfers_beyond_what_a_host_may_announce_go_unmanaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_module, "ROWS_MAX", 2)
    monkeypatch.setattr(controller_module, "LET_GO_MAX", 2)
    wires = acquainted(A, B)
    kinds = [wires.arrive(A, flow).decisions[0].kind for flow in range(1, 6)]
    assert kinds == [Kind.STEERED] * 2 + [Kind.UNMANAGED] * 3
    with pytest.raises(LocalProtocolError):
        wires.hosts[A].flow_completed(wires.now, WALL_NS, 3)
    assert wires.hosts[A].flow_completed(wires.now, WALL_NS, 5).decisions[0].event is Event.RELEASED


def test_after_a_restart_running_transfers_are_registered_on_the_same_paths() -> None:
    wires = acquainted(A, B)
    paths = wires.arrive(A, 7).decisions[0].paths
    wires.deliver()
    wires.hosts[A] = controller(A, epoch=200, now=wires.now)
    answer = wires.follow(A, wires.hosts[A].flow_resumed(wires.now, WALL_NS, 1, 0, 1, SIZE, paths)).decisions[
        0
    ]
    assert (answer.paths, answer.kind) == (paths, Kind.STEERED)
    wires.wait(1_000_000_000)
    assert [(row.epoch, row.flow, row.paths) for row in wires.hosts[B].view.table] == [(200, 1, paths)]


def test_a_decision_can_be_traced_to_the_datagram_that_caused_it() -> None:
    wires = acquainted(A, B)
    one, other = wires.hosts[A], wires.hosts[B]
    early = other.flow_arrived(wires.now, WALL_NS, 1, 0, 1, SIZE, ahead=True)
    paths = early.decisions[0].paths
    for flow in range(1, 9):
        mine = one.flow_arrived(wires.now, WALL_NS + 9, flow, 0, 1, SIZE, ahead=True)
        if mine.decisions[0].paths == paths:
            break
    for send in other.tick(wires.now, WALL_NS).sends:
        wires.follow(A, one.message_received(wires.now, WALL_NS, send.data, ADDRESSES[B]))
    reasons = one.why(flow)
    assert reasons[0].outcome.name == "flow_arrived"
    assert reasons[0].occurrence is not None
    assert reasons[0].occurrence.name == "flow_arrived"
    lost = [reason for reason in reasons if reason.outcome.rival is not None]
    assert lost
    for reason in lost:
        assert reason.occurrence is not None
        assert (reason.occurrence.name, reason.occurrence.source) == ("message_received", ADDRESSES[B])


def test_a_reload_is_a_difference() -> None:
    """Who goes is forgotten at once, with its rows; who stays is not heard of anew; who comes is met."""
    wires = acquainted(A, B, C)
    one = wires.hosts[A]
    for host in (A, B, C):
        wires.arrive(host, 7, size_bytes=10**12)
    wires.deliver()
    assert wires.rows(A, B) == wires.rows(A, C) == {7}
    before = one.replica.peers[B]
    asked = one.replica.counters.asked

    def reconfigure(*hosts: int) -> None:
        peers = {host: ADDRESSES[host] for host in hosts}
        wires.follow(A, one.reconfigure(wires.now, WALL_NS + wires.now, keys=Keys(KEY), peers=peers))

    reconfigure(B)
    assert (one.replica.heard, one.peers_expected) == (1, 1)
    assert one.replica.peers == {B: before}
    assert not wires.rows(A, C)
    assert wires.rows(A, B) == wires.rows(A, A) == {7}
    wires.wait(NS_PER_S)
    assert one.replica.peers == {B: before}
    assert one.replica.counters.ignored[Ignored.UNKNOWN_HOST] > 0
    reconfigure(B, C)
    wires.wait(NS_PER_S)
    assert wires.rows(A, C) == {7}
    assert one.replica.peers[B] is before
    assert one.replica.counters.asked == asked + 1
    wires.wait(4 * NS_PER_S, lost=True)
    reconfigure(C)
    assert one.replica.peers.keys() == {C}


def test_after_a_reload_so_many_peers_are_expected() -> None:
    wires = acquainted(A, B)
    one = wires.hosts[A]
    many = dict.fromkeys(range(5), "") | {B: ADDRESSES[B]}
    wires.follow(A, one.reconfigure(wires.now, WALL_NS, keys=Keys(KEY), peers=many))
    assert wires.arrive(A, 1).decisions[0].kind is Kind.BLIND
    wires.follow(A, one.reconfigure(wires.now, WALL_NS, keys=Keys(KEY), peers=many, peers_expected=2))
    assert wires.arrive(A, 2).decisions[0].kind is Kind.STEERED


def test_the_lag_of_news_is_measured_by_the_rows_that_are_new() -> None:
    wires = acquainted(A, B)
    wires.arrive(B, 7)
    wires.now += 300_000
    wires.deliver()
    wires.wait(NS_PER_S)
    lags = wires.hosts[A].replica.lags
    assert (sum(lags.counts), lags.total_ns) == (1, 300_000)
    wires.follow(B, wires.hosts[B].segment_ended(wires.now, WALL_NS + wires.now, 7, SIZE // 2))
    wires.wait(NS_PER_S)
    assert sum(lags.counts) == 1
    early = Put(9, 1, (0,), 0, 1, SIZE, WALL_NS + wires.now + 1000, fallback=False, moves=0)
    wires.give(A, datagram(B, early, first_seq=3), ADDRESSES[B])
    assert (sum(lags.counts), lags.total_ns) == (2, 300_000)


def test_by_leaf_a_host_counts_rows_on_the_links_it_hears_of_and_no_others() -> None:
    wires = Wires({host: controller(host, leaves=True) for host in (A, B)})
    wires.wait(1_000_000_000)
    path = wires.arrive(A, 7).decisions[0].paths[0]
    wires.deliver()
    assert {row.flow for row in wires.hosts[B].view.table} == {7, 7 | 1 << 62}
    loads = wires.hosts[B].view.loads
    own = wires.hosts[A].view.loads
    assert loads is not None
    assert own is not None
    assert loads.flows == own.flows
    assert wires.arrive(B, 1).decisions[0].paths[0] != path
    wires.follow(A, wires.hosts[A].flow_completed(wires.now, WALL_NS, 7))
    wires.wait(1_000_000_000)
    assert {row.flow for row in wires.hosts[B].view.table} == {1}


def test_the_papers_policy_needs_all_rows() -> None:
    with pytest.raises(ConfigError, match="must hear all rows"):
        controller(A, policy="paper", leaves=True)
    assert controller(A, policy="paper").view.claims is not None


def test_by_leaf_rows_of_a_wrong_subject_never_count_and_halves_end_each_by_its_own_subject() -> None:
    wires = Wires({host: controller(host, leaves=True) for host in (A, B)})
    wires.wait(1_000_000_000)
    wires.arrive(A, 7, size_bytes=10**13)
    wires.wait(10_000_000)
    put = Put(9, 1, (2,), 1, 0, SIZE, WALL_NS, fallback=False, moves=0)
    wires.give(B, datagram(A, put, subject="up.0", first_seq=2), ADDRESSES[A])
    assert {row.flow for row in wires.hosts[B].view.table} == {7, 7 | 1 << 62}
    assert wires.hosts[B].replica._rows.misfits == 1
    for subject, left in (("down.1", {7}), ("up.0", set())):
        wires.give(B, datagram(A, Drop(7), subject=subject, first_seq=3, number=2000), ADDRESSES[A])
        assert {row.flow for row in wires.hosts[B].view.table} == left
