from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.fabrics import all_shortest, generated, meshes, with_losses

from ark.fabric import Fabric, dual_plane, fat_tree, leaf_spine, paper_fabric
from ark.fabric.summary import lines, summarise


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.one_of(generated(), with_losses().map(lambda both: both[1]), meshes()))
def test_the_farthest_pair_is_as_far_as_a_search_finds(fabric: Fabric) -> None:
    first_of = {nic.attachment: nic for nic in reversed(fabric.nics)}
    last_of = {nic.attachment: nic for nic in fabric.nics}
    lengths, apart = {}, 0
    for a, b in [*combinations(sorted(first_of), 2), *((n, n) for n in first_of)]:
        if first_of[a] != last_of[b]:
            found = all_shortest(fabric, first_of[a], last_of[b])
            apart += not found and a != b
            if found:
                lengths[a, b] = len(min(found))
    summary = summarise(fabric)
    assert summary.diameter_links == max(lengths.values(), default=0)
    if summary.far_pair is None:
        assert not lengths
    else:
        paths = fabric.paths(*(fabric.nic(name) for name in summary.far_pair))
        assert len(paths) == summary.far_paths
        assert {len(path.links) for path in paths} == {summary.diameter_links}
    told = [warning for warning in summary.warnings if warning.startswith("no path is up")]
    assert [warning.split()[5] for warning in told] == ([str(apart)] if apart else [])


def test_the_papers_fabric() -> None:
    summary = summarise(paper_fabric())
    assert dict(lines(summary)) == {
        "hosts": "16 (8 prefill, 8 decode)",
        "NICs": "16",
        "switches": "2 leaf, 4 spine",
        "links": "24",
        "paths between far hosts": "4 (from h0 to h15)",
        "diameter": "4 links",
        "oversubscription": "2 to 1",
        "prefill capacity upwards": "400 Gbit/s",
        "digest": summary.digest,
    }
    assert summary.warnings == ()


def test_what_is_down_is_listed_and_does_not_count() -> None:
    fabric = leaf_spine(
        2, 8, 8, down=("spine0", "spine1", *((f"leaf{n}", f"spine{k}") for n in (0, 1) for k in (2, 3)))
    )
    summary = summarise(fabric)
    assert dict(lines(summary))["down"] == (
        "spine0, spine1, leaf0 - spine2, leaf0 - spine3, leaf1 - spine2, leaf1 - spine3"
    )
    assert summary.far_paths == 4
    assert summary.oversubscription == 2
    assert summary.prefill_capacity_bps == 4 * 10**11
    more = summarise(leaf_spine(2, 8, 1, down=tuple(f"spine{k}" for k in range(8))))
    assert dict(lines(more))["down"].endswith("spine5 and 2 more")


@pytest.mark.parametrize(
    ("fabric", "warnings"),
    [
        (
            leaf_spine(1, 0, 1),
            [
                "no host is prefill, so there are no transfers to simulate",
            ],
        ),
        (
            leaf_spine(1, 0, 2),
            ["the leaves of the prefill hosts have no links upwards, so a load cannot be given"],
        ),
        (
            leaf_spine(3, 1, 1, down=("leaf1", "leaf2")),
            ["no path is up between 3 pairs of leaves, for example from h0 to h1"],
        ),
        (
            leaf_spine(3, 1, 1, down=("leaf0", "leaf1", "leaf2")),
            [
                "no path is up between 3 pairs of leaves, for example from h0 to h1",
                "the leaves of the prefill hosts have no links upwards, so a load cannot be given",
            ],
        ),
        (
            leaf_spine(2, 1, 1, parallel_links=2, parallel_as="lag"),
            [
                (
                    "3 switches (first leaf0) use one hash for next hops and LAG members, "
                    "so some members may never be used; set lag_hash"
                )
            ],
        ),
    ],
)
def test_warnings(fabric: Fabric, warnings: list[str]) -> None:
    assert list(summarise(fabric).warnings) == warnings


@pytest.mark.parametrize(
    ("fabric", "prefill"),
    [
        (leaf_spine(4, 1, 2), "h0 h1 h2 h3"),
        (leaf_spine(1, 0, 5), "h0 h1"),
        (leaf_spine(3, 1, 2), "h0 h1 h2"),
        (fat_tree(4), "h0 h1 h2 h3 h4 h5 h6 h7"),
        (dual_plane(2, 1, 2, nics_per_host=2, rail_optimised=True), "h0 h1"),
        (leaf_spine(4, 1, 2, nics_per_host=2, rail_optimised=True), "h0 h1"),
        (leaf_spine(2, 1, 2, decode=("h0", "h3")), "h1 h2"),
        (leaf_spine(2, 1, 2, prefill=("h3",)), "h3"),
    ],
)
def test_half_of_the_leaves_or_else_of_the_hosts_is_prefill(fabric: Fabric, prefill: str) -> None:
    assert list(fabric.prefill) == prefill.split()
    assert {*fabric.prefill, *fabric.decode} == {host.name for host in fabric.hosts}
    assert not {*fabric.prefill} & {*fabric.decode}


def test_roles_given_both_may_leave_hosts_out() -> None:
    fabric = leaf_spine(2, 1, 2, prefill=("h0",), decode=("h3",))
    assert (fabric.prefill, fabric.decode) == (("h0",), ("h3",))
