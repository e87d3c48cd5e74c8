from dataclasses import asdict
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.control.networks import GBPS, Clos, fabric, three_tiers
from tests.control.replicas import Replicas

from ark.control.decision import Event, Kind
from ark.control.fleet import Fleet, Move
from ark.control.policy import Policy
from ark.control.rows import Row
from ark.errors import ConfigError, LocalProtocolError

HOSTS = 5
BIG = 10**9

events = st.lists(
    st.tuples(
        st.integers(0, 6),  # time since the event before
        st.sampled_from(["arrive", "arrive", "arrive", "segment", "complete", "tick"]),
        st.integers(0, HOSTS - 1),
        st.integers(0, 2),  # target leaf
        st.integers(0, 30),  # which transfer, and the random number
        st.sampled_from([BIG, 2 * BIG, 40]),
    ),
    max_size=60,
)


def replay(events: list[tuple[int, str, int, int, int, int]], fleet: Fleet, replicas: Replicas) -> None:
    """Put the same events into both, and compare every answer."""
    now_ns, live = 0, list[tuple[int, int, int]]()
    for flow, (gap_ns, what, host, target, number, size_bytes) in enumerate(events):
        now_ns += gap_ns
        moved = fleet.tick(now_ns)
        assert moved == replicas.tick(now_ns)
        if what == "arrive":
            arguments = (now_ns, host, flow, host % 2, target, size_bytes, number)
            got, expected = fleet.flow_arrived(*arguments), replicas.flow_arrived(*arguments)
            assert (got.paths, got.kind, got.start_ns) == (expected.paths, expected.kind, expected.start_ns)
            live.append((host, flow, got.start_ns))
        elif what != "tick" and live:
            owner, which, start_ns = live[number % len(live)]
            if what == "complete":
                live.remove((owner, which, start_ns))
                fleet.flow_completed(now_ns, owner, which)
                replicas.flow_completed(now_ns, owner, which)
            elif start_ns <= now_ns:
                left = size_bytes - number
                answers = [each.segment_ended(now_ns, owner, which, left) for each in (fleet, replicas)]
                paths = [None if answer is None else answer.paths for answer in answers]
                assert paths[0] == paths[1]
        fleet.check()
    replicas.check()
    assert asdict(fleet.counters) == asdict(replicas.counters)
    end_ns = now_ns + 1000
    assert fleet.tick(end_ns) == replicas.tick(end_ns)
    fleet.check()
    rows = sorted((row.key, row.paths, row.state, row.size_bytes) for row in fleet.rows())
    for own in replicas.views:
        assert rows == sorted((row.key, row.paths, row.state, row.size_bytes) for row in own.table)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    events,
    st.sampled_from(["ark", "ark", "paper"]),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from([1, 2, 2, 3, 4]),
)
def test_one_shared_log_decides_as_replicas_do(
    events: list[tuple[int, str, int, int, int, int]],
    name: Literal["ark", "paper"],
    lag_ns: int,
    hold_ns: int,
    stripes: int,
    moves: bool,
    spines: int,
) -> None:
    """PROTOCOL rule 20, decision for decision."""
    network = fabric(3, spines)
    if name == "paper":
        stripes, moves = 1, False
    fleet = Fleet(
        network, hosts=HOSTS, policy=name, lag_ns=lag_ns, hold_ns=hold_ns, stripes=stripes, moves=moves,
        min_bytes=100,
    )  # fmt: skip
    policy = Policy(
        name=name, line_rate_bps=100 * GBPS, hold_ns=hold_ns, min_bytes=100, stripes=stripes, moves=moves
    )
    replay(events, fleet, Replicas(network, policy, hosts=HOSTS, lag_ns=lag_ns))


def flow_that_likes(host: int, path: int) -> int:
    """A flow number with which a host picks ``path`` of two on an empty network."""
    return next(
        flow
        for flow in range(100)
        if Fleet(Clos(2, 2), hosts=3, policy="ark").flow_arrived(0, host, flow, 0, 1, BIG, 0).paths == (path,)
    )


def test_two_hosts_that_do_not_see_each_other_collide_and_the_later_one_moves() -> None:
    fleet = Fleet(Clos(2, 2), hosts=3, policy="ark", lag_ns=10, hold_ns=20)
    one, two = flow_that_likes(1, 0), flow_that_likes(2, 0)
    assert fleet.flow_arrived(100, 1, one, 0, 1, BIG, 0).paths == (0,)
    assert fleet.flow_arrived(103, 2, two, 0, 1, BIG, 0).paths == (0,)
    assert fleet.tick(109) == []
    assert fleet.tick(110) == [Move(2, two, (1,))]
    assert fleet.tick(200) == []
    assert (fleet.counters.conflicts, fleet.counters.moves) == (1, 1)
    fleet.check()


def test_the_later_of_two_simultaneous_picks_moves_within_its_hold() -> None:
    fleet = Fleet(Clos(2, 2), hosts=2, policy="paper", lag_ns=10, hold_ns=20)
    one = fleet.flow_arrived(0, 0, 7, 0, 1, BIG, 0)
    two = fleet.flow_arrived(5, 1, 8, 0, 1, BIG, 0)
    assert one.paths == two.paths == (0,)
    assert (one.start_ns, two.start_ns) == (20, 25)
    assert fleet.next_deadline() == 10
    assert fleet.tick(9) == []
    assert fleet.tick(10) == [Move(1, 8, (1,))]
    assert fleet.counters.conflicts == fleet.counters.moves == 1
    assert fleet.next_deadline() == 15  # the loser's first row becomes visible: it beats nobody
    assert fleet.tick(60) == []
    assert fleet.next_deadline() is None
    fleet.check()


