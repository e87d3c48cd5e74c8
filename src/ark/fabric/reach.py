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


def farthest(fabric: Fabric) -> Reach | None:
    """Two attachments that reach each other and are as far apart as any; nothing where no two NICs do."""
    neighbours, doors = _neighbours(fabric), _doors(fabric)
    realms = _realms(doors, neighbours)
    all_doors = _union((1 << len(doors)) - 1, doors)
    waiting = dict.fromkeys(range(len(doors)), 0)  # sources with a target that they have not reached yet
    balls = [1 << place for place in range(len(fabric.switches))]
    far, radius = _on_one_switch(fabric, doors), 0
    while waiting:
        for source in list(waiting):
            target = _next_target(doors, all_doors & realms[source], _union(doors[source], balls))
            if target is not None:
                waiting[source] = target
                continue
            last = waiting.pop(source)
            if radius > (0 if far is None else far.links):
                far = Reach(source, last, radius)
        balls = [_union(around, balls) | balls[place] for place, around in enumerate(neighbours)]
        radius += 1
    return far


def _next_target(doors: list[int], inside: int, ball: int) -> int | None:
    """The first attachment with a door ``inside`` reach, but none in the ball yet."""
    if ball & inside == inside:
        return None
    return next((n for n, door in enumerate(doors) if door & inside and not door & ball), None)


def _on_one_switch(fabric: Fabric, doors: list[int]) -> Reach | None:
    """Two attachments, or twice one, whose NICs hang on one switch."""
    holder: dict[int, int] = {}
    for nic in fabric.nics:
        for place in _bits(doors[nic.attachment]):
            if place in holder:
                return Reach(holder[place], nic.attachment, 0)
            holder[place] = nic.attachment
    return None


def unreachable(fabric: Fabric) -> Unreachable | None:
    """How many pairs of attachments have no way between them; nothing where all reach each other."""
    members: dict[int, list[int]] = defaultdict(list)
    for number, realm in enumerate(_realms(_doors(fabric), _neighbours(fabric))):
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


def _realms(doors: list[int], neighbours: list[int]) -> list[int]:
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
    return [_union(door, realm_of) for door in doors]


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
