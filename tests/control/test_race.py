from hypothesis import given
from hypothesis import strategies as st
from tests.control.networks import Clos

from ark.control.choice import LeastLoaded
from ark.control.decision import Kind, Transfer
from ark.control.geometry import PathSets
from ark.control.load import LinkLoads
from ark.control.policy import Request
from ark.control.race import lost_to
from ark.control.rows import Row, State

PATHS = PathSets(Clos(3, 2))
CHOOSER = LeastLoaded(PATHS, LinkLoads(PATHS))


def row(host: int, flow: int, stamp: int, path: int, source: int = 0, target: int = 1) -> Row:
    return Row(host, 0, 1, flow, State.ACTIVE, (path,), source, target, 1000, stamp)


def transfer(own: Row) -> Transfer:
    request = Request(own.source, own.target, own.size_bytes, 0, 0)
    return Transfer(own.flow, request, Kind.STEERED, own.paths, 0, own)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(1, 2)), max_size=8),
    st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(1, 2)),
    st.sampled_from([1, 9]),
)
def test_who_loses_is_told_by_keys_and_links_alone(
    own: list[tuple[int, int, int]], other: tuple[int, int, int], rival_host: int
) -> None:
    """Our transfers (host 5) stand in the order of their stamps; ties go by host."""
    ours = [row(5, flow, *each[:2], 0, each[2]) for flow, each in enumerate(sorted(own))]
    rival = row(rival_host, 0, other[0], other[1], 0, other[2])
    losers = lost_to(rival, {each.flow: transfer(each) for each in ours}, CHOOSER)
    expected = [
        each.flow
        for each in ours
        # One leaf sends everything, so one spine means one link.
        if each.paths == rival.paths and rival.assignment < each.assignment
    ]
    assert [each.flow for each in losers] == expected


def test_a_row_that_is_not_late_costs_one_look() -> None:
    class Counted(LeastLoaded):
        asked = 0

        def contests(self, own: Row, row: Row) -> bool:
            Counted.asked += 1
            return super().contests(own, row)

    ours = {flow: transfer(row(5, flow, flow, 0)) for flow in range(10_000)}
    assert lost_to(row(1, 0, 20_000, 0), ours, Counted(PATHS, LinkLoads(PATHS))) == []
    assert Counted.asked == 0
    assert len(lost_to(row(1, 0, 9_998, 0), ours, Counted(PATHS, LinkLoads(PATHS)))) == 2
    assert Counted.asked == 2
