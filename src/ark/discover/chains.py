"""A finding out of what switches say themselves: for each source port the switches on its way."""

from collections.abc import Mapping

from ark.discover.numbering import Hops
from ark.discover.probe import Flow
from ark.discover.search import Finding
from ark.fabric.pathmap import Influence


def finding_of(flow: Flow, chains: Mapping[int, Hops]) -> Finding:
    """The finding for one pair; ``chains`` has the switches, in order and equally many, for each port."""
    columns = list(zip(*chains.values(), strict=True))
    varying = tuple(place for place, column in enumerate(columns, 1) if len(set(column)) > 1)
    ports = {port: tuple(hops[place - 1] or "" for place in varying) for port, hops in sorted(chains.items())}
    return Finding(
        flow,
        tuple(column[0] if len(set(column)) == 1 else None for column in columns),
        varying,
        ports,
        Influence.PORT if varying else Influence.ONE_PATH,
        "the source port decides the path" if varying else "all source ports took the same path",
        (),
        (),
    )
