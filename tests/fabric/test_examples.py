"""The fabric files in examples/ say what their comments say."""

from pathlib import Path

import pytest

from ark.fabric import Fabric, load_fabric, paper_fabric
from ark.fabric.summary import summarise

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Fabric:
    return load_fabric((EXAMPLES / name).read_text(encoding="utf-8"), name)


@pytest.mark.parametrize(
    "name", ["paper.toml", "ns3-reference.toml", "three-tier.toml", "dual-plane.toml", "links.toml"]
)
def test_an_example_is_a_fabric_without_warnings(name: str) -> None:
    assert summarise(example(name)).warnings == ()


def test_the_papers_fabric_is_the_one_of_the_file() -> None:
    assert example("paper.toml").digest() == paper_fabric().digest()


def test_the_ns3_reference_has_its_addresses_seeds_and_next_hops() -> None:
    fabric = example("ns3-reference.toml")
    assert [nic.address for nic in fabric.nics] == [f"11.0.{node}.1" for node in range(16)]
    assert {switch.name: switch.node_id for switch in fabric.switches} == {
        "leaf0": 16,
        "leaf1": 17,
        "spine0": 18,
        "spine1": 19,
        "spine2": 20,
        "spine3": 21,
    }
    for leaf, target in (("leaf0", "h8"), ("leaf1", "h0")):
        hops = fabric.next_hops(leaf, fabric.nic(target))
        assert [fabric.node_id(fabric.links[hop].target) for hop in hops] == [21, 20, 19, 18]
    assert [path.spine for path in fabric.paths(fabric.nic("h0"), fabric.nic("h8"))] == list(fabric.spines)


def test_the_link_list_has_a_lag_a_slow_spine_and_a_dead_link() -> None:
    fabric = example("links.toml")
    source, target = fabric.nic("gpu-a1"), fabric.nic("gpu-b2.1")
    paths = fabric.paths(source, target)
    assert [(path.index, path.spine) for path in paths] == [
        (0, "spine0"),
        (1, "spine0"),
        (2, "spine1"),
        (3, "spine2"),
    ]
    hops = fabric.next_hops("leaf0", target)
    assert [fabric.links[hop].target for hop in hops] == ["spine2", "spine0", "spine1"]
    assert [len(fabric.lag_members(hop)) for hop in hops] == [1, 2, 1]


def test_the_dual_plane_keeps_the_nic_with_a_dead_port_in_plane_0() -> None:
    fabric = example("dual-plane.toml")
    paths = fabric.paths(fabric.nic("h0.1"), fabric.nic("h5.1"))
    assert [path.spine for path in paths] == ["spine0", "spine1", "spine2", "spine3"]
