"""Several ECMP decisions in a row: what each reads, and how one disturbs another."""

from collections import Counter
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.fabric import (
    ALL_PORTS,
    Fabric,
    FiveTuple,
    HashSpec,
    dual_plane,
    fat_tree,
    leaf_spine,
    paper_fabric,
    route,
    route_flows,
    route_ports,
)
from ark.fabric.hash_spec import HashField, HashFunction, Selection
from ark.fabric.load import load_fabric

FOUR: tuple[HashField, ...] = ("src", "dst", "sport", "dport")
FUNCTIONS = [name for name in get_args(HashFunction) if name not in ("crc", "spray")]
PORTS = np.arange(0xC000, 0x10000)


def paths_of_ports(
    fabric: Fabric, source: str = "h0", target: str | None = None, **others: int
) -> Counter[int]:
    """How many RoCE ports take each path."""
    end = fabric.nics[-1] if target is None else fabric.nic(target)
    return Counter(route_ports(fabric, fabric.nic(source), end, PORTS, **others).tolist())


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    kind = draw(st.sampled_from(["leaf-spine", "lag", "fat-tree", "dual-plane"]))
    function = draw(st.sampled_from(FUNCTIONS))
    fields: list[HashField] = [*FOUR]
    if function != "linux":
        fields += draw(st.sampled_from([[], ["ingress-port"], ["proto", "dest-qp"]]))
    spec = HashSpec(
        function=function,
        fields=tuple(fields),
        seed=draw(st.sampled_from([None, 7])),
        selection=draw(st.sampled_from(list(get_args(Selection)))),
        weights=draw(st.sampled_from([{}, {"agg0" if kind == "fat-tree" else "spine0": 3}])),
        buckets=24,
    )
    other = HashSpec(function="crc32c", seed=3, selection="resilient")
    match kind:
        case "leaf-spine":
            down: tuple[str | tuple[str, str], ...] = draw(
                st.sampled_from([(), ("spine0",), (("leaf1", "spine2"),)])
            )
            return leaf_spine(2, 3, 2, hash=spec, nics_per_host=2, down=down)
        case "lag":
            return leaf_spine(2, 2, 2, hash=spec, lag_hash=other, parallel_links=3, parallel_as="lag")
        case "fat-tree":
            down = draw(st.sampled_from([(), ("core1",), ("agg0",)]))
            return fat_tree(4, hash=spec, down=down)
    return dual_plane(2, 2, 2, hash=spec, host_hash=other)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(fabric=fabrics(), data=st.data())
def test_one_flow_many_ports_and_many_flows_are_routed_alike(fabric: Fabric, data: st.DataObject) -> None:
    indices = st.integers(0, len(fabric.nics) - 1)
    pairs = st.tuples(indices, indices).filter(lambda pair: pair[0] != pair[1])
    flow = st.tuples(pairs, st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFF))
    flows = data.draw(st.lists(flow, min_size=1, max_size=12))
    alone = []
    for (source, target), sport, dport, dest_qp in flows:
        ends = fabric.nics[source], fabric.nics[target]
        five_tuple = FiveTuple(ends[0].address, ends[1].address, sport, dport, 17, dest_qp)
        path = route(fabric, five_tuple, *ends)
        assert path in fabric.paths(*ends)
        alone.append(path.index)
        ports = np.array([sport, sport ^ 1, sport])
        found = route_ports(fabric, *ends, ports, dport=dport, dest_qp=dest_qp)
        assert found[0] == found[2] == path.index
    columns = [np.array(column) for column in zip(*(row[1:] for row in flows), strict=True)]
    sources, targets = np.array([row[0] for row in flows]).T
    together = route_flows(fabric, sources, targets, columns[0], columns[1], dest_qps=columns[2])
    assert together.dtype == np.int32
    assert together.tolist() == alone


# Polarization: the same hash with the same seed in several tiers


def test_one_seed_for_all_switches_polarizes_three_tiers() -> None:
    """With the same hash at leaf and agg, what leads to agg k at the leaf leads to the k-th core there."""
    shared = fat_tree(8, hash=HashSpec(fields=FOUR, seed=1))
    own = fat_tree(8, hash=HashSpec(fields=FOUR))
    assert len(paths_of_ports(own)) == 16
    assert len(paths_of_ports(shared)) == 4


