"""The usual schemes beside ARK: what each decides, at flow level and where packets need no other rule."""

from collections import Counter

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.fabric import Fabric, leaf_spine, paper_fabric, route_flows
from ark.fabric.generate import fat_tree
from ark.sim.flow.engine import FlowEngine
from ark.sim.flow.model import FlowModel
from ark.sim.results import Outcome
from ark.sim.schemes.catalogue import SCHEMES, SchemeOptions, make_scheme
from ark.sim.schemes.scheme import Scheme, Transfer

MODEL = FlowModel(goodput=1.0, base_latency_ns=0)
BYTES_A_MS = 12_500_000
"""At 100 Gbit/s."""


def transfer(fabric: Fabric, index: int, pair: tuple[int, int], sport: int, *, start_ns: int = 0) -> Transfer:
    """10 ms at line rate."""
    source, target = fabric.nics[pair[0]], fabric.nics[pair[1]]
    return Transfer(index, source, target, 10 * BYTES_A_MS, start_ns, sport, 4791)


def collided(fabric: Fabric, count: int, *, path: int = 0) -> list[Transfer]:
    """Transfers from hosts 0, 1, … to 8, 9, … whose own ports all lead to one path."""
    ports = np.arange(0xC000, 0x10000)
    found = []
    for number in range(count):
        ends = np.full(len(ports), number), np.full(len(ports), 8 + number)
        led = route_flows(fabric, *ends, ports)
        found.append(transfer(fabric, number, (number, 8 + number), int(ports[led == path][0])))
    return found


def make(name: str, fabric: Fabric, asked: list[Transfer], queue_pairs: int = 4) -> Scheme:
    options = SchemeOptions(queue_pairs=queue_pairs)
    return make_scheme(name, fabric, options, transfers=asked, seed=0)


def run(name: str, fabric: Fabric, asked: list[Transfer]) -> Outcome:
    return FlowEngine(fabric, asked, make(name, fabric, asked), MODEL).run()


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_runs_on_three_tiers(name: str) -> None:
    fabric = fat_tree(4)
    last = len(fabric.nics) - 1
    asked = [transfer(fabric, n, (n % 8, last - n % 8), 50_000 + n, start_ns=n * 10**6) for n in range(24)]
    outcome = run(name, fabric, asked)
    assert (outcome.fct_ns >= 10 * 10**6).all()


def test_parts_of_a_transfer_go_where_their_ports_lead() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, n, (n % 8, 8 + n % 8), 49_152 + 7 * n) for n in range(50)]
    scheme = make("e-ecmp", fabric, asked, queue_pairs=3)
    for one in asked:
        assignment = scheme.arrived(0, one)
        assert assignment.ports[0] == one.sport
        ends = np.full(3, one.source.index), np.full(3, one.target.index)
        assert tuple(route_flows(fabric, *ends, np.array(assignment.ports))) == assignment.paths
    assert scheme.stripes_max == 3


def test_a_transfer_in_parts_ends_with_its_slowest_part() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, 0, (0, 8), 50_000)]
    scheme = make("e-ecmp", fabric, asked, queue_pairs=4)
    outcome = FlowEngine(fabric, asked, scheme, MODEL).run()
    assert outcome.fct_ns[0] == 10 * 10**6
    assert outcome.path[0].count(";") == 3


def test_static_ports_are_even_for_each_host() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, n, (0, 8 + n), 50_000) for n in range(8)]
    scheme = make("static-sports", fabric, asked)
    paths = [scheme.arrived(0, one).paths for one in asked]
    assert set(Counter(paths).values()) == {2}
    assert [scheme.arrived(0, one).paths for one in asked] == paths


