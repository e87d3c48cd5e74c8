"""Is each sentence of section 3 of the paper true here? One test a sentence, which it quotes."""

import pytest

from ark.control.decider import Decider
from ark.control.decision import Event, Kind
from ark.control.fleet import Fleet
from ark.control.policy import Policy
from ark.control.rows import Drop, Row
from ark.control.view import View, view
from ark.fabric import paper_fabric

SIZE = 1_700_000_000
FABRIC = paper_fabric()
SPINES = 4


def controller(host: int = 0) -> tuple[Decider, View]:
    policy = Policy(name="paper", line_rate_bps=100_000_000_000, hold_ns=0)
    known = view(policy, FABRIC)
    return Decider(host, 1, policy=policy, view=known), known


def taken(known: View) -> list[int]:
    assert known.claims is not None
    return [path for path in range(SPINES) if known.claims.owner(path) is not None]


def test_3_scheduling_only_the_choice_of_spine_once_per_flow_at_admission() -> None:
    """§3: "scheduling only the choice of spine, once per flow at admission"."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper")
    fleet.flow_arrived(0, 0, 0, 0, 1, SIZE, 0)
    fleet.flow_arrived(0, 1, 1, 0, 1, SIZE, 0)
    fleet.flow_completed(1, 0, 0)
    assert fleet.segment_ended(2, 1, 1, SIZE // 2) is None
    assert fleet.counters.moves == 0


def test_3_each_controller_is_aware_of_which_paths_are_available() -> None:
    """§3: "each controller is aware of which paths are currently available when it admits" a flow."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper")
    chosen = [fleet.flow_arrived(0, host, host, 0, 1, SIZE, 0).paths[0] for host in range(4)]
    assert chosen == [0, 1, 2, 3]


def test_3_1_each_path_crosses_exactly_one_spine() -> None:
    """§3.1: "each traversing exactly one spine"."""
    paths = FABRIC.attachment_paths(0, 1)
    assert len(paths) == SPINES == len(FABRIC.spines)
    middles = []
    for up, down in paths:
        assert FABRIC.links[up].target == FABRIC.links[down].source
        middles.append(FABRIC.links[up].target)
    assert tuple(middles) == FABRIC.spines


def test_3_1_an_arrival_takes_the_first_unreserved_path() -> None:
    """§3.1, eq. (4): "min k : p_k not in R"."""
    mine, _ = controller()
    for flow in range(4):
        mine.flow_arrived(0, flow, flow, 0, 1, SIZE)
    mine.flow_completed(1, 2)
    mine.flow_completed(1, 1)
    assert mine.flow_arrived(2, 9, 9, 0, 1, SIZE).paths == (1,)


def test_3_1_the_chosen_path_is_added_to_the_table_and_broadcast() -> None:
    """§3.1, eq. (5): "added to the local path reservation table and broadcast to all peers"."""
    mine, known = controller(host=7)
    decision = mine.flow_arrived(0, 42, 0, 0, 1, SIZE)
    assert taken(known) == [0]
    assert isinstance(decision.announce, Row)
    assert (decision.announce.paths, decision.announce.assignment) == ((0,), (42, 7, 0))


def test_3_1_completion_releases_the_path_and_is_broadcast() -> None:
    """§3.1, eq. (6): "released from the table and a corresponding RELEASE message is broadcast"."""
    mine, known = controller()
    mine.flow_arrived(0, 1, 0, 0, 1, SIZE)
    decision = mine.flow_completed(1, 0)
    assert taken(known) == []
    assert isinstance(decision.announce, Drop)


def test_3_1_peers_apply_incoming_updates_to_their_own_tables() -> None:
    """§3.1: "apply incoming RESERVE/RELEASE updates to their own path reservation tables"."""
    mine, _ = controller(host=1)
    peer, known = controller(host=2)
    reserve = mine.flow_arrived(0, 1, 0, 0, 1, SIZE).announce
    assert isinstance(reserve, Row)
    known.table.put(reserve)
    assert taken(known) == [0]
    assert peer.flow_arrived(1, 2, 0, 0, 1, SIZE).paths == (1,)
    known.table.remove(1, 0)
    assert taken(known) == [1]


