"""Rule 11: requests and snapshots are limited in number and rate, and nothing is retried for ever."""

from random import Random

import pytest

from ark.control import repair, reports
from ark.control.outbox import Outbox
from ark.control.repair import Asks, Serving
from ark.control.reports import ReplicaCounters, Reporter, Trouble
from ark.control.stream import InStream
from ark.control.wire import Ask, Key, Put


def behind() -> InStream:
    stream = InStream()
    stream.hear_of(5)
    return stream


def test_a_request_that_is_never_answered_is_given_up_and_rests() -> None:
    counters = ReplicaCounters()
    asks, stream, name = Asks(Random(1), counters), behind(), (7, "")
    asks.want(name, 0)
    now = 0
    while name in asks:
        now = asks.next_deadline() or 0
        for due in asks.due(now):
            asks.request(due, stream, now)
        asks.check()
    assert counters.asked == repair.ATTEMPTS_MAX
    assert counters.abandoned == 1
    asks.want(name, now)
    assert (asks.next_deadline() or 0) >= now + repair.PAUSE_NS


def test_a_gap_that_closes_by_itself_needs_no_request() -> None:
    counters = ReplicaCounters()
    asks, name = Asks(Random(1), counters), (7, "")
    asks.want(name, 0)
    (due,) = asks.due(repair.JITTER_NS)
    assert asks.request(due, InStream(), repair.JITTER_NS) is None
    assert name not in asks
    assert (counters.asked, counters.abandoned) == (0, 0)


def test_only_so_many_streams_wait_and_only_so_many_snapshots_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repair, "ASKS_MAX", 3)
    monkeypatch.setattr(repair, "ASSEMBLIES_MAX", 1)
    asks = Asks(Random(1), ReplicaCounters())
    for host in range(5):
        asks.want((host, ""), 0)
    sent = [asks.request(name, behind(), repair.JITTER_NS) for name in asks.due(repair.JITTER_NS)]
    assert sum(ask is not None for ask in sent) == 1
    assert len(sent) == 3
    asks.check()
    for host in range(5):
        asks._rest((host, ""), 0)
        asks.check()


def serving() -> tuple[Serving, Outbox, ReplicaCounters]:
    outbox = Outbox(1, 1, bytes(16), Key(1, bytes(16)), [""])
    for flow in range(1, 3001):
        outbox.put("", Put(flow, 1, (2,), 0, 1, 100, 8, fallback=False, moves=0), 0)
    outbox.flush("", 0)
    outbox.take()
    counters = ReplicaCounters()
    return Serving(counters), outbox, counters


def test_chunks_go_out_in_bursts_and_missing_ones_again_and_then_the_snapshot_is_forgotten() -> None:
    one, outbox, counters = serving()
    one.asked(7, "there", Ask("", 5), outbox, 0)
    now = 0
    bursts: list[int] = []
    while not bursts or bursts[-1]:
        one.tick(outbox, now)
        one.check()
        bursts.append(len(outbox.take()))
        now += repair.BURST_NS
    total = counters.chunks_sent
    assert max(bursts) == repair.BURST_MAX
    assert sum(bursts) == total
    one.tick(outbox, now)
    one.asked(7, "there", Ask("", 5, (0, 2, 2047)), outbox, now)
    one.tick(outbox, now)
    assert len(outbox.take()) == 2
    assert counters.served == 1
    assert one.next_deadline() == now + repair.JOB_NS
    one.tick(outbox, now + repair.JOB_NS)
    assert one.next_deadline() is None


def test_snapshots_asked_for_too_often_or_by_too_many_are_turned_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repair, "JOBS_MAX", 2)
    one, outbox, counters = serving()
    for host in (7, 8, 9):
        one.asked(host, "there", Ask("", 5), outbox, 0)
    one.asked(7, "there", Ask("", 6), outbox, repair.PAUSE_NS - 1)
    one.asked(7, "there", Ask("up.1", 6), outbox, 0)
    assert (counters.served, counters.turned_away) == (2, 3)
    one.asked(7, "there", Ask("", 6), outbox, repair.PAUSE_NS)
    one.asked(7, "there", Ask("", 6), outbox, repair.PAUSE_NS)
    assert counters.served == 3
    one.check()
    one.clear()
    assert one.next_deadline() is None


def test_reports_are_told_once_in_a_while_and_of_so_many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "SUBJECTS_MAX", 2)
    counters = ReplicaCounters()
    reporter = Reporter(counters)
    for host, now in ((1, 0), (1, 5), (2, 5), (3, 5), (3, reports.INTERVAL_NS), (1, reports.INTERVAL_NS)):
        reporter.report(Trouble.LEAK, host, "detail", now)
    assert [report.host for report in reporter.take()] == [1, 2, 3]
    assert counters.reports_suppressed == 3
    assert reporter.take() == []
