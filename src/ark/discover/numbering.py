"""Numbers for discovered paths, so that "path 2" means the same on every host.

With the fabric's file a path has the number that the fabric gives it. With a table of names alone, a fabric
of two tiers numbers its paths by the spines' places in that table. Without either, paths are numbered in the
order of what answered; that is good enough for one host, and other hosts may number otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from ark.errors import ConfigError
from ark.fabric import Fabric

Kind = Literal["fabric", "names", "order"]
Hops = tuple[str | None, ...]


class Numbering(Protocol):
    """Gives each sequence of switches of one pair its number."""

    kind: Kind

    def numbers(self, source: str, target: str, found: Iterable[Hops]) -> dict[Hops, int]:
        """The number of each of the paths that were found between two NICs, given by name."""


class FabricNumbering:
    """Numbers of a fabric's own paths."""

    kind: Kind = "fabric"

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    def numbers(self, source: str, target: str, found: Iterable[Hops]) -> dict[Hops, int]:
        """See ``Numbering``.

        Raises
        ------
        ConfigError
            If a path is none of the fabric's, or could be several of them.
        """
        known = paths_by_switches(self._fabric, source, target)
        numbers: dict[Hops, int] = {}
        faults = []
        for hops in found:
            fitting = [number for switches, number in known if _fits(hops, switches)]
            if len(fitting) == 1:
                numbers[hops] = fitting[0]
                continue
            why = "is no path of the fabric" if not fitting else f"may be any of the paths {fitting}"
            faults.append(
                f"{source} to {target}: {shown(hops)} {why}; the table of names must have every address of "
                "the switches on the way, and the fabric file the links that are there"
            )
        if faults:
            raise ConfigError(*faults)
        return numbers


class NameNumbering:
    """Places of spines in a table of names; paths that vary at several switches go by their order."""

    kind: Kind = "names"

    def __init__(self, names: Mapping[str, str]) -> None:
        self._places = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}

    def numbers(self, source: str, target: str, found: Iterable[Hops]) -> dict[Hops, int]:  # noqa: ARG002
        """See ``Numbering``."""
        paths = list(found)
        named = {hops: [self._places[hop] for hop in hops if hop in self._places] for hops in paths}
        if all(len(places) == 1 for places in named.values()):
            return {hops: places[0] for hops, places in named.items()}
        varying = _varying(paths)
        if len(varying) == 1 and all(hops[varying[0]] in self._places for hops in paths):
            # Tables that also list leaves number from the first spine on if spines come first.
            return {hops: self._places[str(hops[varying[0]])] for hops in paths}
        last = len(self._places)
        places = [
            (tuple(self._places.get(hop or "", last) for hop in hops), shown(hops), hops) for hops in paths
        ]
        return {hops: number for number, (_, _, hops) in enumerate(sorted(places, key=lambda p: p[:2]))}


class OrderNumbering:
    """Paths in the order of the addresses on them."""

    kind: Kind = "order"

    def numbers(self, source: str, target: str, found: Iterable[Hops]) -> dict[Hops, int]:  # noqa: ARG002
        """See ``Numbering``."""
        return {hops: number for number, hops in enumerate(sorted(found, key=shown))}


def paths_by_switches(fabric: Fabric, source: str, target: str) -> list[tuple[tuple[str, ...], int]]:
    """The switches and the number of each path that is up between two NICs, given by name."""
    paths = fabric.paths(fabric.nic(source), fabric.nic(target))
    return [(tuple(fabric.links[k].source for k in path.links[1:]), path.index) for path in paths]


def shown(hops: Hops) -> str:
    """Switches in a line, for people."""
    return " > ".join(hop or "?" for hop in hops)


def _fits(hops: Hops, switches: Sequence[str]) -> bool:
    """Whether a path can be what was found; who was asked may not know the last switches on the way."""
    return len(hops) <= len(switches) and all(
        hop is None or hop == switch for hop, switch in zip(hops, switches, strict=False)
    )


def _varying(paths: Sequence[Hops]) -> list[int]:
    if len({len(hops) for hops in paths}) != 1:
        return []
    return [place for place, column in enumerate(zip(*paths, strict=True)) if len(set(column)) > 1]
