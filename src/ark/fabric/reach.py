"""Which attachments reach each other at all, and which are farthest apart.

Sets of switches are the bits of one integer, so that a ball around a switch grows by whole words: a fabric of
4000 switches takes about a second, where a search from each would take minutes.
"""

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

from ark.fabric.topology import Fabric


class Reach(NamedTuple):
    """Two attachments, and the switch-to-switch links on a shortest way between them."""

    source: int
    target: int
    links: int


class Unreachable(NamedTuple):
    """How many pairs of attachments have no way between them, and one such pair."""

    pairs: int
    example: tuple[int, int]


def farthest(fabric: Fabric) -> Reach:
    """Two attachments that reach each other and are as far apart as any; the first one twice if none do."""
    neighbours, doors = _neighbours(fabric), _doors(fabric)
    realms = _realms(fabric, neighbours)
    all_doors = 0
    for door in doors:
        all_doors |= door
    waiting = {number: number for number in range(len(doors))}  # to a target not yet reached
    balls = [1 << place for place in range(len(fabric.switches))]
    far, radius = Reach(0, 0, 0), 0
    while waiting:
        for source in list(waiting):
            ball = _union(doors[source], balls)
            inside = all_doors & realms[source]
            if ball & inside == inside:
                left = None
            else:
                left = next((n for n, door in enumerate(doors) if door & inside and not door & ball), None)
            if left is not None:
                waiting[source] = left
            else:
                far = max(far, Reach(source, waiting.pop(source), radius), key=lambda reach: reach.links)
        balls = [_union(around, balls) | balls[place] for place, around in enumerate(neighbours)]
        radius += 1
    return far


def unreachable(fabric: Fabric) -> Unreachable | None:
    """How many pairs of attachments have no way between them; nothing where all reach each other."""
    members: dict[int, list[int]] = defaultdict(list)
    for number, realm in enumerate(_realms(fabric, _neighbours(fabric))):
        members[realm].append(number)
    apart = [(members[one], members[other]) for one, other in combinations(members, 2) if not one & other]
    alone = members.get(0, [])  # these have no live port, so they do not reach each other either
    pairs = sum(len(one) * len(other) for one, other in apart) + len(alone) * (len(alone) - 1) // 2
    if not pairs:
        return None
    return Unreachable(pairs, (apart[0][0][0], apart[0][1][0]) if apart else (alone[0], alone[1]))


def _neighbours(fabric: Fabric) -> list[int]:
    """For each switch the switches next to it over links that are up."""
    position = {switch.name: place for place, switch in enumerate(fabric.switches)}
    around = [0] * len(fabric.switches)
    for link in fabric.links:
        if link.up and link.source in position and link.target in position:
            around[position[link.source]] |= 1 << position[link.target]
    return around


def _doors(fabric: Fabric) -> list[int]:
    """For each attachment the switches that its NICs reach directly."""
    position = {switch.name: place for place, switch in enumerate(fabric.switches)}
    return [sum(1 << position[name] for name in attachment.live) for attachment in fabric.attachments]


def _realms(fabric: Fabric, neighbours: list[int]) -> list[int]:
    """For each attachment all switches that it reaches over any number of links."""
    realm_of: dict[int, int] = {}
    for start in range(len(neighbours)):
        if start in realm_of:
            continue
        realm, fresh = 1 << start, 1 << start
        while fresh:
            grown = _union(fresh, neighbours)
            fresh = grown & ~realm
            realm |= fresh
        realm_of.update(dict.fromkeys(_bits(realm), realm))
    return [_union(door, realm_of) for door in _doors(fabric)]


def _union(members: int, sets: list[int] | dict[int, int]) -> int:
    found = 0
    for member in _bits(members):
        found |= sets[member]
    return found


def _bits(members: int) -> list[int]:
    """The places of the set bits, lowest first."""
    found = []
    while members:
        lowest = members & -members
        found.append(lowest.bit_length() - 1)
        members ^= lowest
    return found
