from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.fabrics import all_shortest, generated, meshes, paths_or_none, walked, with_losses

from ark.errors import ConfigError
from ark.fabric import Fabric, dual_plane, fat_tree, leaf_spine, routing, switch_graph, topology
from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan
from ark.fabric.build import build
from ark.fabric.hash_spec import HashSpec

any_fabric = st.one_of(generated(), with_losses().map(lambda both: both[1]), meshes())


def sampled_pairs(data: st.DataObject, fabric: Fabric) -> list[tuple[int, int]]:
    pairs = list(permutations(range(len(fabric.nics)), 2))
    return data.draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True)) if pairs else []


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(any_fabric, st.data())
def test_paths_are_all_shortest_ways_over_what_is_up(fabric: Fabric, data: st.DataObject) -> None:
    for a, b in sampled_pairs(data, fabric):
        source, target = fabric.nics[a], fabric.nics[b]
        assert paths_or_none(fabric, source, target) == all_shortest(fabric, source, target)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(any_fabric, st.data())
def test_next_hops_lead_over_exactly_the_paths(fabric: Fabric, data: st.DataObject) -> None:
    for a, b in sampled_pairs(data, fabric):
        source, target = fabric.nics[a], fabric.nics[b]
        assert walked(fabric, source, target) == paths_or_none(fabric, source, target)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(any_fabric, st.data())
def test_a_path_is_its_attachments_path_between_two_ports(fabric: Fabric, data: st.DataObject) -> None:
    for a, b in sampled_pairs(data, fabric):
        source, target = fabric.nics[a], fabric.nics[b]
        inner = fabric.attachment_paths(source.attachment, target.attachment)
        usable = fabric.up_paths(source.attachment, target.attachment)
        if not usable:
            assert paths_or_none(fabric, source, target) == set()
            continue
        paths = fabric.paths(source, target)
        assert [path.index for path in paths] == list(usable)
        assert fabric.paths(source, target) is paths
        for path in paths:
            assert path.links[1:-1] == inner[path.index]
            assert path.links[0] in {out for out, _ in fabric.ports(source)}
            assert path.links[-1] in {into for _, into in fabric.ports(target)}
            nodes = [source.name, *(fabric.links[k].target for k in path.links)]
            assert [fabric.links[k].source for k in path.links] == nodes[:-1]
            assert len(set(nodes)) == len(nodes)
            assert all(fabric.is_fabric_link(k) for k in inner[path.index])
            assert not fabric.is_fabric_link(path.links[0])
            assert all(fabric.link_rates_bps[k] for k in path.links)
            spines = set(nodes) & set(fabric.spines)
            assert path.spine == (next(iter(spines)) if len(spines) == 1 else None)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(with_losses(), st.data())
def test_what_is_down_takes_no_number_from_the_rest(both: tuple[Fabric, Fabric], data: st.DataObject) -> None:
    whole, fabric = both
    for a, b in sampled_pairs(data, whole):
        numbers = {p.index: p for p in whole.paths(whole.nics[a], whole.nics[b])}
        assert sorted(numbers) == list(range(len(numbers)))
        for links in paths_or_none(fabric, fabric.nics[a], fabric.nics[b]):
            (path,) = [p for p in fabric.paths(fabric.nics[a], fabric.nics[b]) if p.links == links]
            if path.index < len(numbers):
                assert path == numbers[path.index]
            else:  # a detour: longer than any of the usual paths, none of which is up
                assert len(path.links) > len(numbers[0].links)


@pytest.mark.parametrize(
    ("fabric", "count"),
    [
        (leaf_spine(3, 5, 2), 5),
        (leaf_spine(2, 3, 2, parallel_links=2), 12),
        (leaf_spine(4, 3, 2, nics_per_host=2, rail_optimised=True), 3),
        (fat_tree(4), 4),
        (fat_tree(7), 9),
        (fat_tree(3, leaves_per_pod=2, aggs_per_pod=3, cores_per_agg=2, hosts_per_leaf=1), 6),
        (dual_plane(2, 4, 3), 8),
    ],
    ids=lambda value: value.name if isinstance(value, Fabric) else str(value),
)
def test_far_hosts_have_a_path_over_every_top_switch_in_order(fabric: Fabric, count: int) -> None:
    paths = fabric.paths(fabric.nics[0], fabric.nics[-1])
    assert len(paths) == count
    each = count // len(fabric.spines)
    assert [path.spine for path in paths] == [name for name in fabric.spines for _ in range(each)]


def test_inside_a_pod_path_k_runs_over_the_kth_agg_and_no_core() -> None:
    fabric = fat_tree(4)
    paths = fabric.paths(fabric.nic("h0"), fabric.nic("h2"))
    assert [fabric.links[path.links[1]].target for path in paths] == ["agg0", "agg1"]
    assert [path.spine for path in paths] == [None, None]


def test_inside_a_segment_there_is_a_path_in_each_plane() -> None:
    fabric = dual_plane(2, 4, 3)
    paths = fabric.paths(fabric.nic("h0"), fabric.nic("h1"))
    assert [fabric.links[path.links[0]].target for path in paths] == ["tor0", "tor1"]
    assert fabric.attachment_paths(0, 0) == ((), ())


