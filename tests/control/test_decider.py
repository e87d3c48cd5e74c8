from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from msgspec.structs import replace
from tests.control.networks import GBPS, Clos

from ark.control.decider import Decider
from ark.control.decision import Decision, Event, Kind
from ark.control.policy import RACES_MAX, Policy
from ark.control.rows import PENDING_MAX_NS, Change, Drop, Key, Row, State
from ark.control.view import View, view
from ark.errors import LocalProtocolError

BIG = 10**10
ME, OTHER = 7, 3


def decider(
    name: Literal["ark", "paper"] = "ark",
    *,
    spines: int = 4,
    hold_ns: int = 0,
    moves: bool = False,
    rows_max: int = 100,
    history: int = 100,
) -> tuple[Decider, View]:
    policy = Policy(name=name, line_rate_bps=100 * GBPS, hold_ns=hold_ns, moves=moves)
    known = view(policy, Clos(3, spines), rows_max=rows_max)
    return Decider(ME, 5, policy=policy, view=known, history=history), known


def rival(path: int, stamp: int, *, host: int = OTHER, flow: int = 0, moves: int = 0) -> Row:
    return Row(host, 1, 1, flow, State.ACTIVE, (path,), 0, 1, BIG, stamp, False, moves)


def hear(mine: Decider, known: View, row: Row, *, stamp: int = 1000) -> list[Decision]:
    change = known.table.put(row)
    assert change is not None
    decisions = mine.row_changed(50, stamp, change, cause=77)
    mine.check()
    known.table.check()
    return decisions


def test_an_arrival_is_answered_and_announced() -> None:
    mine, known = decider()
    decision = mine.flow_arrived(10, 500, 1, 0, 1, BIG, cause=9)
    row = known.table.get(ME, 1)
    assert decision == Decision(1, Event.ASSIGNED, Kind.STEERED, decision.paths, 10, row, 9)
    assert row == Row(ME, 5, 1, 1, State.ACTIVE, decision.paths, 0, 1, BIG, 500)
    assert mine.counters.reservations == 1
    assert len(mine) == 1
    mine.check()


def test_a_completion_is_announced_and_frees_the_path() -> None:
    mine, known = decider()
    mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    decision = mine.flow_completed(20, 1, cause=4)
    assert (decision.event, decision.announce, decision.cause) == (Event.RELEASED, Drop(ME, 5, 2, 1), 4)
    assert len(known.table) == len(mine) == 0
    mine.check()


@pytest.mark.parametrize(
    ("source", "target", "size_bytes", "spines", "paths"),
    [
        (0, 1, 124_999_999, 4, ()),
        (0, 0, BIG, 4, (0,)),
        (0, 1, BIG, 1, (0,)),
    ],
)
def test_where_there_is_nothing_to_choose_nothing_is_announced(
    source: int, target: int, size_bytes: int, spines: int, paths: tuple[int, ...]
) -> None:
    """Rule 6: too short, inside one leaf, or one path."""
    mine, known = decider(spines=spines, hold_ns=1_000)
    decision = mine.flow_arrived(10, 500, 1, source, target, size_bytes)
    assert (decision.kind, decision.paths, decision.start_ns, decision.announce) == (
        Kind.UNMANAGED, paths, 10, None,
    )  # fmt: skip
    assert mine.segment_ended(20, 600, 1, 5).announce is None
    assert mine.flow_started(20, 1).announce is None
    assert mine.flow_completed(30, 1).announce is None
    assert len(known.table) == 0
    assert mine.counters.unmanaged == 1
    mine.check()


def test_with_a_full_table_transfers_go_unmanaged() -> None:
    mine, known = decider(rows_max=1)
    known.table.put(rival(0, 1))
    assert mine.flow_arrived(10, 500, 1, 0, 1, BIG).kind is Kind.UNMANAGED


