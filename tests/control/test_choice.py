import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.control.networks import GBPS, Clos, three_tiers

from ark.control.choice import LeastLoaded, least_loaded, mix
from ark.control.geometry import PathSets
from ark.control.load import FLOW, LinkLoads
from ark.control.policy import Request
from ark.control.rows import Change, Row, State

SIZE = 1000


def row(
    paths: tuple[int, ...], *, host: int = 0, source: int = 0, target: int = 1, size_bytes: int = SIZE
) -> Row:
    return Row(host, 0, 1, 0, State.ACTIVE, paths, source, target, size_bytes, 1)


def request(source: int = 0, target: int = 1, *, rotation: int = 0, size_bytes: int = SIZE) -> Request:
    return Request(source, target, size_bytes, rotation, 0)


def chooser(network: Clos, *rows: Row, stripes: int = 1) -> tuple[LeastLoaded, LinkLoads]:
    paths = PathSets(network)
    loads = LinkLoads(paths)
    for each in rows:
        loads.change(None, each)
    return LeastLoaded(paths, loads, stripes=stripes), loads


def test_the_hash_is_splitmix64() -> None:
    """First outputs of SplitMix64 seeded with 0 and 1234567 (the vectors of its reference program)."""
    assert mix(0) == 0xE220A8397B1DCDAF
    assert mix(1234567) == 6457827717110365317
    assert mix(1, 2) != mix(2, 1)
    assert mix() == 0


@pytest.mark.slow
def test_the_hash_is_the_same_in_every_process() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", "from ark.control.choice import mix; print(mix(3, 2**64 - 1))"],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{mix(3, 2**64 - 1)}\n".encode()}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([100, 200, 400])), min_size=24,
             max_size=24),
    st.integers(0, 10**6),
)  # fmt: skip
def test_the_choice_is_that_of_the_rule_in_whole_numbers(
    links: list[tuple[int, int, int]], rotation: int
) -> None:
    """Rule 5 in fractions, one sorted tuple a path."""
    rates = tuple(rate * GBPS for _, _, rate in links)
    network = Clos(3, 4, rates)
    loads = LinkLoads(PathSets(network))
    for link, (flows, size_bytes, _) in enumerate(links):
        loads.shift([link], flows * FLOW, size_bytes)
    paths = network.attachment_paths(0, 2)

    def order(position: int) -> tuple[list[Fraction], list[Fraction], int]:
        flows = [Fraction(links[link][0] + 1, rates[link]) for link in paths[position]]
        sizes = [Fraction(links[link][1] + SIZE, rates[link]) for link in paths[position]]
        rank = (position - rotation) % len(paths)
        return sorted(flows, reverse=True), sorted(sizes, reverse=True), rank

    assert least_loaded(loads, paths, SIZE, rotation) == min(range(4), key=order)


def test_both_links_of_a_path_count() -> None:
    """Path 0 is busy above the own leaf, path 1 below the target leaf, path 2 nowhere on the way."""
    pick, _ = chooser(
        Clos(3, 3),
        row((0,), source=0, target=2),
        row((1,), source=2, target=1),
        row((2,), source=2, target=0),
    )
    assert pick.pick(request()).paths == (2,)


def test_a_fast_link_takes_more_flows() -> None:
    rates = (100 * GBPS, 400 * GBPS) * 4
    pick, loads = chooser(Clos(2, 2, rates))
    taken = []
    for _ in range(5):
        paths = pick.pick(request()).paths
        loads.change(None, row(paths))
        taken.append(paths[0])
    # A second flow on 400 Gbit/s is at 200, a fourth at 100: only then do both paths promise the same.
    assert taken[:3] == [1, 1, 1]
    assert sorted(taken) == [0, 1, 1, 1, 1]


def test_among_equal_flows_fewer_bytes_win() -> None:
    pick, _ = chooser(Clos(2, 2), row((0,), size_bytes=500), row((1,), host=1, size_bytes=400))
    assert {pick.pick(request(rotation=rotation)).paths for rotation in range(4)} == {(1,)}


