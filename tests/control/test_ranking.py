"""Rankings choose as the comparison of all paths does, whatever happened to the links."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.control.networks import GBPS, Clos, three_tiers

from ark.control import choice
from ark.control.choice import LeastLoaded, least_loaded
from ark.control.geometry import PathSets
from ark.control.load import FLOW, LinkLoads
from ark.control.policy import Request
from ark.control.ranking import PATHS_MIN, Ranking, can_rank
from ark.control.rows import Row, State

PATHS = 9
NETWORKS: list[Any] = [Clos(3, PATHS), three_tiers()]


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """A link, more or fewer flows on it, and bytes."""
    step = st.tuples(st.integers(0, 53), st.integers(0, 2), st.integers(0, 2))
    return draw(st.lists(step, max_size=40))


@given(st.sampled_from(NETWORKS), steps(), st.data())
def test_the_best_is_that_of_the_comparison(
    network: Any, changes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    sets = PathSets(network)
    loads = LinkLoads(sets)
    pairs = [sets.between(0, 2), sets.between(1, 2)]
    rankings = [Ranking(loads, ways) for ways in pairs]
    for number, flows, sizes in changes:
        link = number % len(loads.flows)
        loads.shift([link], flows * FLOW - loads.flows[link], sizes - loads.size_bytes[link])
        if data.draw(st.booleans()):
            for ways, ranked in zip(pairs, rankings, strict=True):
                count = len(ways.usable)
                without = sorted(data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1)))
                rotation = data.draw(st.integers(0, 2**64))
                left = [position for position in range(count) if position not in without]
                among = [ways.usable_links[position] for position in left]
                assert ranked.best(rotation, without) == left[least_loaded(loads, among, 7, rotation)]
    for ranked in rankings:
        ranked.check()


@pytest.mark.parametrize("stripes", [1, 3])
def test_a_chooser_with_rankings_chooses_as_one_without(
    monkeypatch: pytest.MonkeyPatch, stripes: int
) -> None:
    monkeypatch.setattr(choice, "RANKINGS_MAX", 2)
    answers = []
    for least in (PATHS_MIN, 2):
        monkeypatch.setattr(choice, "PATHS_MIN", least)
        sets = PathSets(Clos(4, PATHS))
        loads = LinkLoads(sets)
        chooser = LeastLoaded(sets, loads, stripes=stripes)
        given_ = []
        for number in range(60):
            source, target = number % 3, 3 - number % 2
            if source == target:
                continue
            pick = chooser.pick(Request(source, target, 900 + number, number * 7919, 0))
            given_.append(pick.paths)
            for path in pick.paths:
                loads.shift(sets.between(source, target).links[path], FLOW // stripes, 900 + number)
        answers.append(given_)
    assert answers[0] == answers[1]


def test_a_ranking_is_for_paths_of_one_rate() -> None:
    for rates, right in ((), True), ((100 * GBPS, 400 * GBPS) * (2 * PATHS_MIN), False):
        sets = PathSets(Clos(2, PATHS_MIN, rates))
        assert can_rank(LinkLoads(sets), sets.between(0, 1)) is right


def test_the_heap_stays_small_however_often_loads_change() -> None:
    sets = PathSets(Clos(2, PATHS))
    loads = LinkLoads(sets)
    ranked = Ranking(loads, sets.between(0, 1))
    for number in range(2000):
        loads.shift([number % (4 * PATHS)], 0, 2000 - number if number % 2 else number - 2000)
        ranked.best(0, [])
    ranked.check()


def test_news_of_bytes_count_at_once() -> None:
    sets = PathSets(Clos(2, PATHS_MIN))
    loads = LinkLoads(sets)
    chooser = LeastLoaded(sets, loads)
    request = Request(0, 1, 5, 3, 0)
    assert chooser.pick(request).paths == chooser.pick(request).paths == (3,)
    rows = [Row(1, 0, 1, path, State.ACTIVE, (path,), 0, 1, 100, 1) for path in range(PATHS_MIN)]
    for row in rows:
        loads.change(None, row)
    loads.change(rows[7], replace(rows[7], size_bytes=50))
    assert chooser.pick(request).paths == (7,)