@pytest.mark.parametrize(
    ("heard", "peers", "blind"),
    [(0, 0, False), (0, 1, True), (1, 2, False), (1, 3, True), (2, 3, False), (2, 4, False)],
)
def test_a_host_is_blind_that_hears_fewer_than_half_of_its_peers(heard: int, peers: int, blind: bool) -> None:
    mine, _ = decider()
    mine.peers_changed(heard, peers)
    assert mine.blind == blind


@pytest.mark.parametrize("name", ["ark", "paper"])
def test_with_few_peers_heard_choices_are_blind_and_counted(name: Literal["ark", "paper"]) -> None:
    mine, known = decider(name)
    mine.peers_changed(1, 3)
    paths = {mine.flow_arrived(10, 500, flow, 0, 1, BIG).paths for flow in range(20)}
    assert paths == {(0,), (1,), (2,), (3,)}
    assert mine.counters.blind == 20
    assert {row.fallback for row in known.table} == {name == "paper"}
    mine.peers_changed(2, 4)
    assert mine.flow_arrived(10, 500, 99, 0, 1, BIG).kind is not Kind.BLIND


@pytest.mark.parametrize("name", ["ark", "paper"])
@pytest.mark.parametrize("blind", [False, True])
def test_only_paths_to_which_a_port_leads_are_chosen(name: Literal["ark", "paper"], blind: bool) -> None:
    mine, _ = decider(name)
    mine.peers_changed(0, 2 * blind)
    taken = [mine.flow_arrived(10, 500, flow, 0, 1, BIG, spread=flow, mask=0b1010) for flow in range(20)]
    assert {decision.paths for decision in taken} == {(1,), (3,)}
    mine.check()


@pytest.mark.parametrize("name", ["ark", "paper"])
def test_a_transfer_that_lost_a_race_stays_among_its_paths(name: Literal["ark", "paper"]) -> None:
    mine, known = decider(name, hold_ns=1_000)
    first = mine.flow_arrived(10, 500, 1, 0, 1, BIG, mask=0b1010)
    (moved,) = hear(mine, known, rival(first.paths[0], 400))
    assert {*first.paths, *moved.paths} == {1, 3}