def test_uplinks_are_shared_evenly_and_given_back() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, n, (n % 8, 8 + n % 8), 50_000) for n in range(12)]
    scheme = make("ark-uplinks", fabric, asked)
    taken = [scheme.arrived(0, one).paths[0] for one in asked]
    assert sorted(Counter(taken).values()) == [3, 3, 3, 3]
    for index, path in enumerate(taken):
        if path == 2:
            scheme.completed(1, index)
    assert scheme.arrived(2, asked[0]).paths == (2,)


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_has_no_collisions_where_none_need_be(seed: int) -> None:
    fabric = leaf_spine(8, 8, 8)
    rng = np.random.default_rng(seed)
    pairs = zip(rng.permutation(32).tolist(), (32 + rng.permutation(32)).tolist(), strict=True)
    asked = [transfer(fabric, n, pair, 50_000 + n, start_ns=100 * n) for n, pair in enumerate(pairs)]
    assert run("planned", fabric, asked).fct_ns.max() == pytest.approx(10 * 10**6, rel=1e-6)
    assert run("ark-uplinks", fabric, asked).fct_ns.max() > 15 * 10**6


def test_a_plan_is_even_where_collisions_must_be_and_counts_who_is_there_already() -> None:
    fabric = paper_fabric()
    first = [transfer(fabric, n, (n, 8 + n), 50_000) for n in range(3)]
    later = [transfer(fabric, 3 + n, (3 + n, 11 + n), 50_000, start_ns=10**6) for n in range(5)]
    asked = [*first, *later]
    scheme = make("planned", fabric, asked)
    counts = Counter(scheme.arrived(one.start_ns, one).paths for one in asked)
    assert sorted(counts.values()) == [2, 2, 2, 2]


def test_conga_avoids_uplinks_that_were_used_of_late() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, n, (n, 8 + n), 50_000, start_ns=n * 10**6) for n in range(4)]
    scheme = make("conga", fabric, asked)
    assert {scheme.arrived(one.start_ns, one).paths[0] for one in asked} == {0, 1, 2, 3}


def test_conga_forgets() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, n, (0, 8), 50_000, start_ns=n * 10**6) for n in range(60)]
    scheme = make("conga", fabric, asked)
    taken = []
    for one in asked:
        taken.append(scheme.arrived(one.start_ns, one).paths[0])
        scheme.completed(one.start_ns + 1000, one.index)
    assert set(taken) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["plb", "conweave", "hedera"])
def test_who_meets_congestion_moves_to_a_free_path(name: str) -> None:
    fabric = paper_fabric()
    asked = collided(fabric, 4)
    stuck = run("ecmp", fabric, asked).fct_ns
    assert stuck.min() == pytest.approx(40 * 10**6, rel=1e-3)
    moved = run(name, fabric, asked)
    assert moved.fct_ns.max() < 25 * 10**6
    assert any(">" in path for path in moved.path)


def test_conweave_at_flow_level_is_done_in_a_few_round_trips() -> None:
    fabric = paper_fabric()
    assert run("conweave", fabric, collided(fabric, 4)).fct_ns.max() < 10.3 * 10**6


def test_nobody_moves_away_from_a_busy_nic() -> None:
    fabric = paper_fabric()
    asked = [Transfer(n, fabric.nics[n], fabric.nics[8], BYTES_A_MS, 0, 50_000 + n, 4791) for n in range(2)]
    for name in ("plb", "conweave"):
        outcome = run(name, fabric, asked)
        assert not any(">" in path for path in outcome.path)


def test_fastpass_waits_and_drill_pays() -> None:
    fabric = paper_fabric()
    asked = [transfer(fabric, n, (n, 8 + n), 50_000) for n in range(4)]
    ideal = run("ideal", fabric, asked).fct_ns
    fastpass = run("fastpass", fabric, asked)
    assert (fastpass.fct_ns == ideal + 10_000).all()
    assert (fastpass.reserve_ns == 10_000).all()
    assert run("drill", fabric, asked).fct_ns.tolist() == pytest.approx((ideal / 0.8).tolist(), rel=1e-6)


def test_a_scheme_that_packets_do_not_have_says_so() -> None:
    fabric = paper_fabric()
    with pytest.raises(ConfigError, match='"plb" runs at flow level only'):
        make_scheme("plb", fabric, SchemeOptions(), transfers=[], seed=0, engine="packet")