def test_seeds_do_not_help_where_the_hash_is_affine() -> None:
    """The seed of a CRC XORs a constant, so of a group of 2^n every tier keeps the same n bits."""
    assert len(paths_of_ports(fat_tree(8, hash=HashSpec(function="crc16-arc", fields=FOUR)))) == 4


def test_a_lag_needs_another_hash_than_its_switch() -> None:
    spec = HashSpec(fields=FOUR)

    def members(lag_hash: HashSpec) -> int:
        fabric = leaf_spine(2, 4, 2, hash=spec, lag_hash=lag_hash, parallel_links=2, parallel_as="lag")
        source, target = fabric.nic("h0"), fabric.nic("h2")
        ups = set()
        for port in range(0xC000, 0xC200):
            flow = FiveTuple(source.address, target.address, port, 4791)
            ups.add(route(fabric, flow, source, target).links[1])
        return len(ups)

    assert members(HashSpec(function="crc32", fields=FOUR)) == 8
    assert members(spec) == 4


# What a decision reads


def test_a_host_with_two_ports_chooses_its_plane_by_its_own_hash() -> None:
    for mask, host_hash in ((0, HashSpec(function="xor8", fields=("sport",), seed=0)), (1, None)):
        spec = host_hash or HashSpec(function="xor8", fields=("sport",), seed=1)
        fabric = dual_plane(2, 2, 2, host_hash=spec)
        source, target = fabric.nic("h0"), fabric.nic("h2")
        for port in range(0xC000, 0xC010):
            path = route(fabric, FiveTuple(source.address, target.address, port, 4791), source, target)
            plane = ((port & 0xFF) ^ (port >> 8) ^ mask) % 2
            assert path.index // 2 == plane
            assert path.links[0] == fabric.ports(source)[plane][0]


