"""The simulated cluster itself: it repeats, it notices broken rules, and it shrinks what breaks them."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from ark.control.controller import Controller
from ark.control.decider import Decider
from ark.control.decision import Kind
from ark.control.lease import Leases
from ark.control.paper import FirstFree
from ark.control.peer import Peer
from ark.control.replica import Replica
from ark.control.stream import InStream
from ark.testing import Cluster, Failure, Fault, Schedule, Transfer, Violation, random_schedule, run, shrink
from ark.testing.schedule import FAULTY_NS
from ark.units import NS_PER_S


def small(*faults: Fault, transfers: tuple[Transfer, ...] = (), **changes: object) -> Schedule:
    schedule = Schedule(
        seed=1, hosts=4, leaves=2, spines=4, policy="ark", hold_ns=0, open_membership=False, by_leaf=False,
        transfers=transfers, faults=faults,
    )  # fmt: skip
    return replace(schedule, **changes)  # type: ignore[arg-type]


def transfers(count: int, *, lasts_ns: int = NS_PER_S) -> tuple[Transfer, ...]:
    rng = Random(7)
    return tuple(
        Transfer(rng.randrange(FAULTY_NS), host, 1 - host % 2, 10**9, (lasts_ns // 2, lasts_ns))
        for host in range(4)
        for _ in range(count)
    )


@pytest.mark.slow
def test_equal_schedules_run_equally_and_others_do_not() -> None:
    traces = []
    for seed in (3, 3, 4):
        cluster = Cluster(random_schedule(seed))
        cluster.run()
        traces.append(cluster.trace)
    assert traces[0] == traces[1] != traces[2]


def test_random_schedules_hold_every_kind_of_fault_and_setting() -> None:
    schedules = [random_schedule(seed) for seed in range(240)]
    faults = Counter(fault.kind for schedule in schedules for fault in schedule.faults)
    assert len(faults) == 9
    assert min(faults.values()) >= 8
    settings = Counter((one.policy, one.open_membership, one.by_leaf) for one in schedules)
    assert len(settings) == 6
    assert min(settings.values()) >= 8
    lasting = [
        sum(one.start_ns + one.segments[-1] > 5 * NS_PER_S for one in schedule.transfers)
        for schedule in schedules
    ]
    assert sum(count > 1 for count in lasting) > len(schedules) // 2


@pytest.mark.slow
@pytest.mark.parametrize("by_leaf", [False, True])
def test_the_rows_of_a_crashed_host_are_gone_everywhere_after_its_lease(by_leaf: bool) -> None:
    running = tuple(replace(one, start_ns=NS_PER_S // 2) for one in transfers(2, lasts_ns=4 * NS_PER_S))
    cluster = Cluster(small(Fault("crash", NS_PER_S, 3 * NS_PER_S, (0,)), transfers=running, by_leaf=by_leaf))
    owned: list[int] = []

    def count() -> None:
        host = cluster.machines[0].host
        tables = [one.controller.view.table for one in cluster.machines[1:] if one.controller is not None]
        owned.append(sum(row.host == host for table in tables for row in table))

    for at_ns in (NS_PER_S - 1, NS_PER_S * 3 // 2, NS_PER_S * 5 // 2, NS_PER_S * 7 // 2):
        cluster.at(at_ns, count)
    cluster.run()
    before, within_its_lease, after_it, again = owned
    assert before == within_its_lease == again > 0
    assert after_it == 0


def test_hosts_blind_to_each_other_spread_no_worse_than_ecmp() -> None:
    """Of m transfers on k paths ECMP shares a path in m (m - 1) / 2k pairs on average; so do blind hosts."""
    spines, hosts, runs = 4, 12, 100
    cluster = Cluster(small(hosts=hosts, spines=spines))
    controllers = []
    for machine in cluster.machines:
        cluster._boot(machine)
        assert machine.controller is not None
        controllers.append((machine.attachment, machine.controller))
    pairs = 0
    for flow in range(1, runs + 1):
        taken: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for leaf, controller in controllers:
            answer = controller.flow_arrived(10**16, 10**18, flow, leaf, 1 - leaf, 10**9).decisions[0]
            assert answer.kind is Kind.BLIND
            taken[leaf, answer.paths] += 1
        pairs += sum(count * (count - 1) // 2 for count in taken.values())
    each_leaf = hosts // 2
    draws = 2 * runs * each_leaf * (each_leaf - 1) // 2
    deviation = (draws * (spines - 1)) ** 0.5 / spines
    assert abs(pairs - draws / spines) < 3 * deviation


@pytest.mark.slow
def test_a_full_partition_heals() -> None:
    cluster = Cluster(small(Fault("partition", 0, FAULTY_NS, (0, 1)), transfers=transfers(5)))
    cluster.run()
    assert cluster.network.lost > 0


_meet = Replica._meet


def _believe(self: Replica, host: int, epoch: int, address: str) -> Peer | None:
    peer = _meet(self, host, epoch, address)
    if peer is not None:
        peer.proven = True
    return peer


EARLY = tuple(
    replace(one, start_ns=one.start_ns // 10, segments=(5 * NS_PER_S,), size_bytes=10**10)
    for one in transfers(6, lasts_ns=2)
)
LATE = small(Fault("delay", 0, FAULTY_NS, amount=0.5), transfers=transfers(8, lasts_ns=NS_PER_S // 20))
LOSSY = small(Fault("loss", 0, FAULTY_NS, amount=0.3), transfers=EARLY)
PARTED = small(Fault("partition", NS_PER_S // 4, FAULTY_NS, (0,)), transfers=EARLY)
ALONE = small(
    Fault("crash", NS_PER_S, FAULTY_NS, (0,)),
    Fault("crash", NS_PER_S, NS_PER_S + 1, (1,)),
    Fault("replay", 0, NS_PER_S * 5 // 4, (0,)),
    transfers=EARLY,
)

RECALLED = small(
    Fault("one-way", 402_139_725, FAULTY_NS, (1,)),
    Fault("step", 88_343_297, 746_998_900, (1, 2), -5.0),
    Fault("crash", 1_130_855_843, 1_350_445_066, (1, 2), 1.0),
    Fault("replay", 1_101_094_483, FAULTY_NS, (1, 2)),
    seed=665,
    hosts=3,
    spines=8,
    open_membership=True,
)
"""Hosts that have lost their disk and the time hear what they said in a life of a greater epoch."""

BRIEFLY = small(
    Fault("clone", 994_315_065, FAULTY_NS, (1, 2)),
    Fault("replay", 577_594_251, FAULTY_NS, (0, 1)),
    Fault("crash", 1_485_287_976, FAULTY_NS, (0, 1)),
    seed=6658,
    hosts=3,
    leaves=3,
    by_leaf=True,
)
"""Hosts are back before the timers of their former life would have rung."""

RACING = small(
    transfers=tuple(
        replace(one, start_ns=NS_PER_S // 2 + one.start_ns % 1000)
        for one in transfers(3, lasts_ns=20 * NS_PER_S)
    ),
    policy="paper",
    spines=8,
)
"""Hosts that pick the same paths at the same moment."""


def does_nothing(*_: object) -> None:
    """In place of a method."""


BROKEN: dict[str, tuple[type, str, object, Schedule]] = {
    "a DROP leaves no tombstone": (InStream, "_bury", does_nothing, LATE),
    "a replayed seq counts again": (InStream, "_enter", lambda *_: True, LATE),
    "leases never end": (Leases, "expired", lambda *_: [], PARTED),
    "snapshots are never asked for": (Replica, "_want", does_nothing, LOSSY),
    "recordings are believed": (Replica, "_meet", _believe, ALONE),
    "a loser that sends keeps its claim": (FirstFree, "yields", False, RACING),
    "races are not looked for": (Decider, "losers", lambda *_: [], RACING),
    "rows are not announced": (Controller, "_announce", does_nothing, LOSSY),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_a_broken_rule_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, broken, schedule = BROKEN[rule]
    monkeypatch.setattr(where, name, broken)
    schedules = [replace(schedule, seed=seed) for seed in range(4)]
    assert any(run(one) is not None for one in schedules)
    assert any(run(one, check_every=32) is not None for one in schedules)


@pytest.mark.slow
@pytest.mark.parametrize(
    "schedule",
    [LATE, LOSSY, PARTED, ALONE, RECALLED, BRIEFLY, RACING],
    ids=["late", "lossy", "parted", "alone", "recalled", "briefly", "racing"],
)
def test_the_unbroken_rules_hold_there(schedule: Schedule) -> None:
    failure = run(schedule)
    assert failure is None, str(failure)


def test_shrinking_leaves_the_fault_and_the_transfer_that_it_takes() -> None:
    def again(schedule: Schedule) -> Failure | None:
        crash = any(fault.kind == "crash" for fault in schedule.faults)
        large = any(transfer.size_bytes == 10**9 and transfer.host == 2 for transfer in schedule.transfers)
        return Failure(schedule, Violation("found")) if crash and large else None

    loss, crash = Fault("loss", 0, 5, (), 0.1), Fault("crash", 3, 9, (1,))
    failure = again(small(loss, loss, crash, loss, loss, transfers=transfers(3)))
    assert failure is not None
    smallest = shrink(failure, again).schedule
    assert smallest.faults == (crash,)
    assert [transfer.host for transfer in smallest.transfers] == [2]


def test_a_failure_prints_its_seed_and_a_schedule_that_can_be_pasted() -> None:
    schedule = small(Fault("loss", 0, 5, (), 0.1), transfers=transfers(1))
    text = str(Failure(schedule, Violation("two owners")))
    assert text.startswith("seed 1 fails with Violation: two owners\nrun(")
    names = {"Schedule": Schedule, "Fault": Fault, "Transfer": Transfer}
    assert eval(text.partition("run(")[2][:-1], names) == schedule


def test_another_kind_of_failure_does_not_count_when_shrinking() -> None:
    schedule = small(Fault("loss", 0, 5, (), 0.1))
    failure = Failure(schedule, Violation("found"))
    assert shrink(failure, lambda smaller: Failure(smaller, KeyError("other"))) is failure
    assert shrink(failure, does_nothing) is failure
