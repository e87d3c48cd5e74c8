"""Which paths lead from one attachment to another, and which next hops a switch has: worked out when asked.

Paths are found between attachments, not NICs, because all NICs of a leaf share them; 4096 hosts on 64 leaves
have 4096 pairs of attachments and 16 million pairs of NICs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ark.fabric.parts import Attachment, Link, Nic, Switch
from ark.fabric.switch_graph import UNREACHABLE, Edge, SwitchGraph, Walk

_WALKS_KEPT: Final = 500_000
"""Walks kept for reuse (about 200 bytes each); when they are more, all are dropped and made again."""

_NEXT_HOPS_KEPT: Final = 500_000
"""Next-hop groups kept for reuse (about 200 bytes each); when they are more, all are made again."""


@dataclass(frozen=True, slots=True)
class PairPaths:
    """The paths between two attachments, by number: the usual ones first, detours (if any) after them.

    ``usable`` are the numbers of those that are up. ``links`` are the switch-to-switch links of each.
    """

    walks: tuple[Walk, ...]
    links: tuple[tuple[int, ...], ...]
    usable: tuple[int, ...]
    spines: tuple[str | None, ...]


class Routing:
    """Shortest paths and next hops of one fabric.

    Parameters
    ----------
    nics, switches, links, attachments
        All of the fabric, by index.
    positions
        Place of each switch in ``switches``, by name.
    spines
        Names of the switches of the top tier.
    """

    def __init__(
        self,
        *,
        nics: Sequence[Nic],
        switches: Sequence[Switch],
        links: Sequence[Link],
        attachments: Sequence[Attachment],
        positions: Mapping[str, int],
        spines: Sequence[str],
    ) -> None:
        self._switches = switches
        self._links = links
        self._attachments = attachments
        self._positions = positions
        self._spines = frozenset(spines)
        self.ports = _ports_of_nics(nics, links)
        self.graph = SwitchGraph(
            len(switches),
            (
                Edge(positions[link.source], positions[link.target], link.index, link.up)
                for link in links
                if link.source in positions and link.target in positions
            ),
        )
        self._members = _members_of_lags(links)
        self._pairs: dict[tuple[int, int], PairPaths] = {}
        self._walks_kept = 0
        self._next_hops: dict[tuple[int, int], tuple[int, ...]] = {}

    def pair(self, source: int, target: int) -> PairPaths:
        """All paths between two attachments."""
        found = self._pairs.get((source, target))
        if found is not None:
            return found
        walks = self.graph.walks(self._described(source), self._described(target), up_only=False)
        live = self.live(source), self.live(target)
        usable = [number for number, walk in enumerate(walks) if self._is_up(walk, *live)]
        if not usable:  # a longer way round may be left; its number comes after those of the usual paths
            detours = self.graph.walks(*live, up_only=True)
            usable = list(range(len(walks), len(walks) + len(detours)))
            walks += detours
        if self._walks_kept + len(walks) > _WALKS_KEPT:
            self._pairs.clear()
            self._walks_kept = 0
        self._walks_kept += len(walks)
        self._pairs[source, target] = found = PairPaths(
            walks=tuple(walks),
            links=tuple(walk.links for walk in walks),
            usable=tuple(usable),
            spines=tuple(self._spine(walk) for walk in walks),
        )
        return found

    def next_hops(self, position: int, target: Nic) -> tuple[int, ...]:
        """The links over which a switch may forward to a NIC, in ECMP order."""
        distances = self.graph.distances(self.live(target.attachment), up_only=True)
        if distances[position] == UNREACHABLE:
            return ()
        if distances[position] == 0:
            name = self._switches[position].name
            return tuple(into for _, into in self.ports[target.index] if self._links[into].source == name)
        key = (position, target.attachment)
        found = self._next_hops.get(key)
        if found is None:
            if len(self._next_hops) >= _NEXT_HOPS_KEPT:
                self._next_hops.clear()
            found = self._next_hops[key] = self._hops_towards(position, distances)
        return found

    def ports_towards(self, nic: Nic, target: Nic) -> tuple[int, ...]:
        """The links over which a NIC may send to another: those of its ports that are nearest to it."""
        distances = self.graph.distances(self.live(target.attachment), up_only=True)
        reach = [
            (distances[self._positions[self._links[out].target]], out)
            for out, _ in self.ports[nic.index]
            if self._links[out].up
        ]
        least = min((distance for distance, _ in reach if distance != UNREACHABLE), default=None)
        return tuple(out for distance, out in reach if distance == least)

    def lag_members(self, link: int) -> tuple[int, ...]:
        """The links that are up of the LAG that a link belongs to; just itself outside of a LAG."""
        return self._members.get(link, (link,))

    def live(self, attachment: int) -> tuple[int, ...]:
        """Positions of those switches of an attachment that its NICs reach now."""
        return tuple(self._positions[name] for name in self._attachments[attachment].live)

    def _described(self, attachment: int) -> tuple[int, ...]:
        return tuple(self._positions[name] for name in self._attachments[attachment].switches)

    def _is_up(self, walk: Walk, sources: tuple[int, ...], targets: tuple[int, ...]) -> bool:
        return walk.first in sources and walk.last in targets and all(self._links[k].up for k in walk.links)

    def _spine(self, walk: Walk) -> str | None:
        crossed = [name for k in walk.links if (name := self._links[k].target) in self._spines]
        return crossed[0] if len(crossed) == 1 else None

    def _hops_towards(self, position: int, distances: Sequence[int]) -> tuple[int, ...]:
        closer = [
            link
            for neighbour, link in self.graph.hops(position, up_only=True)
            if distances[neighbour] == distances[position] - 1 and self.lag_members(link)[0] == link
        ]
        order = self._switches[position].next_hop_order
        if order == "descending":
            closer.reverse()
        elif order != "ascending":
            rank = {name: place for place, name in enumerate(order)}
            closer.sort(key=lambda link: rank.get(self._links[link].target, len(rank)))
        return tuple(closer)


def _ports_of_nics(nics: Sequence[Nic], links: Sequence[Link]) -> tuple[tuple[tuple[int, int], ...], ...]:
    indices = {nic.name: nic.index for nic in nics}
    into = {(link.source, link.target): link.index for link in links if link.target in indices}
    ports: list[list[tuple[int, int]]] = [[] for _ in nics]
    for link in links:
        if link.source in indices:
            ports[indices[link.source]].append((link.index, into[link.target, link.source]))
    return tuple(tuple(of_nic) for of_nic in ports)


def _members_of_lags(links: Sequence[Link]) -> dict[int, tuple[int, ...]]:
    groups: dict[tuple[str, str, str], list[int]] = {}
    for link in links:
        if link.lag is not None and link.up:
            groups.setdefault((link.source, link.target, link.lag), []).append(link.index)
    return {member: tuple(group) for group in groups.values() for member in group}
