import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fabric.fabrics import generated, meshes, with_losses
from tests.fabric.test_load import same

from ark.fabric import Fabric, leaf_spine, load_fabric, paper_fabric, to_toml
from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan
from ark.fabric.build import build
from ark.fabric.hash_spec import CrcParameters, HashSpec

any_fabric = st.one_of(generated(), with_losses().map(lambda both: both[1]), meshes())


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(any_fabric)
def test_a_fabric_written_out_and_read_back_is_the_same(fabric: Fabric) -> None:
    again = load_fabric(to_toml(fabric), "written.toml")
    assert same(again, fabric)
    assert again.name == fabric.name
    assert to_toml(again) == to_toml(fabric)


def test_hashes_orders_and_odd_quantities_are_kept() -> None:
    crc = HashSpec(
        function="crc",
        seed=9,
        crc=CrcParameters(width=16, polynomial=0x8005, reflect_in=True),
        weights={"t": 3, "u-1": 2},
        selection="resilient",
    )
    plan = Blueprint(
        "odd",
        hosts=[HostPlan("a", 2, ("2001:db8::1", "2001:db8::2")), HostPlan("b", addresses=("2001:db8::3",))],
        switches=[
            SwitchPlan("s", "leaf", 70, crc, HashSpec(function="xor8"), ("u-1", "t")),
            SwitchPlan("t", "spine", next_hop_order="descending"),
            SwitchPlan("u-1", "spine", hash=HashSpec(fields=("dst", "src"))),
            SwitchPlan("v", "leaf", up=False),
        ],
        cables=[
            CablePlan(("a.0", "s"), 1, 0),
            CablePlan(("a.1", "s"), 1500, 1),
            CablePlan(("s", "t"), 2_500_000_000, 1500, lag="one"),
            CablePlan(("u-1", "s"), 10**12, 2 * 10**9),
            CablePlan(("t", "v"), 10**6, 10**6, up=False),
            CablePlan(("b", "v"), 10**3, 1),
        ],
    )
    fabric = build(plan)
    text = to_toml(fabric)
    assert same(load_fabric(text, "odd.toml"), fabric)
    for line in (
        'rate = "2500 Mbit/s"',
        'delay = "1500 ns"',
        'delay = "0 ns"',
        'rate = "1 Tbit/s"',
        'delay = "2 s"',
    ):
        assert line in text.splitlines()


def test_the_digest_is_of_the_network_not_of_its_text() -> None:
    one = load_fabric('kind="leaf-spine"\nleaves=2\nspines=4\nhosts_per_leaf=8', "a.toml")
    other = load_fabric(
        '# the same\nhosts_per_leaf = 8\nname = "mine"\nspines = 4\nprefill = ["h0"]\n'
        'kind = "leaf-spine"\nrate = "0.1 Tbit/s"\nleaves = 2\n'
        'hash = {selection = "modulo", function = "murmur3"}\n',
        "b.toml",
    )
    assert one.digest() == other.digest() == paper_fabric().digest()
    assert len(one.digest()) == 16


@pytest.mark.parametrize(
    "different",
    [
        leaf_spine(2, 4, 7),
        leaf_spine(2, 4, 8, rate_bps=1),
        leaf_spine(2, 4, 8, fabric_rate_bps=1),
        leaf_spine(2, 4, 8, delay_ns=501),
        leaf_spine(2, 4, 8, down=("spine0",)),
        leaf_spine(2, 4, 8, down=(("spine0", "leaf0"),)),
        leaf_spine(2, 4, 8, addresses="ns3"),
        leaf_spine(2, 4, 8, next_hop_order="descending"),
        leaf_spine(2, 4, 8, hash=HashSpec(seed=1)),
        leaf_spine(2, 4, 8, lag_hash=HashSpec(seed=1)),
        leaf_spine(2, 4, 8, host_hash=HashSpec(seed=1)),
        leaf_spine(2, 2, 8, parallel_links=2),
        leaf_spine(2, 2, 8, parallel_links=2, parallel_as="lag"),
    ],
)
def test_any_difference_in_the_network_changes_the_digest(different: Fabric) -> None:
    others = [paper_fabric(), leaf_spine(2, 2, 8), leaf_spine(2, 2, 8, parallel_links=2, rate_bps=10**9)]
    assert different.digest() not in {other.digest() for other in others}


def test_the_digest_of_the_papers_fabric_stays_over_releases() -> None:
    """Hosts of different releases meet on one network: change this only on purpose, and say so."""
    assert paper_fabric().digest().hex() == "beb323587da29832fb6e007cd7708ce0"
