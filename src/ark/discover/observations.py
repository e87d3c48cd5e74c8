"""What learned maps say about each switch: which headers it saw, and which neighbour it sent them to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ark.discover.learned import LearnedMap
from ark.fabric.five_tuple import address_words
from ark.fabric.hashing.header import Header

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Observations:
    """Headers that crossed one switch, in lanes, and the place in ``neighbours`` of where each went."""

    switch: str
    header: Header
    choices: "npt.NDArray[np.int64]"
    neighbours: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.choices)


def observations(maps: Iterable[LearnedMap]) -> list[Observations]:
    """The decisions that probes tell about: of each switch that sent some ports here and others there.

    Maps of IPv4 and of IPv6 are kept apart; a switch may then come twice.
    """
    rows: dict[tuple[str, int], list[tuple[LearnedMap, int, str]]] = {}
    for one in maps:
        if one.influence != "port":
            continue
        words = len(address_words(one.source_address))
        for path in one.paths:
            for switch, following in zip(path.hops, path.hops[1:], strict=False):
                if switch and following:
                    rows.setdefault((switch, words), []).extend((one, port, following) for port in path.ports)
    found = []
    for (switch, _), seen in sorted(rows.items(), key=lambda item: item[0]):
        neighbours = tuple(dict.fromkeys(following for _, _, following in seen))
        if _decides(seen):
            found.append(_in_lanes(switch, seen, neighbours))
    return found


def header_of_ports(one: LearnedMap, ports: "npt.NDArray[np.uint32]") -> Header:
    """The headers of a pair's packets with these source ports."""
    src, dst = address_words(one.source_address), address_words(one.target_address)
    return Header(src, dst, one.proto, ports, one.dport, one.dest_qp)


def _decides(seen: Iterable[tuple[LearnedMap, int, str]]) -> bool:
    """Whether a switch sent packets of one pair to several neighbours; else it only forwards."""
    by_pair: Mapping[tuple[str, str], set[str]] = {}
    sets: dict[tuple[str, str], set[str]] = dict(by_pair)
    for one, _, following in seen:
        sets.setdefault((one.source, one.target), set()).add(following)
    return any(len(neighbours) > 1 for neighbours in sets.values())


def _in_lanes(
    switch: str, seen: list[tuple[LearnedMap, int, str]], neighbours: tuple[str, ...]
) -> Observations:
    import numpy as np  # noqa: PLC0415 - only inference needs NumPy

    def lanes(values: Iterable[int]) -> "npt.NDArray[np.uint32]":
        return np.fromiter(values, dtype=np.uint32)

    sources = [address_words(one.source_address) for one, _, _ in seen]
    targets = [address_words(one.target_address) for one, _, _ in seen]
    header = Header(
        tuple(lanes(column) for column in zip(*sources, strict=True)),
        tuple(lanes(column) for column in zip(*targets, strict=True)),
        lanes(one.proto for one, _, _ in seen),
        lanes(port for _, port, _ in seen),
        lanes(one.dport for one, _, _ in seen),
        lanes(one.dest_qp for one, _, _ in seen),
    )
    places = {name: place for place, name in enumerate(neighbours)}
    choices = np.fromiter((places[following] for _, _, following in seen), dtype=np.int64)
    return Observations(switch, header, choices, neighbours)