def test_at_one_instant_rows_become_visible_before_holds_end() -> None:
    """So a hold of just the lag is enough to hear of every pick made at the same time."""
    fleet = Fleet(Clos(2, 2), hosts=2, policy="paper", lag_ns=10, hold_ns=10)
    fleet.flow_arrived(0, 0, 7, 0, 1, BIG, 0)
    assert fleet.flow_arrived(0, 1, 8, 0, 1, BIG, 0).start_ns == 10
    assert fleet.tick(10) == [Move(1, 8, (1,))]


def test_moves_found_while_another_input_lets_time_pass_are_told_at_the_next_tick() -> None:
    fleet = Fleet(Clos(2, 2), hosts=3, policy="paper", lag_ns=10, hold_ns=20)
    fleet.flow_arrived(0, 0, 7, 0, 1, BIG, 0)
    fleet.flow_arrived(5, 1, 8, 0, 1, BIG, 0)
    fleet.flow_arrived(12, 2, 9, 1, 1, BIG, 0)
    assert fleet.next_deadline() == 12
    assert fleet.tick(12) == [Move(1, 8, (1,))]
    assert fleet.next_deadline() == 15


def test_an_active_loser_moves_at_its_segment_end_and_not_before() -> None:
    fleet = Fleet(Clos(2, 2), hosts=2, policy="paper", lag_ns=10)
    fleet.flow_arrived(0, 0, 7, 0, 1, BIG, 0)
    fleet.flow_arrived(5, 1, 8, 0, 1, BIG, 0)
    assert fleet.next_deadline() is None
    assert fleet.tick(50) == []
    assert fleet.counters.yields == 1
    decision = fleet.segment_ended(60, 1, 8, BIG // 2)
    assert decision is not None
    assert (decision.event, decision.paths, decision.kind) == (Event.MOVED, (1,), Kind.STEERED)
    assert fleet.segment_ended(61, 0, 7, BIG // 2) is None
    fleet.check()


def test_without_lag_nobody_ever_loses_a_race() -> None:
    fleet = Fleet(three_tiers(), hosts=4, policy="ark", hold_ns=100)
    for flow in range(40):
        fleet.flow_arrived(flow // 8, flow % 4, flow, flow % 8, (flow + 3) % 8, BIG, flow)
    assert fleet.tick(1000) == []
    assert fleet.counters.conflicts == 0
    assert len(fleet) == 0
    fleet.check()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ark", "paper"])
def test_memory_is_live_rows_and_the_changes_in_flight(policy: Literal["ark", "paper"]) -> None:
    """After any number of transfers only 50 live ones and the changes of the last 10 steps are held."""
    fleet = Fleet(Clos(4, 4), hosts=64, policy=policy, lag_ns=1000, hold_ns=500)
    for flow in range(1000):
        now_ns = flow * 100
        fleet.tick(now_ns)
        fleet.flow_arrived(now_ns, flow % 64, flow, flow % 4, (flow + 1) % 4, BIG, 0)
        if flow >= 50:
            fleet.flow_completed(now_ns, (flow - 50) % 64, flow - 50)
        in_flight = len(fleet)
        assert in_flight <= 10 * 5
        assert len(list(fleet.rows())) <= 50 + in_flight
        assert sum(map(len, fleet._overlays.values())) <= in_flight
        assert all(fleet._overlays.values())
        assert len(fleet._holds) <= 5 + 1
        for decider in fleet._deciders:
            assert len(decider._assigned) == len(decider) <= 2
            assert len(decider._deadlines) <= 2
            assert not decider.history


def test_the_seed_changes_the_order_of_equal_paths_only() -> None:
    firsts = set()
    for seed in range(30):
        fleet = Fleet(Clos(2, 4), hosts=1, policy="ark", seed=seed)
        paths = [fleet.flow_arrived(0, 0, flow, 0, 1, BIG, 0).paths[0] for flow in range(4)]
        assert sorted(paths) == [0, 1, 2, 3]
        firsts.add(paths[0])
    assert firsts == {0, 1, 2, 3}


def test_rows_are_those_that_all_see() -> None:
    fleet = Fleet(Clos(2, 2), hosts=2, policy="ark", lag_ns=10)
    fleet.flow_arrived(0, 1, 5, 0, 1, BIG, 0)
    assert list(fleet.rows()) == []
    fleet.tick(10)
    (row,) = fleet.rows()
    assert isinstance(row, Row)
    assert row.key == (1, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "paper", "release": "any", "lag_ns": 1}, "without lag"),
        ({"policy": "ark", "release": "any"}, 'for policy "paper"'),
        ({"policy": "ark", "lag_ns": -1}, "lag -1 ns"),
        ({"policy": "ark", "hold_ns": -1}, "hold -1 ns"),
    ],
)
def test_what_has_no_meaning_is_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Fleet(Clos(2, 2), hosts=1, **arguments)  # type: ignore[arg-type]


def test_time_does_not_go_back() -> None:
    fleet = Fleet(Clos(2, 2), hosts=1, policy="ark")
    fleet.tick(5)
    with pytest.raises(LocalProtocolError, match="from 5 to 4"):
        fleet.tick(4)