def test_a_host_with_a_dead_port_uses_the_other_one() -> None:
    whole = dual_plane(2, 2, 2)
    dead = whole.links[whole.ports(whole.nic("h0"))[0][0]].target
    assert {path // 2 for path in paths_of_ports(whole, target="h2")} == {0, 1}
    assert {path // 2 for path in paths_of_ports(dual_plane(2, 2, 2, down=(dead,)), target="h2")} == {1}


def test_the_ingress_port_can_be_all_that_counts() -> None:
    spec = HashSpec(function="xor8", fields=("ingress-port",), seed=0)
    fabric = leaf_spine(2, 4, 8, hash=spec)
    seen = [paths_of_ports(fabric, source=f"h{number}") for number in range(8)]
    assert all(len(paths) == 1 for paths in seen)
    assert len({tuple(paths) for paths in seen}) == 4
    nics = np.arange(8), np.full(8, 9)
    found = route_flows(fabric, *nics, np.arange(8))
    assert found.tolist() == [next(iter(paths)) for paths in seen]


def test_the_destination_queue_pair_spreads_what_ports_do_not() -> None:
    fabric = leaf_spine(2, 4, 8, hash=HashSpec(fields=("src", "dst", "dest-qp")))
    assert len(paths_of_ports(fabric, dest_qp=17)) == 1
    assert len({next(iter(paths_of_ports(fabric, dest_qp=number))) for number in range(40)}) == 4


def test_the_flow_label_of_ipv6_can_be_hashed() -> None:
    fabric = load_fabric(
        'kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\naddresses = "2001:db8::1"\n'
        'hash = { fields = ["src", "dst", "flow-label"] }\n',
        "v6.toml",
    )
    assert ":" in fabric.nics[0].address
    assert len(paths_of_ports(fabric, flow_label=5)) == 1
    assert len({next(iter(paths_of_ports(fabric, flow_label=label))) for label in range(40)}) == 4


def test_weights_go_by_neighbour() -> None:
    weights = {"spine1": 2, "spine3": 5}
    for selection in get_args(Selection):
        spec = HashSpec(fields=FOUR, selection=selection, weights=weights, buckets=90)
        shares = paths_of_ports(leaf_spine(2, 4, 2, hash=spec))
        assert [round(9 * shares[k] / len(PORTS), 1) for k in range(4)] == pytest.approx(
            [1, 2, 1, 5], abs=0.2
        )


# What is down


def moved(selection: Selection, lag: int = 1) -> float:
    """Share of the ports not on spine 1 whose path changes when it fails."""
    spec = HashSpec(fields=FOUR, selection=selection)
    before, after = (
        route_ports(fabric, fabric.nic("h0"), fabric.nic("h3"), PORTS)
        for fabric in (
            leaf_spine(2, 4, 2, hash=spec, parallel_links=lag, parallel_as="lag", down=down)
            for down in ((), ("spine1",))
        )
    )
    assert 1 not in after
    return float(np.mean(after[before != 1] != before[before != 1]))


def test_a_resilient_group_moves_only_the_flows_of_the_lost_next_hop() -> None:
    assert moved("resilient") == 0
    assert moved("modulo") > 0.5
    assert 0.1 < moved("thresholds") < 0.5


def test_a_resilient_group_of_lags_knows_them_when_their_first_link_is_down() -> None:
    spec = HashSpec(fields=FOUR, selection="resilient")
    text = (
        'kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\nparallel_links = 2\n'
        'parallel_as = "lag"\nhash = { fields = ["src", "dst", "sport", "dport"], selection = "resilient" }\n'
    )
    whole = load_fabric(text, "lag.toml")
    assert whole.switches[0].hash == spec
    hurt = load_fabric(text + '[[link]]\nbetween = ["leaf0", "spine2"]\nmember = 0\nup = false\n', "lag.toml")

    def spines(fabric: Fabric) -> list[str]:
        ends = fabric.nic("h0"), fabric.nic("h3")
        flows = [FiveTuple(ends[0].address, ends[1].address, port, 4791) for port in range(0xC000, 0xC080)]
        return [fabric.links[route(fabric, flow, *ends).links[1]].target for flow in flows]

    assert spines(hurt) == spines(whole)


def test_a_way_round_has_a_group_of_its_own() -> None:
    """Both direct spines are lost: a longer way over another leaf is all there is."""
    text = 'kind = "links"\nhash = { selection = "resilient" }\n'
    text += "".join(f'[[host]]\nname = "h{number}"\n' for number in range(2))
    text += "".join(f'[[switch]]\nname = "{name}"\n' for name in ("a", "b", "s", "t", "u", "v"))
    cables = [("h0", "a"), ("h1", "b"), ("a", "s"), ("s", "b"), ("a", "t"), ("t", "v"), ("v", "b")]
    cables += [("a", "u"), ("u", "v")]
    for one, other in cables:
        up = "false" if (one, other) == ("s", "b") else "true"
        text += f'[[link]]\nbetween = ["{one}", "{other}"]\nrate = "100 Gbit/s"\ndelay = "1us"\nup = {up}\n'
    fabric = load_fabric(text, "round.toml")
    assert len(paths_of_ports(fabric, target="h1")) == 2


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (leaf_spine(2, 1, 2, down=("spine0",)), 'no path from "h0" to "h3" is up'),
        (
            leaf_spine(2, 2, 2, hash=HashSpec(function="spray")),
            "leaf0: packets are sprayed over all next hops",
        ),
        (
            leaf_spine(2, 2, 2, hash=HashSpec(fields=("dest-qp",))),
            "leaf0: the hash reads the dest",
        ),
    ],
)
def test_what_cannot_be_routed_is_said(fabric: Fabric, message: str) -> None:
    source, target = fabric.nic("h0"), fabric.nic("h3")
    with pytest.raises(ConfigError, match=message):
        route(fabric, FiveTuple(source.address, target.address, 1, 2), source, target)
    with pytest.raises(ConfigError, match=message):
        route_ports(fabric, source, target, PORTS)
    with pytest.raises(ConfigError, match=message.replace('"h0" to "h3"', '"[^"]*" to "h3"')):
        route_flows(fabric, np.array([0]), np.array([3]), np.array([1]))


def test_a_flow_from_a_nic_to_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match='"h1" is source and target at once'):
        route_flows(paper_fabric(), np.array([0, 1]), np.array([3, 1]), np.array([1, 2]))


def test_no_flows_are_no_paths() -> None:
    nothing = np.array([], dtype=np.int64)
    assert route_flows(paper_fabric(), nothing, nothing, nothing).tolist() == []


def test_all_ports_are_ports() -> None:
    assert len(ALL_PORTS) == 65_536
