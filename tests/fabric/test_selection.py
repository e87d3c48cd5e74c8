"""The three selections against plain restatements of their rules."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.fabric.hash_spec import HashSpec, Selection
from ark.fabric.selection import resilient_table, selector, upper_bounds, without_lost

pytestmark = pytest.mark.slow

weights_lists = st.lists(st.integers(1, 300), min_size=1, max_size=12)


def chosen(spec: HashSpec, bits: int, weights: list[int], hashed: int) -> int:
    found = selector(spec, bits=bits, weights=weights, alive=[True] * len(weights)).select(hashed)
    assert isinstance(found, int)
    return found


@given(weights=weights_lists, hashed=st.integers(0, 2**32 - 1))
def test_modulo_picks_from_a_list_with_each_next_hop_as_often_as_its_weight(
    weights: list[int], hashed: int
) -> None:
    members = [member for member, weight in enumerate(weights) for _ in range(weight)]
    assert chosen(HashSpec(selection="modulo"), 32, weights, hashed) == members[hashed % len(members)]


@given(weights=weights_lists, bits=st.sampled_from([8, 16, 31, 32]), data=st.data())
def test_thresholds_pick_the_first_next_hop_whose_upper_bound_is_not_less(
    weights: list[int], bits: int, data: st.DataObject
) -> None:
    """Bounds are the shares of the hash's range, rounded to the nearest, less one."""
    hashed = data.draw(st.integers(0, 2**bits - 1))
    total = sum(weights)
    shares = [Fraction(done * 2**bits, total) for done in accumulate(weights)]
    bounds = [int(share + Fraction(1, 2)) - 1 for share in shares]
    expected = next(member for member, bound in enumerate(bounds) if hashed <= bound)
    assert chosen(HashSpec(selection="thresholds"), bits, weights, hashed) == expected


def test_the_last_threshold_is_the_greatest_hash() -> None:
    assert upper_bounds([1, 1, 1], 2**31)[-1] == 2**31 - 1
    assert upper_bounds([1, 1, 1, 1], 256) == [63, 127, 191, 255]


@given(weights=weights_lists, buckets=st.integers(1, 300), hashed=st.integers(0, 2**31 - 1))
def test_a_resilient_group_picks_the_member_of_the_bucket(
    weights: list[int], buckets: int, hashed: int
) -> None:
    table = resilient_table(weights, buckets)
    spec = HashSpec(selection="resilient", buckets=buckets)
    assert chosen(spec, 31, weights, hashed) == table[hashed % buckets]


@given(weights=weights_lists, buckets=st.integers(12, 1000))
def test_buckets_are_shared_by_weight(weights: list[int], buckets: int) -> None:
    table = resilient_table(weights, buckets)
    assert len(table) == buckets
    for member, weight in enumerate(weights):
        assert abs(table.count(member) - buckets * weight / sum(weights)) < 1 + 1e-9


@given(weights=st.lists(st.integers(1, 9), min_size=2, max_size=8), data=st.data())
def test_lost_members_move_only_their_own_buckets(weights: list[int], data: st.DataObject) -> None:
    alive = data.draw(
        st.lists(st.booleans(), min_size=len(weights), max_size=len(weights)).filter(any), label="alive"
    )
    before = resilient_table(weights, 128)
    after = without_lost(before, weights, alive)
    assert all(new == old for old, new in zip(before, after, strict=True) if alive[old])
    assert {member for member, is_alive in enumerate(alive) if is_alive} >= set(after)


def test_members_of_a_group_with_losses_are_counted_among_those_that_are_left() -> None:
    alive = [True, False, True]
    spec = HashSpec(selection="resilient", buckets=12)
    group = selector(spec, bits=31, weights=[1, 1, 1], alive=alive)
    table = without_lost(resilient_table([1, 1, 1], 12), [1, 1, 1], alive)
    assert [group.select(bucket) for bucket in range(12)] == [{0: 0, 2: 1}[member] for member in table]


@pytest.mark.parametrize("selection", ["modulo", "thresholds"])
def test_the_other_selections_forget_what_is_lost(selection: Selection) -> None:
    spec = HashSpec(selection=selection)
    rest = selector(spec, bits=8, weights=[3, 9, 2], alive=[True, False, True])
    small = selector(spec, bits=8, weights=[3, 2], alive=[True, True])
    assert [rest.select(h) for h in range(256)] == [small.select(h) for h in range(256)]


@given(
    weights=weights_lists,
    selection=st.sampled_from(["modulo", "thresholds", "resilient"]),
    hashes=st.lists(st.integers(0, 2**32 - 1), max_size=30),
)
def test_many_hashes_at_once_are_selected_as_each(
    weights: list[int], selection: Selection, hashes: list[int]
) -> None:
    group = selector(HashSpec(selection=selection), bits=32, weights=weights, alive=[True] * len(weights))
    lanes = group.select(np.array(hashes, dtype=np.uint32))
    assert not isinstance(lanes, int)
    assert lanes.tolist() == [group.select(hashed) for hashed in hashes]
