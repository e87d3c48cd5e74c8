import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.control.networks import GBPS, Clos, three_tiers

from ark.control.geometry import PathSets
from ark.control.load import FLOW, LinkLoads
from ark.control.rows import STRIPES_MAX, Row, State

NETWORKS = (Clos(3, 4), Clos(3, 4, (GBPS, 3 * GBPS, 7 * GBPS, 0) * 6), three_tiers())


@st.composite
def rows(draw: st.DrawFn) -> Row:
    paths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True))
    return Row(
        draw(st.integers(0, 3)), 0, 1, 0, State.ACTIVE, tuple(paths), 0, 2, draw(st.integers(0, 10**12)), 1
    )


@given(st.sampled_from(NETWORKS), st.lists(st.tuples(rows(), st.booleans()), max_size=30))
def test_kept_incrementally_is_what_counting_anew_gives(
    network: Clos, changes: list[tuple[Row, bool]]
) -> None:
    loads, live = LinkLoads(PathSets(network)), dict[int, Row]()
    for row, stays in changes:
        new = row if stays else None
        loads.change(live.get(row.host), new)
        if new is None:
            live.pop(row.host, None)
        else:
            live[row.host] = new
        loads.check(live.values())
    for row in live.values():
        loads.change(row, None)
    loads.check([])
    assert not any(loads.flows)
    assert not any(loads.size_bytes)


def test_a_transfer_counts_once_on_each_link_of_its_path() -> None:
    loads = LinkLoads(PathSets(Clos(2, 2)))
    loads.change(None, Row(0, 0, 1, 0, State.ACTIVE, (1,), 0, 1, 1000, 1))
    assert loads.flows == [0, FLOW, 0, 0, 0, 0, 0, FLOW]
    assert loads.size_bytes == [0, 1000, 0, 0, 0, 0, 0, 1000]
    assert loads.cost[1] == 2 * FLOW / (100 * GBPS)
    assert loads.cost[0] == FLOW / (100 * GBPS)


def test_stripes_of_one_transfer_count_as_one_transfer() -> None:
    loads = LinkLoads(PathSets(Clos(2, 4)))
    loads.change(None, Row(0, 0, 1, 0, State.ACTIVE, (0, 1, 3), 0, 1, 999, 1))
    assert loads.flows[:4] == [FLOW // 3, FLOW // 3, 0, FLOW // 3]
    assert loads.size_bytes[:4] == [333, 333, 0, 333]


def test_stripes_that_share_a_link_count_twice_there() -> None:
    sets = PathSets(three_tiers())
    loads = LinkLoads(sets)
    loads.change(None, Row(0, 0, 1, 0, State.ACTIVE, (0, 1, 2, 3), 0, 7, 8, 1))
    first = sets.between(0, 7).links[0]
    assert sorted(loads.flows[link] for link in first) == [FLOW // 4, FLOW // 4, FLOW // 2, FLOW // 2]


@pytest.mark.parametrize("stripes", range(1, STRIPES_MAX + 1))
def test_every_number_of_stripes_divides_a_flow(stripes: int) -> None:
    assert FLOW % stripes == 0


def test_a_link_that_is_down_has_no_cost_and_breaks_nothing() -> None:
    loads = LinkLoads(PathSets(Clos(2, 1, (0, 0, 0, 0))))
    loads.change(None, Row(0, 0, 1, 0, State.ACTIVE, (0,), 0, 1, 8, 1))
    assert loads.rates == [math.inf] * 4
    assert loads.cost == [0.0] * 4


def test_news_of_bytes_changes_bytes_and_nothing_else() -> None:
    loads = LinkLoads(PathSets(Clos(2, 2)))
    first = Row(0, 0, 1, 0, State.PENDING, (0, 1), 0, 1, 1000, 1)
    loads.change(None, first)
    before = loads.flows[:], loads.cost[:]
    started = replace(first, state=State.ACTIVE)
    loads.change(first, started)
    loads.check([started])
    later = replace(started, size_bytes=400)
    loads.change(started, later)
    loads.check([later])
    assert loads.size_bytes == [200, 200, 0, 0, 0, 0, 200, 200]
    assert before == (loads.flows, loads.cost)
