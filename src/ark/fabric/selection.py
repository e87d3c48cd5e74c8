"""From a hash to one of several next hops: modulo, thresholds or a resilient table, with weights."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ark.fabric.hash_spec import HashSpec
from ark.fabric.hashing.header import Lanes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Selector:
    """The choice among the next hops of one group.

    A hash, modulo ``modulus`` where there is one, belongs to the first interval whose upper bound is not
    less; interval i leads to ``members[i]``. All three selections are such intervals: ``modulo`` has one of
    ``weight`` numbers a next hop, ``thresholds`` cuts the range of the hash, ``resilient`` has one number a
    bucket.
    """

    __slots__ = ("_bounds", "_bounds_array", "_members", "_members_array", "_modulus")

    def __init__(self, bounds: Sequence[int], members: Sequence[int], *, modulus: int | None) -> None:
        self._bounds = tuple(bounds)
        self._members = tuple(members)
        self._modulus = modulus
        self._bounds_array: npt.NDArray[np.int64] | None = None
        self._members_array: npt.NDArray[np.int64] | None = None

    def select(self, hashed: Lanes) -> Lanes:
        """The member for one hash, or for each of many."""
        value = hashed if self._modulus is None else hashed % self._modulus
        if isinstance(value, int):
            return self._members[bisect_left(self._bounds, value)]
        import numpy as np  # noqa: PLC0415 - only arrays need NumPy

        if self._bounds_array is None or self._members_array is None:
            self._bounds_array = np.array(self._bounds)
            self._members_array = np.array(self._members)
        return self._members_array[np.searchsorted(self._bounds_array, value.astype(np.int64))]


def selector(spec: HashSpec, *, bits: int, weights: Sequence[int], alive: Sequence[bool]) -> Selector:
    """The selector of a group, for hashes of ``bits`` bits.

    Parameters
    ----------
    spec
        Names the kind of selection, and how many buckets a resilient table has.
    bits
        Width of the hashes.
    weights
        Weight of each next hop of the group, those that were lost included.
    alive
        Whether each next hop is still there. Members are positions among those that are.
    """
    left = [weight for weight, is_alive in zip(weights, alive, strict=True) if is_alive]
    members = range(len(left))
    if spec.selection == "modulo":
        ends = list(accumulate(left))
        return Selector([end - 1 for end in ends], members, modulus=ends[-1])
    if spec.selection == "thresholds":
        return Selector(upper_bounds(left, 1 << bits), members, modulus=None)
    table = without_lost(resilient_table(weights, spec.buckets), weights, alive)
    places = list(accumulate(alive, initial=0))
    return Selector(range(spec.buckets), [places[member] for member in table], modulus=spec.buckets)


def upper_bounds(weights: Sequence[int], size: int) -> list[int]:
    """The greatest number of each of the consecutive intervals that share 0 to ``size`` - 1 by weight.

    Ends are rounded to the nearest as in Linux (``fib_rebalance``, ``nh_hthr_group_rebalance``).
    """
    total = sum(weights)
    return [(end * size + total // 2) // total - 1 for end in accumulate(weights)]


def resilient_table(weights: Sequence[int], buckets: int) -> list[int]:
    """The member in each bucket of a new group, as Linux fills it: by weight, the last member first."""
    return _filled([None] * buckets, weights, [True] * len(weights))


def without_lost(table: Sequence[int], weights: Sequence[int], alive: Sequence[bool]) -> list[int]:
    """The table after members are lost one after the other: only their own buckets move.

    Source: Linux, net/ipv4/nexthop.c (``nh_res_group_rebalance``, ``nh_res_table_upkeep``).
    """
    left = [True] * len(weights)
    current = list(table)
    for lost in (member for member, is_alive in enumerate(alive) if not is_alive):
        left[lost] = False
        current = _filled([None if member == lost else member for member in current], weights, left)
    return current


def _filled(table: Sequence[int | None], weights: Sequence[int], left: Sequence[bool]) -> list[int]:
    """Free buckets given to the members that hold less than their share, the last such member first."""
    shares = upper_bounds(
        [weight * is_left for weight, is_left in zip(weights, left, strict=True)], len(table)
    )
    missing = [end - begin for begin, end in zip([-1, *shares], shares, strict=False)]
    for member in table:
        if member is not None:
            missing[member] -= 1
    takers = [member for member, count in enumerate(missing) for _ in range(count)]
    return [takers.pop() if member is None else member for member in table]
