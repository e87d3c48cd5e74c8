"""Path maps against the route of each port, and what they say where ports do not matter."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.fabric import (
    ALL_PORTS,
    Fabric,
    FiveTuple,
    HashSpec,
    Influence,
    PathMap,
    dual_plane,
    fat_tree,
    leaf_spine,
    paper_fabric,
    path_map,
    route,
)
from ark.fabric.five_tuple import header_of
from ark.fabric.hash_spec import HashFunction
from ark.fabric.pathmap import PORTS_KEPT
from ark.fabric.roce import SPORTS, flow_label_of_sport

FUNCTIONS = [name for name in get_args(HashFunction) if name not in ("crc", "spray")]


def ends_map(fabric: Fabric, target: str | None = None, **options: Any) -> PathMap:
    end = fabric.nics[-1] if target is None else fabric.nic(target)
    return path_map(fabric, fabric.nic("h0"), end, **options)


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=10)
@given(
    ports=st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=60),
    dport=st.integers(0, 0xFFFF),
    proto=st.sampled_from([6, 17]),
)
def test_a_map_is_the_inverse_of_the_routes(
    function: HashFunction, ports: list[int], dport: int, proto: int
) -> None:
    fabric = leaf_spine(2, 5, 2, hash=HashSpec(function=function))
    source, target = fabric.nic("h0"), fabric.nic("h3")
    found = path_map(fabric, source, target, dport=dport, proto=proto, ports=ports)
    taken: dict[int, set[int]] = {path: set() for path in range(5)}
    for port in ports:
        flow = FiveTuple(source.address, target.address, port, dport, proto)
        taken[route(fabric, flow, source, target).index].add(port)
    assert found.paths == tuple(range(5))
    for path, of_path in taken.items():
        assert found.count(path) == len(of_path)
        assert found.ports(path) == tuple(sorted(of_path)[:PORTS_KEPT])
    assert found.missing == tuple(path for path, of_path in taken.items() if not of_path)
    assert found.coverage == pytest.approx(sum(map(bool, taken.values())) / 5)
    assert found.influence is Influence.PORT


def test_all_roce_ports_are_counted_and_sixteen_kept() -> None:
    found = ends_map(paper_fabric())
    assert sum(found.counts) == len(SPORTS) == 16_384
    assert all(4096 * 0.9 < count < 4096 * 1.1 for count in found.counts)
    assert all(len(kept) == PORTS_KEPT for kept in found.kept)
    assert found.coverage == 1
    assert (found.source, found.target, found.dport, found.proto) == ("h0", "h15", 4791, 17)
    assert sum(ends_map(paper_fabric(), ports=ALL_PORTS).counts) == 65_536


def test_the_smallest_set_has_one_port_for_each_path() -> None:
    fabric = fat_tree(4)
    source, target = fabric.nics[0], fabric.nics[-1]
    ports = ends_map(fabric).smallest_set()
    flows = [FiveTuple(source.address, target.address, port, 4791) for port in ports]
    assert [route(fabric, flow, source, target).index for flow in flows] == [0, 1, 2, 3]


def test_a_path_that_is_down_has_no_ports() -> None:
    found = ends_map(leaf_spine(2, 3, 1, down=("spine1",)))
    assert found.paths == (0, 2)
    assert found.ports(1) == ()
    assert found.count(1) == 0
    assert found.coverage == 1


@pytest.mark.parametrize(("step", "other"), [(range(0xC000, 0xD000, 2), 1), (range(0xCFFF, 0xBFFF, -1), 0)])
def test_ranges_with_steps_are_ports_like_others(step: range, other: int) -> None:
    assert ends_map(paper_fabric(), ports=step) == ends_map(paper_fabric(), ports=list(step))


# Where the port does not matter


def test_one_path_takes_all_ports() -> None:
    found = ends_map(paper_fabric(), target="h1")
    assert found.influence is Influence.ONE_PATH
    assert found.reason == "there is only one path, so the source port does not matter"
    assert (found.counts, found.kept) == ((16_384,), (tuple(SPORTS[:16]),))


def test_a_fabric_that_does_not_hash_the_port_says_so() -> None:
    found = ends_map(leaf_spine(2, 4, 2, hash=HashSpec(fields=("src", "dst", "proto"))))
    assert found.influence is Influence.NOT_HASHED
    assert found.reason == "no switch on the way hashes the source port, only dst, proto, src"
    assert sorted(found.counts) == [0, 0, 0, 16_384]
    assert len(found.missing) == 3


def test_with_the_queue_pair_alone_the_path_is_known_only_with_it() -> None:
    fabric = leaf_spine(2, 4, 2, hash=HashSpec(fields=("src", "dst", "dest-qp")))
    unknown = ends_map(fabric)
    assert unknown.influence is Influence.NOT_HASHED
    assert (unknown.counts, unknown.coverage, unknown.smallest_set()) == ((0, 0, 0, 0), 0, ())
    assert sorted(ends_map(fabric, dest_qp=17).counts) == [0, 0, 0, 16_384]


def test_port_and_queue_pair_together_need_the_queue_pair() -> None:
    fabric = leaf_spine(2, 4, 2, hash=HashSpec(fields=("src", "dst", "sport", "dest-qp")))
    with pytest.raises(ConfigError, match="leaf0: the hash reads the destination queue pair"):
        ends_map(fabric)
    assert ends_map(fabric, dest_qp=17) != ends_map(fabric, dest_qp=18)


def test_a_switch_that_sprays_takes_all_meaning_from_the_port() -> None:
    found = ends_map(leaf_spine(2, 4, 2, hash=HashSpec(function="spray")))
    assert found.influence is Influence.SPRAYED
    assert found.reason == "leaf0 sprays the packets of a flow, so the source port does not matter"
    assert found.counts == (0, 0, 0, 0)


def test_one_decision_that_reads_the_port_is_enough() -> None:
    blind = HashSpec(fields=("src", "dst"))
    by_host = dual_plane(2, 2, 2, hash=blind, host_hash=HashSpec())
    found = path_map(by_host, by_host.nic("h0"), by_host.nic("h2"))
    assert found.influence is Influence.PORT
    assert sum(count > 0 for count in found.counts) == 2
    in_lag = leaf_spine(2, 1, 2, hash=blind, lag_hash=HashSpec(), parallel_links=2, parallel_as="lag")
    assert ends_map(in_lag).influence is Influence.PORT


def test_a_port_that_is_set_by_a_flow_label_takes_the_label_along() -> None:
    fabric = leaf_spine(2, 4, 2, hash=HashSpec(fields=("src", "dst", "flow-label")), addresses="2001:db8::1")
    assert ends_map(fabric).influence is Influence.NOT_HASHED
    found = ends_map(fabric, labelled=True)
    assert found.influence is Influence.PORT
    source, target = fabric.nic("h0"), fabric.nic("h3")
    for path in found.paths:
        for port in found.ports(path):
            label = flow_label_of_sport(port)
            flow = FiveTuple(source.address, target.address, port, 4791, flow_label=label)
            assert route(fabric, flow, source, target).index == path


def test_ipv4_carries_no_flow_label() -> None:
    spec = HashSpec(fields=("src", "dst", "flow-label"))
    assert ends_map(leaf_spine(2, 4, 2, hash=spec), labelled=True).influence is Influence.NOT_HASHED
    flow = FiveTuple("10.0.0.1", "10.0.0.2", 1, 2, flow_label=9)
    assert header_of(flow).flow_label == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ports": []}, "a path map needs at least one source port"),
        ({"ports": range(5, 5)}, "a path map needs at least one source port"),
        ({"ports": [5, 65_536]}, "source ports must be 0 to 65535, not 65536"),
        ({"ports": range(-1, 5)}, "source ports must be 0 to 65535, not -1"),
        ({"ports": ALL_PORTS, "labelled": True}, "source ports must be 49152 to 65535, not 0"),
        ({"dport": 65_536}, "dport must be 0 to 65535"),
    ],
)
def test_ports_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ends_map(paper_fabric(), **options)