def test_a_nic_with_a_dead_port_keeps_to_the_other_plane() -> None:
    fabric = dual_plane(2, 2, 2, down=(("h3", "tor2"),))
    source, target = fabric.nic("h0"), fabric.nic("h3")
    assert [path.index for path in fabric.paths(source, target)] == [2, 3]
    assert [path.index for path in fabric.paths(target, source)] == [2, 3]
    assert [path.index for path in fabric.paths(source, fabric.nic("h2"))] == [0, 1, 2, 3]
    assert target.attachment != fabric.nic("h2").attachment
    (port,) = fabric.next_hops("h0", target)
    assert fabric.links[port].target == "tor1"


def test_a_longer_way_round_is_numbered_after_the_usual_paths() -> None:
    fabric = leaf_spine(3, 2, 1, down=(("leaf0", "spine1"), ("leaf1", "spine0")))
    (path,) = fabric.paths(fabric.nic("h0"), fabric.nic("h1"))
    assert [fabric.links[k].target for k in path.links] == [
        "leaf0",
        "spine0",
        "leaf2",
        "spine1",
        "leaf1",
        "h1",
    ]
    assert (path.index, path.spine) == (2, None)


def test_lag_members_share_one_next_hop_and_a_dead_one_is_left_out() -> None:
    fabric = leaf_spine(2, 2, 1, parallel_links=3, parallel_as="lag")
    first, second = fabric.next_hops("leaf0", fabric.nic("h1"))
    assert len(fabric.lag_members(first)) == len(fabric.lag_members(second)) == 3
    assert fabric.lag_members(0) == (0,)
    plan = Blueprint(
        "lag",
        hosts=[HostPlan("a"), HostPlan("b")],
        switches=[SwitchPlan("s"), SwitchPlan("t")],
        cables=[CablePlan(("a", "s"), 1, 0), CablePlan(("b", "t"), 1, 0)]
        + [CablePlan(("s", "t"), 1, 0, up=up, lag="x") for up in (False, True, True)],
    )
    fabric = build(plan)
    (hop,) = fabric.next_hops("s", fabric.nic("b"))
    assert fabric.lag_members(hop) == (6, 8)
    assert [path.index for path in fabric.paths(fabric.nic("a"), fabric.nic("b"))] == [1, 2]


def test_next_hops_come_in_the_order_that_was_asked_for() -> None:
    def neighbours(**options: object) -> list[str]:
        fabric = leaf_spine(2, 4, 1, **options)  # type: ignore[arg-type]
        return [fabric.links[k].target for k in fabric.next_hops("leaf0", fabric.nic("h1"))]

    assert neighbours() == ["spine0", "spine1", "spine2", "spine3"]
    assert neighbours(next_hop_order="descending") == ["spine3", "spine2", "spine1", "spine0"]
    plan = Blueprint(
        "listed",
        hosts=[HostPlan("a"), HostPlan("b")],
        switches=[SwitchPlan("s", next_hop_order=("z", "x")), SwitchPlan("t"), *map(SwitchPlan, "xyz")],
        cables=[CablePlan(("a", "s"), 1, 0), CablePlan(("b", "t"), 1, 0)]
        + [CablePlan((end, middle), 1, 0) for end in "st" for middle in "xyz"],
    )
    fabric = build(plan)
    assert [fabric.links[k].target for k in fabric.next_hops("s", fabric.nic("b"))] == ["z", "x", "y"]


def test_next_hops_of_the_last_switch_and_of_one_that_is_cut_off() -> None:
    fabric = leaf_spine(2, 1, 1, down=("spine0",))
    (hop,) = fabric.next_hops("leaf1", fabric.nic("h1"))
    assert fabric.links[hop].target == "h1"
    assert fabric.next_hops("leaf0", fabric.nic("h1")) == ()
    cut = dual_plane(2, 1, 1, down=("spine0", "spine1"))
    assert cut.next_hops("h0", cut.nic("h1")) == ()
    with pytest.raises(ConfigError, match=r'unknown switch "leaf9"; did you mean "leaf1"\?'):
        fabric.next_hops("leaf9", fabric.nic("h1"))


def test_full_caches_are_emptied_and_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[object]:
        fabric = fat_tree(4)
        pairs = list(permutations(fabric.nics[::3], 2))
        return [
            (
                fabric.paths(a, b),
                fabric.next_hops("leaf0", b),
                fabric.attachment_paths(a.attachment, b.attachment),
            )
            for a, b in pairs * 2
        ]

    before = answers()
    monkeypatch.setattr(topology, "_PATHS_KEPT", 6)
    monkeypatch.setattr(routing, "_WALKS_KEPT", 6)
    monkeypatch.setattr(routing, "_NEXT_HOPS_KEPT", 2)
    monkeypatch.setattr(switch_graph, "_DISTANCES_KEPT", 50)
    assert answers() == before


def test_more_paths_than_ports_are_refused() -> None:
    hosts = [HostPlan("a"), HostPlan("b")]
    switches = [SwitchPlan(f"s{n}") for n in range(5)]
    cables = [CablePlan(("a", "s0"), 1, 0), CablePlan(("b", "s4"), 1, 0)]
    cables += [CablePlan((f"s{n}", f"s{n + 1}"), 1, 0) for n in range(4) for _ in range(12)]
    fabric = build(Blueprint("knot", hosts, switches, cables))
    with pytest.raises(ConfigError, match="more than 16,384 equal-cost paths"):
        fabric.paths(fabric.nic("a"), fabric.nic("b"))


def test_node_ids_count_nics_first_and_then_switches() -> None:
    fabric = leaf_spine(2, 4, 8, hash=HashSpec(seed=5))
    assert fabric.node_id("h3") == 3
    assert fabric.node_id("leaf0") == 16
    assert fabric.node_id("spine3") == 21
    assert fabric.switch("leaf1").hash.seed == 5