@pytest.mark.parametrize("name", ["ark", "paper"])
def test_a_transfer_whose_path_is_lost_moves_at_its_segment_end(name: Literal["ark", "paper"]) -> None:
    mine, known = decider(name)
    first = mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    (lost,) = first.paths
    left = 0b1111 & ~(1 << lost)
    moved = mine.segment_ended(20, 600, 1, BIG // 2, mask=left, cause=4)
    assert (moved.event, moved.kind, moved.cause) == (Event.MOVED, Kind.STEERED, 4)
    assert lost not in moved.paths
    assert known.table.get(ME, 1) == moved.announce
    mine.check()
    stays = mine.segment_ended(30, 700, 1, BIG // 4, mask=left)
    assert (stays.event, stays.paths) == (Event.RENEWED, moved.paths)
    back = mine.segment_ended(40, 800, 1, BIG // 8, mask=0b1111)
    assert (back.event, back.paths) == (Event.RENEWED, moved.paths)
    assert mine.counters.moves == 1
    mine.check()


@pytest.mark.parametrize("moves", [False, True])
def test_while_no_path_is_known_a_transfer_stays_where_it_is(moves: bool) -> None:
    mine, known = decider(moves=moves)
    first = mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    hear(mine, known, rival(first.paths[0], 400))
    stays = mine.segment_ended(20, 600, 1, BIG // 2, mask=0)
    assert (stays.event, stays.paths) == (Event.RENEWED, first.paths)
    assert known.table.get(ME, 1) == stays.announce
    again = mine.segment_ended(30, 700, 1, BIG // 4, mask=0b0001 << first.paths[0])
    assert (again.event, again.paths) == (Event.RENEWED, first.paths)
    mine.check()


def test_with_one_path_that_a_port_leads_to_or_none_there_is_nothing_to_choose() -> None:
    mine, known = decider()
    for mask, paths in ((0b100, (2,)), (0b1000_0000, ()), (0, ())):
        decision = mine.flow_arrived(10, 500, mask, 0, 1, BIG, mask=mask)
        assert (decision.kind, decision.paths, decision.announce) == (Kind.UNMANAGED, paths, None)
    resumed = mine.flow_resumed(10, 500, 1, 0, 1, BIG, (2,), mask=0b100)
    assert resumed.kind is Kind.UNMANAGED
    assert len(known.table) == 0


def test_a_long_transfer_is_held_back_and_starts_by_itself() -> None:
    mine, known = decider(hold_ns=1_000)
    decision = mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    assert decision.start_ns == 1_010 == mine.next_deadline()
    assert known.table.get(ME, 1) == replace(decision.announce, state=State.PENDING)  # type: ignore[type-var]
    assert mine.tick(1_009) == []
    (started,) = mine.tick(1_010, cause=3)
    assert (started.event, started.paths, started.cause) == (Event.STARTED, decision.paths, 3)
    assert isinstance(started.announce, Row)
    assert (started.announce.state, started.announce.stamp) == (State.ACTIVE, 500)
    assert mine.next_deadline() is None
    mine.check()


def test_a_transfer_reserved_ahead_waits_for_its_start() -> None:
    mine, known = decider(hold_ns=1_000)
    mine.flow_arrived(10, 500, 1, 0, 1, BIG, ahead=True)
    assert mine.tick(5_000) == []
    started = mine.flow_started(6_000, 1)
    assert (started.event, started.start_ns) == (Event.STARTED, 6_000)
    row = known.table.get(ME, 1)
    assert row is not None
    assert row.state is State.ACTIVE
    assert mine.flow_started(6_001, 1).announce is None
    assert mine.next_deadline() is None
    mine.check()


def test_a_reservation_that_is_never_started_ends() -> None:
    mine, known = decider()
    mine.flow_arrived(10, 500, 1, 0, 1, BIG, ahead=True)
    mine.flow_arrived(10, 500, 2, 0, 1, BIG, ahead=True)
    mine.flow_completed(11, 2)
    (expired,) = mine.tick(10 + PENDING_MAX_NS)
    assert (expired.event, expired.kind, expired.paths) == (Event.EXPIRED, Kind.UNMANAGED, ())
    assert expired.announce == Drop(ME, 5, 4, 1)
    assert len(known.table) == 0
    assert mine.counters.expired == 1
    # Whoever starts it later sends as it always did.
    assert mine.flow_started(10**12, 1).paths == ()
    assert mine.flow_completed(10**12, 1).announce is None
    mine.check()


def test_segment_ends_announce_what_is_left() -> None:
    mine, known = decider()
    first = mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    decision = mine.segment_ended(20, 600, 1, 55)
    assert decision.event is Event.RENEWED
    assert isinstance(first.announce, Row)
    assert decision.announce == replace(first.announce, seq=2, size_bytes=55) == known.table.get(ME, 1)


def test_an_active_transfer_that_lost_a_race_moves_at_its_segment_end() -> None:
    mine, known = decider(spines=2)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    assert hear(mine, known, rival(path, 499)) == []
    assert mine.counters.conflicts == 1
    moved = mine.segment_ended(60, 600, 1, BIG // 2, cause=8)
    assert (moved.event, moved.paths, moved.cause) == (Event.MOVED, (1 - path,), 8)
    assert isinstance(moved.announce, Row)
    assert (moved.announce.stamp, moved.announce.moves) == (600, 1)
    assert mine.counters.moves == 1
    assert mine.segment_ended(70, 700, 1, 5).event is Event.RENEWED
    mine.check()


def test_a_pending_transfer_that_lost_a_race_moves_at_once() -> None:
    mine, known = decider(spines=2, hold_ns=1_000)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    (moved,) = hear(mine, known, rival(path, 499))
    assert (moved.event, moved.paths, moved.start_ns) == (Event.MOVED, (1 - path,), 1_010)
    assert isinstance(moved.announce, Row)
    assert moved.announce.state is State.PENDING


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (rival(0, 501), "a greater key"),
        (rival(1, 499), "another path"),
        (rival(0, 499, moves=1), "a move"),
        (replace(rival(0, 499), source=1, target=2), "no link in common"),
        (rival(0, 500, host=8), "a greater host at the same time"),
    ],
)
def test_what_makes_nobody_decide_again(changed: Row, why: str) -> None:
    mine, known = decider(spines=4, hold_ns=1_000)
    known.table.put(rival(1, 1, host=1))
    known.table.put(rival(2, 1, host=1, flow=2))
    known.table.put(rival(3, 1, host=1, flow=3))
    assert mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths == (0,)
    assert hear(mine, known, changed) == [], why
    assert mine.counters.conflicts == 0


def test_a_row_that_was_in_the_table_makes_nobody_decide_again() -> None:
    mine, known = decider(spines=2, hold_ns=1_000)
    for path in (0, 1):
        known.table.put(rival(path, 400, flow=path))
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    assert hear(mine, known, replace(rival(path, 400, flow=path), seq=2, size_bytes=BIG // 2)) == []
    change = known.table.remove(OTHER, path)
    assert change is not None
    assert mine.row_changed(60, 600, change) == []
    assert mine.counters.conflicts == 0


def test_a_move_is_the_newest_of_our_assignments() -> None:
    """Races look at our assignments newest first, so their order must be that of their stamps."""
    mine, known = decider(spines=2, hold_ns=1_000)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    assert mine.flow_arrived(10, 501, 2, 0, 1, BIG).paths == (1 - path,)
    hear(mine, known, rival(path, 502))
    hear(mine, known, rival(path, 499, flow=1), stamp=600)  # three on its path, one on the other
    row = known.table.get(ME, 1)
    assert row is not None
    assert (row.paths, row.stamp) == ((1 - path,), 600)
    (loser,) = mine.losers(Change(None, rival(1 - path, 550, flow=9)))
    assert loser.flow == 1


def test_a_pending_transfer_stays_where_moving_would_not_help() -> None:
    mine, known = decider(spines=2, hold_ns=1_000)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    known.table.put(rival(1 - path, 600))
    assert hear(mine, known, rival(path, 499, flow=1)) == []
    assert (mine.counters.conflicts, mine.counters.moves) == (1, 0)


@pytest.mark.parametrize("name", ["ark", "paper"])
def test_races_move_a_transfer_at_most_twice(name: Literal["ark", "paper"]) -> None:
    mine, known = decider(name, spines=8, hold_ns=1_000)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    moved = []
    for turn in range(5):
        moved += hear(mine, known, rival(path, 400 + turn, flow=turn), stamp=1000 + turn)
        row = known.table.get(ME, 1)
        assert row is not None
        path = row.paths[0]
    assert [decision.event for decision in moved].count(Event.MOVED) == RACES_MAX == mine.counters.moves
    assert mine.counters.yields == (name == "paper")
    if name == "paper":
        assert (moved[-1].event, moved[-1].kind) == (Event.RENEWED, Kind.FALLBACK)
    assert mine.tick(1_010)[0].event is Event.STARTED
    assert mine.segment_ended(2_000, 2_000, 1, 5).event is Event.RENEWED


def test_an_active_loser_of_the_paper_gives_up_its_claim() -> None:
    mine, known = decider("paper")
    assert mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths == (0,)
    (yielded,) = hear(mine, known, rival(0, 499))
    assert (yielded.event, yielded.kind, yielded.paths) == (Event.RENEWED, Kind.FALLBACK, (0,))
    assert known.claims is not None
    assert known.claims.owner(0) == (499, OTHER, 0)
    moved = mine.segment_ended(60, 600, 1, BIG // 2)
    assert (moved.event, moved.kind, moved.paths) == (Event.MOVED, Kind.STEERED, (1,))


def test_a_pending_loser_of_the_paper_may_fall_back_to_its_own_path() -> None:
    mine, known = decider("paper", spines=2, hold_ns=1_000)
    mine.flow_arrived(10, 500, 1, 0, 1, BIG, spread=3)
    known.table.put(rival(1, 501, flow=1))
    (decision,) = hear(mine, known, rival(0, 499))
    assert decision.kind is Kind.FALLBACK
    assert decision.event is (Event.RENEWED if decision.paths == (0,) else Event.MOVED)
    both = set()
    for spread in range(16):
        mine, known = decider("paper", spines=2, hold_ns=1_000)
        mine.flow_arrived(10, 500, 1, 0, 1, BIG, spread=spread)
        known.table.put(rival(1, 501, flow=1))
        both |= {each.event for each in hear(mine, known, rival(0, 499))}
    assert both == {Event.RENEWED, Event.MOVED}


def test_with_moves_on_a_transfer_moves_at_a_segment_end_where_that_helps() -> None:
    mine, known = decider(spines=2, moves=True)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG).paths[0]
    assert mine.segment_ended(20, 600, 1, BIG // 2).event is Event.RENEWED
    hear(mine, known, rival(path, 601))
    moved = mine.segment_ended(30, 700, 1, BIG // 3)
    assert (moved.event, moved.paths) == (Event.MOVED, (1 - path,))
    assert mine.counters.conflicts == 0


def test_after_a_restart_running_transfers_keep_their_paths() -> None:
    mine, known = decider()
    decision = mine.flow_resumed(10, 500, 1, 0, 1, BIG, (2,))
    assert (decision.kind, decision.paths) == (Kind.STEERED, (2,))
    assert known.table.get(ME, 1) == decision.announce
    assert mine.flow_resumed(10, 500, 2, 0, 1, 5, (2,)).kind is Kind.UNMANAGED
    assert mine.flow_resumed(10, 500, 3, 0, 1, BIG, ()).kind is Kind.UNMANAGED
    assert [entry.name for flow in (1, 2, 3) for entry in mine.why(flow)] == ["flow_resumed"] * 3
    for paths in ((4,), (1, 1)):
        with pytest.raises(LocalProtocolError, match="can't run on"):
            mine.flow_resumed(10, 500, 4, 0, 1, BIG, paths)
    mine.check()


def test_a_resumed_transfer_of_the_paper_claims_its_path_unless_it_is_taken() -> None:
    mine, known = decider("paper")
    known.table.put(rival(2, 400))
    assert mine.flow_resumed(10, 500, 1, 0, 1, BIG, (1,)).kind is Kind.STEERED
    assert mine.flow_resumed(10, 500, 2, 0, 1, BIG, (2,)).kind is Kind.FALLBACK
    mine.check()


def test_a_greater_epoch_announces_all_rows_again() -> None:
    mine, known = decider()
    mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    mine.flow_arrived(10, 501, 2, 0, 2, BIG)
    decisions = mine.renew(20, 9)
    versions = [each.announce.version for each in decisions if isinstance(each.announce, Row)]
    assert versions == [(9, 1), (9, 2)]
    assert sorted(row.version for row in known.table) == versions
    mine.check()
    with pytest.raises(LocalProtocolError, match="epoch 9 does not follow 9"):
        mine.renew(21, 9)


def test_our_callers_mistakes_are_raised() -> None:
    mine, _ = decider(hold_ns=1_000)
    mine.flow_arrived(10, 500, 1, 0, 1, BIG)
    with pytest.raises(LocalProtocolError, match="flow 1 has arrived already"):
        mine.flow_arrived(11, 501, 1, 0, 1, BIG)
    with pytest.raises(LocalProtocolError, match="flow 1 has arrived already"):
        mine.flow_resumed(11, 501, 1, 0, 1, BIG, (0,))
    with pytest.raises(LocalProtocolError, match="before it started"):
        mine.segment_ended(11, 501, 1, 5)
    for call in (mine.flow_started, mine.flow_completed):
        with pytest.raises(LocalProtocolError, match="flow 2 has not arrived here"):
            call(11, 2)


def test_why_tells_the_inputs_of_a_transfer_and_the_history_is_bounded() -> None:
    mine, known = decider(spines=2, hold_ns=1_000, history=3)
    path = mine.flow_arrived(10, 500, 1, 0, 1, BIG, cause=1).paths[0]
    hear(mine, known, rival(path, 499))
    mine.flow_arrived(60, 1001, 2, 0, 1, BIG, cause=3)
    assert [(entry.cause, entry.name, entry.rival, entry.event) for entry in mine.why(1)] == [
        (1, "flow_arrived", None, Event.ASSIGNED),
        (77, "row_changed", Key(OTHER, 0), Event.MOVED),
    ]
    mine.flow_completed(70, 2)
    mine.flow_completed(80, 1)
    assert len(mine.history) == 3
    assert [entry.name for entry in mine.why(1)] == ["flow_completed"]


class AnyLife(RuleBasedStateMachine):
    """Any order of inputs keeps the invariants, and every announcement is a newer version."""

    flows = Bundle("flows")
    name: Literal["ark", "paper"] = "ark"

    def __init__(self) -> None:
        super().__init__()
        self.mine, self.known = decider(self.name, spines=3, hold_ns=1_000, rows_max=12)
        self.now = 0
        self.next_flow = 0
        self.seq = 0

    def step(self) -> int:
        self.now += 400
        self.look(self.mine.tick(self.now))
        return self.now

    def look(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if decision.announce is not None:
                self.seq += 1
                assert decision.announce.version == (5, self.seq)

    @rule(target=flows, ahead=st.booleans(), leaf=st.integers(1, 2), spread=st.integers(0, 9))
    def arrive(self, ahead: bool, leaf: int, spread: int) -> int:
        now = self.step()
        self.next_flow += 1
        decision = self.mine.flow_arrived(now, now, self.next_flow, 0, leaf, BIG, spread=spread, ahead=ahead)
        self.look([decision])
        return self.next_flow

    @rule(flow=flows)
    def start(self, flow: int) -> None:
        self.look([self.mine.flow_started(self.step(), flow)])

    @rule(flow=flows, left=st.integers(0, BIG))
    def end_segment(self, flow: int, left: int) -> None:
        now = self.step()
        self.look([self.mine.flow_started(now, flow), self.mine.segment_ended(now, now, flow, left)])

    @rule(flow=consumes(flows))
    def complete(self, flow: int) -> None:
        self.look([self.mine.flow_completed(self.step(), flow)])

    @rule(flow=st.integers(0, 5), path=st.integers(0, 2), late=st.integers(0, 2000), moves=st.integers(0, 1))
    def hear(self, flow: int, path: int, late: int, moves: int) -> None:
        now = self.step()
        change = self.known.table.put(rival(path, max(0, now - late), flow=flow, moves=moves))
        if change is not None:
            self.look(self.mine.row_changed(now, now, change))

    @rule(flow=st.integers(0, 5))
    def lose(self, flow: int) -> None:
        change = self.known.table.remove(OTHER, flow)
        if change is not None:
            assert self.mine.row_changed(self.now, self.now, change) == []

    @rule()
    def wait(self) -> None:
        self.now += PENDING_MAX_NS
        self.step()

    @invariant()
    def consistent(self) -> None:
        self.mine.check()
        self.known.table.check()


class AnyLifeOfThePaper(AnyLife):
    name = "paper"


TestAnyLife = pytest.mark.slow(AnyLife.TestCase)
TestAnyLifeOfThePaper = pytest.mark.slow(AnyLifeOfThePaper.TestCase)
TestAnyLife.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestAnyLifeOfThePaper.settings = TestAnyLife.settings


def test_own_rows_and_rows_that_are_gone_beat_nobody() -> None:
    mine, _ = decider()
    first = mine.flow_arrived(10, 500, 1, 0, 1, BIG).announce
    assert isinstance(first, Row)
    assert mine.losers(Change(None, replace(first, flow=0, stamp=1))) == []
    assert mine.losers(Change(first, None)) == []