def test_on_links_of_different_rates_the_own_bytes_count_too() -> None:
    """1 of 100 and 2 of 200 Gbit/s are equal; 1000 bytes take longer on the first than 1900 on the second."""
    rates = (100 * GBPS, 200 * GBPS) * 4
    pick, _ = chooser(Clos(2, 2, rates), row((1,), size_bytes=900))
    assert {pick.pick(request(rotation=rotation)).paths for rotation in range(4)} == {(1,)}


def test_among_equals_the_rotation_decides() -> None:
    pick, _ = chooser(Clos(2, 4), row((1,)))
    assert [pick.pick(request(rotation=rotation)).paths[0] for rotation in range(8)] == [0, 2, 2, 3] * 2


def test_hosts_that_see_nothing_of_each_other_spread_like_a_random_choice() -> None:
    pick, _ = chooser(Clos(2, 8))
    for ask in (pick.pick, pick.blind):
        counts = Counter(ask(request(rotation=mix(mix(0, host), 0))).paths[0] for host in range(4000))
        # Chi-squared with 7 degrees of freedom: 24.3 is exceeded once in a thousand.
        assert sum((counts[path] - 500) ** 2 / 500 for path in range(8)) < 24.3


def test_stripes_take_the_least_loaded_paths_and_none_twice() -> None:
    pick, loads = chooser(Clos(2, 4), row((2,)), stripes=3)
    before = (loads.flows[:], loads.size_bytes[:], loads.cost[:])
    assert sorted(pick.pick(request()).paths) == [0, 1, 3]
    assert before == (loads.flows, loads.size_bytes, loads.cost)
    assert sorted(chooser(Clos(2, 2), stripes=4)[0].pick(request()).paths) == [0, 1]


def test_stripes_avoid_each_other_above_the_leaf_too() -> None:
    sets = PathSets(three_tiers())
    pick = LeastLoaded(sets, LinkLoads(sets), stripes=2)
    for rotation in range(4):
        one, two = pick.pick(request(0, 7, rotation=rotation)).paths
        links = sets.between(0, 7).link_sets
        assert links[one].isdisjoint(links[two])


@pytest.mark.parametrize("stripes", [1, 2, 4, 9])
def test_blind_stripes_are_apart(stripes: int) -> None:
    pick, _ = chooser(Clos(2, 4), stripes=stripes)
    paths = pick.blind(request(rotation=3)).paths
    assert len(set(paths)) == len(paths) == min(stripes, 4)
    if stripes == 2:
        assert abs(paths[0] - paths[1]) == 2


def test_a_move_must_take_a_flow_off_the_worst_link() -> None:
    own = row((0,), host=9)
    pick, loads = chooser(Clos(2, 2), own, row((0,), host=1))
    assert pick.repick(own, request()) == ((1,), False)
    loads.change(None, row((1,), host=2))
    before = loads.cost[:]
    assert pick.repick(own, request()) is None  # two and one: moving makes one and two
    assert loads.cost == before


def test_a_move_to_a_slower_link_must_pay() -> None:
    rates = (400 * GBPS, 100 * GBPS) * 4
    own = row((0,), host=9)
    pick, loads = chooser(Clos(2, 2, rates), own, *(row((0,), host=host) for host in range(4)))
    assert pick.repick(own, request()) == ((1,), False)  # 5 of 400 against 1 of 100: as if one flow less
    loads.change(row((0,), host=0), None)
    assert pick.repick(own, request()) is None


def test_a_striped_transfer_moves_for_the_share_of_one_stripe() -> None:
    own = row((0, 1), host=9)
    pick, loads = chooser(Clos(2, 4), own, row((0, 1), host=1), stripes=2)
    better = pick.repick(own, request())
    assert better is not None
    assert sorted(better.paths) == [2, 3]
    loads.change(None, row((2, 3), host=2))
    assert pick.repick(own, request()) is None


def test_only_a_new_row_that_is_no_move_claims() -> None:
    pick, _ = chooser(Clos(2, 2))
    new = row((0,))
    assert pick.claims(Change(None, new))
    assert not pick.claims(Change(None, replace(new, moves=1)))
    assert not pick.claims(Change(new, replace(new, size_bytes=1)))
    assert not pick.claims(Change(new, None))


def test_a_resumed_transfer_keeps_its_paths() -> None:
    pick, _ = chooser(Clos(2, 2), row((1,)))
    assert pick.resume(request(), (1,)) == ((1,), False)
