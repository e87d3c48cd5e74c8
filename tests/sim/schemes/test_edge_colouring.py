from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ark.sim.schemes.edge_colouring import edge_colours

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=80)


@given(EDGES)
def test_no_two_edges_of_one_end_are_alike_and_the_busiest_end_is_all_it_takes(
    edges: list[tuple[int, int]],
) -> None:
    colours = edge_colours(edges)
    for side in (0, 1):
        at_end = [(edge[side], colour) for edge, colour in zip(edges, colours, strict=True)]
        assert len(set(at_end)) == len(at_end)
    degrees = [Counter(edge[side] for edge in edges) for side in (0, 1)]
    assert max(colours, default=-1) < max([0, *degrees[0].values(), *degrees[1].values()])


def test_an_edge_that_needs_a_swap() -> None:
    # The last edge's ends have no free colour of the two in common.
    assert sorted(edge_colours([("a", "x"), ("b", "x"), ("b", "y"), ("a", "y")])) == [0, 0, 1, 1]
