"""Leaves that choose paths packet by packet: what each scheme does to a few flows, and the whole table."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sim.packet.networks import LeafSpine, finish, link_total, start, total

from ark.fabric.generate import leaf_spine
from ark.sim.packet.conga import discount
from ark.sim.packet.engine import PacketEngine
from ark.sim.packet.settings import preset
from ark.sim.packet.simulation import Simulation
from ark.sim.schemes.catalogue import LEAVES_CHOOSE, SchemeOptions, make_scheme
from ark.sim.schemes.scheme import Transfer

CONWEAVE = preset("conweave")
SIMAI = preset("simai")
PAIRS = [(nic, 8 + nic, 1_000_000) for nic in range(4)]
CROWD = [(nic, 8 + nic, 1_000_000) for nic in range(8)]
"""Eight flows over four spines."""


def used_spines(simulation: Simulation, place: LeafSpine) -> int:
    """Uplinks of the first leaf that have carried data (an ACK alone is 60 bytes)."""
    first = 2 * place.leaves * place.hosts
    return int((simulation.world.links["sent_bytes"][first : first + place.spines] > 10**5).sum())


@pytest.mark.parametrize("balancer", sorted(LEAVES_CHOOSE))
def test_all_bytes_arrive_and_nothing_stays_behind(balancer: str) -> None:
    place = LeafSpine()
    simulation = finish(start(place, CONWEAVE, CROWD, balancer=balancer))
    flows = simulation.world.flows[: simulation.flows]
    assert (flows["acked"] == flows["length"]).all()
    simulation.run(simulation.now_ns + 10**6)
    assert simulation.world.clock.under_way == 0
    assert not simulation.world.accounts["bytes"].any()
    assert not simulation.world.steerings["holding"].any()
    assert link_total(simulation, "drops") == 0


@pytest.mark.parametrize("balancer", sorted(LEAVES_CHOOSE))
def test_flows_inside_a_leaf_and_pinned_ones_have_no_choice(balancer: str) -> None:
    simulation = finish(start(LeafSpine(), SIMAI, [(0, 1, 100_000)], balancer=balancer))
    plain = finish(start(LeafSpine(), SIMAI, [(0, 1, 100_000)]))
    assert simulation.fct_ns().tolist() == plain.fct_ns().tolist()
    place = LeafSpine()
    pinned = finish(start(place, SIMAI, [(0, 8, 900_000)] * 2, balancer=balancer, choices=False))
    assert used_spines(pinned, place) == 2  # flow n over spine n


def test_letflow_stays_without_a_gap_and_draws_anew_after_one() -> None:
    place = LeafSpine()
    assert used_spines(finish(start(place, SIMAI, [(0, 8, 2_000_000)], balancer="letflow")), place) == 1
    gap = replace(SIMAI.leaves, flowlet_gap_ns=100)  # packets come each 724 ns
    settings = replace(SIMAI, leaves=gap)
    assert used_spines(finish(start(place, settings, [(0, 8, 2_000_000)], balancer="letflow")), place) == 4


def test_drill_takes_short_queues_and_pays_for_the_order() -> None:
    place = LeafSpine()
    spread = finish(start(place, CONWEAVE, CROWD, balancer="drill"))
    assert used_spines(spread, place) == 4
    assert total(spread, "nacks") > 0
    assert total(spread, "retransmits") > 0


def test_drill_with_an_empty_network_stays_where_it_is() -> None:
    place = LeafSpine()
    lone = finish(start(place, CONWEAVE, [(0, 8, 1_000_000)], balancer="drill"))
    assert used_spines(lone, place) == 1
    assert total(lone, "nacks") == 0


def test_sprayed_packets_come_out_of_order_and_nothing_is_sent_twice() -> None:
    place = LeafSpine()
    simulation = finish(start(place, CONWEAVE, CROWD, balancer="spray"))
    assert used_spines(simulation, place) == 4
    assert total(simulation, "retransmits") == 0
    assert not simulation.world.kept.any()
    # Eight NICs share four uplinks evenly: twice the time of a lone flow, and DCQCN's share of idle time.
    hashed = finish(start(place, CONWEAVE, CROWD))
    assert simulation.fct_ns().max() <= 1.1 * hashed.fct_ns().max()


@pytest.mark.slow
def test_sprayed_packets_that_are_lost_come_again() -> None:
    settings = replace(CONWEAVE, loss=0.001, timeout_ns=100_000)
    simulation = finish(start(LeafSpine(), settings, PAIRS, balancer="spray"))
    assert total(simulation, "timeouts") > 0
    flows = simulation.world.flows[: simulation.flows]
    assert (flows["expected"] == flows["length"]).all()


def test_conweave_leaves_a_slow_path_and_the_receiver_does_not_notice() -> None:
    place = LeafSpine()
    stuck = finish(start(place, CONWEAVE, CROWD[:4], all_over=0))
    simulation = start(place, CONWEAVE, CROWD[:4], balancer="conweave")
    simulation.world.steerings["path"][:4] = 0
    simulation.world.steerings["stable"][:4] = 1
    finish(simulation)
    assert used_spines(simulation, place) == 4
    assert simulation.world.steerings["epoch"][:4].min() > 1
    assert total(simulation, "nacks") <= 2
    assert simulation.fct_ns().mean() < 0.8 * stuck.fct_ns().mean()


def test_conweave_holds_back_what_overtakes_its_tail() -> None:
    place = LeafSpine()
    held = 0
    simulation = start(place, CONWEAVE, CROWD, balancer="conweave")
    while simulation.live:
        simulation.run(simulation.now_ns + 1_000)
        held = max(held, int(simulation.world.steerings["holding"][:8].sum()))
    assert held > 0


def test_conga_meters_fade() -> None:
    simulation = finish(start(LeafSpine(), CONWEAVE, PAIRS, balancer="conga"))
    world = simulation.world
    link = int(np.argmax(world.meters["bytes"][: world.clock.links]))
    before = float(world.meters["bytes"][link])
    step = world.rules.conga_interval
    discount(world, link, (int(world.meters["stepped"][link]) + 3) * step)
    assert world.meters["bytes"][link] == pytest.approx(before * 0.8**3)


def test_conga_hears_of_the_far_side_by_traffic_the_other_way() -> None:
    both_ways = [(0, 8, 2_000_000), (8, 0, 2_000_000)]
    told = finish(start(LeafSpine(), CONWEAVE, both_ways, balancer="conga")).world.paths["told_at"]
    one_way = finish(start(LeafSpine(), CONWEAVE, both_ways[:1], balancer="conga")).world.paths["told_at"]
    assert (told > 0).any()
    assert not (one_way > 0).any()


def permutation(seed: int) -> list[Transfer]:
    """8 hosts of each of 4 leaves send 4 MB to as many of 4 others, starts within 10 us."""
    fabric = FABRIC
    rng = np.random.default_rng(seed)
    hosts = [nic for nic in fabric.nics if nic.index % 16 < 8]
    sources, targets = hosts[:32], hosts[32:]
    starts = np.sort(rng.integers(0, 10_000, 32)).tolist()
    ports = rng.integers(0xC000, 0x10000, 32).tolist()
    pairs = zip(rng.permutation(32), rng.permutation(32), strict=True)
    return [
        Transfer(n, sources[a], targets[b], 4_000_000, starts[n], ports[n], 4791)
        for n, (a, b) in enumerate(pairs)
    ]


FABRIC = leaf_spine(8, 8, 16, delay_ns=1000)


@pytest.mark.slow
def test_schemes_come_in_the_order_that_conweaves_ns3_gives_them() -> None:
    # Measured there: 3.4 to 3.6, 2.7 to 2.8, 2.4 to 2.8, 1.5 to 1.8, 0.99. Order of the 2.x: within noise.
    lone_ns = 4000 * 1048 * 8 / 100 + 8_320
    bounds = {
        "ecmp": (2.9, 4.2),
        "conweave": (2.5, 3.1),
        "ark-uplinks": (2.1, 2.9),
        "ark": (1.2, 2.1),
        "planned": (0.98, 1.0),
    }
    means = []
    for name, (low, high) in bounds.items():
        transfers = permutation(7)
        scheme = make_scheme(name, FABRIC, SchemeOptions(), transfers=transfers, seed=7, engine="packet")
        outcome = PacketEngine(FABRIC, transfers, scheme, CONWEAVE).run()
        means.append(outcome.fct_ns.mean() / lone_ns)
        assert low < means[-1] < high, name
        if name == "conweave":
            assert set(outcome.path) == {""}  # many, one packet here and one there
    assert means == sorted(means, reverse=True)