def test_3_1_with_all_paths_reserved_a_path_is_drawn_at_random() -> None:
    """§3.1: "falls back to vanilla ECMP by randomly drawing a path index"."""
    mine, _ = controller()
    for flow in range(4):
        mine.flow_arrived(0, flow, flow, 0, 1, SIZE)
    drawn = [mine.flow_arrived(0, 9, 4 + spread, 0, 1, SIZE, spread=spread) for spread in range(8)]
    assert {decision.kind for decision in drawn} == {Kind.FALLBACK}
    assert [decision.paths[0] for decision in drawn] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_3_1_a_fallback_flow_reserves_nothing() -> None:
    """Algorithm 1, lines 14 to 21: in the branch |R| = K nothing enters R."""
    mine, known = controller()
    for flow in range(6):
        mine.flow_arrived(0, flow, flow, 0, 1, SIZE)
    for flow in range(4):
        mine.flow_completed(1, flow)
    assert taken(known) == []


def test_3_1_a_fallback_flow_that_completes_releases_nothing_of_others() -> None:
    """Algorithm 1, line 27, read so that it gives the paper's figures: released by its owner only."""
    mine, known = controller()
    for flow in range(5):
        mine.flow_arrived(0, flow, flow, 0, 1, SIZE, spread=2)
    mine.flow_completed(1, 4)
    assert taken(known) == [0, 1, 2, 3]


def test_3_1_printed_a_fallback_flow_that_completes_releases_the_entry_of_another() -> None:
    """Algorithm 1, line 27, read literally: "R <- R minus p_k" for whichever flow completes."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper", release="any")
    for flow in range(5):
        fleet.flow_arrived(0, flow, flow, 0, 1, SIZE, 2)
    fleet.flow_completed(1, 4, 4)
    assert fleet.flow_arrived(2, 5, 5, 0, 1, SIZE, 0).paths == (2,)


def test_3_2_two_hosts_may_reserve_the_same_path_within_the_delay() -> None:
    """§3.2: "two hosts may reserve the same path within a broadcast delay window"."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper", lag_ns=5_000)
    assert fleet.flow_arrived(0, 0, 0, 0, 1, SIZE, 0).paths == (0,)
    assert fleet.flow_arrived(4_999, 1, 1, 0, 1, SIZE, 0).paths == (0,)
    assert fleet.flow_arrived(5_000, 2, 2, 0, 1, SIZE, 0).paths == (1,)


@pytest.mark.parametrize("first", [0, 1])
def test_3_2_the_smaller_key_wins_and_the_loser_rehashes(first: int) -> None:
    """§3.2: "the smaller key wins, and the loser re-hashes to another path"."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper", lag_ns=5_000, hold_ns=10_000)
    fleet.flow_arrived(0, first, 0, 0, 1, SIZE, 0)
    fleet.flow_arrived(1, 1 - first, 1, 0, 1, SIZE, 0)
    (move,) = fleet.tick(50_000)
    assert move == (1 - first, 1, (1,))


def test_3_2_at_the_same_time_the_smaller_id_wins() -> None:
    """§3.2: "each RESERVE broadcast carries the key (t_i, id)"."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper", lag_ns=5_000, hold_ns=10_000)
    fleet.flow_arrived(0, 9, 0, 0, 1, SIZE, 0)
    fleet.flow_arrived(0, 3, 1, 0, 1, SIZE, 0)
    (move,) = fleet.tick(50_000)
    assert move == (9, 0, (1,))


def test_3_2_a_loser_that_already_sends_rehashes_at_the_end_of_its_segment() -> None:
    """Our addition to §3.2: inside a message no path can change, so R names the winner meanwhile."""
    fleet = Fleet(FABRIC, hosts=16, policy="paper", lag_ns=5_000)
    fleet.flow_arrived(0, 0, 0, 0, 1, SIZE, 0)
    fleet.flow_arrived(1, 1, 1, 0, 1, SIZE, 0)
    assert fleet.tick(50_000) == []
    assert [(row.host, row.fallback) for row in fleet.rows()] == [(0, False), (1, True)]
    moved = fleet.segment_ended(50_000, 1, 1, SIZE // 2)
    assert moved is not None
    assert (moved.event, moved.paths) == (Event.MOVED, (1,))
