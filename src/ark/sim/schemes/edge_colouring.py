"""Colours for the edges of a bipartite multigraph, no two alike at one end, and as few as can be.

König (1916): the most edges at any one end are enough. An edge whose two ends have no free colour in common
gets the source's, after the path that alternates in two colours from its target has swapped them.
"""

from collections.abc import Hashable, Sequence

Node = tuple[int, Hashable]
"""Side, 0 or 1, and the end itself."""


def edge_colours(edges: Sequence[tuple[Hashable, Hashable]]) -> list[int]:
    """A colour from 0 for each edge, given by its two ends."""
    colours = [-1] * len(edges)
    taken: dict[Node, dict[int, int]] = {}
    for edge, (source, target) in enumerate(edges):
        here, there = (0, source), (1, target)
        at_here, at_there = taken.setdefault(here, {}), taken.setdefault(there, {})
        free, other = _free(at_here), _free(at_there)
        if free in at_there:
            _swap(edges, colours, taken, there, free, other)
        colours[edge] = free
        at_here[free] = at_there[free] = edge
    return colours


def _free(taken: dict[int, int]) -> int:
    colour = 0
    while colour in taken:
        colour += 1
    return colour


def _swap(
    edges: Sequence[tuple[Hashable, Hashable]],
    colours: list[int],
    taken: dict[Node, dict[int, int]],
    node: Node,
    first: int,
    second: int,
) -> None:
    """Exchange two colours along the path that leaves ``node`` by an edge of colour ``first``."""
    path, colour = [], first
    while colour in taken[node]:
        edge = taken[node][colour]
        path.append(edge)
        side = 1 - node[0]
        node = (side, edges[edge][side])
        colour = first + second - colour
    for edge in path:
        for side in (0, 1):
            del taken[side, edges[edge][side]][colours[edge]]
            # Its neighbour on the path writes its own colour there below.
    for edge in path:
        colours[edge] = first + second - colours[edge]
        for side in (0, 1):
            taken[side, edges[edge][side]][colours[edge]] = edge
