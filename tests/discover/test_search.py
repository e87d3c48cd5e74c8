"""Searches and the prober on simulated networks: loss, limits, and fabrics whose port does not matter."""

from typing import Any

import pytest
from tests.discover.simulated import SimulatedNetwork, run

from ark.discover.icmp import IcmpError
from ark.discover.pacing import SLOWEST_NS, START_NS, Pacer
from ark.discover.probe import Flow
from ark.discover.prober import Prober
from ark.discover.search import TRACE_DPORT, Finding, Search, Task, ports_needed
from ark.fabric import Fabric, FiveTuple, HashSpec, Influence, Nic, fat_tree, leaf_spine, route
from ark.units import NS_PER_S


def search_in(
    fabric: Fabric, *, task: dict[str, Any] | None = None, **network: Any
) -> tuple[Finding, SimulatedNetwork, Prober, int]:
    source, target = fabric.nics[0], fabric.nics[-1]
    net = SimulatedNetwork(fabric, source, target, **network)
    flow = Flow(source.address, target.address, 17, 0, 4791)
    search = Search(Task(flow, **{"ports": range(50_000, 60_000), "per_path": 4, **(task or {})}))
    prober = Prober([search], nonce=77)
    now = run(prober, {target.address: net})
    assert prober.is_done
    return search.finding(), net, prober, now


def assert_right(fabric: Fabric, finding: Finding, source: Nic, target: Nic) -> None:
    assert finding.ports
    for port in finding.ports:
        path = route(fabric, FiveTuple(source.address, target.address, port, 4791), source, target)
        assert finding.switches(port) == tuple(fabric.links[link].source for link in path.links[1:])


@pytest.mark.parametrize("loss", [0.0, 0.05, 0.3])
def test_what_is_learned_is_right_whatever_is_lost(loss: float) -> None:
    fabric = leaf_spine(2, 4, 1)
    finding, net, _, _ = search_in(fabric, loss=loss)
    assert_right(fabric, finding, net.source, net.target)
    assert finding.influence is Influence.PORT
    assert finding.varying == (2,)
    counts = [list(finding.ports.values()).count((f"spine{k}",)) for k in range(4)]
    assert min(counts) >= 4


def test_three_tiers_are_named_by_three_switches() -> None:
    fabric = fat_tree(4)
    finding, net, _, _ = search_in(fabric, loss=0.02)
    assert_right(fabric, finding, net.source, net.target)
    assert finding.varying == (2, 3, 4)


def test_no_probe_to_the_transfers_port_reaches_a_host() -> None:
    """The distance is found with traceroute's own port; all other probes die at a switch."""
    _, net, _, _ = search_in(leaf_spine(2, 4, 1))
    assert net.reached
    assert {probe.flow.dport for probe in net.reached} == {TRACE_DPORT}


def test_a_known_distance_needs_no_traceroute() -> None:
    _, net, _, _ = search_in(leaf_spine(2, 4, 1), task={"switches": 3})
    assert net.reached == []


@pytest.mark.parametrize("rate", [1.0, 20.0])
def test_limits_of_routers_are_met_with_patience(rate: float) -> None:
    fabric = leaf_spine(2, 4, 1)
    finding, net, prober, now = search_in(fabric, rate_per_s=rate, task={"paths": 4, "per_path": 3})
    assert_right(fabric, finding, net.source, net.target)
    assert len(set(finding.ports.values())) == 4
    assert prober.counters.sent < 200
    assert now < 60 * NS_PER_S


@pytest.mark.slow
def test_every_port_is_asked_again_until_it_is_known() -> None:
    """All of 200 ports, though each router answers one probe a second and 30 % of answers are lost."""
    fabric = leaf_spine(2, 4, 1)
    everything = {"per_path": None, "ports": range(50_000, 50_200)}
    finding, net, _, _ = search_in(fabric, rate_per_s=1.0, loss=0.3, task=everything)
    assert_right(fabric, finding, net.source, net.target)
    assert len(finding.ports) >= 198
    assert len(finding.ports) + len(finding.unanswered) == 200


def test_spraying_is_recognised() -> None:
    finding, _, _, _ = search_in(leaf_spine(2, 4, 1), sprays=True)
    assert finding.influence is Influence.SPRAYED
    assert "sprayed" in finding.reason


def test_a_hashed_queue_pair_is_recognised() -> None:
    spec = HashSpec(fields=("src", "dst", "proto", "dport", "dest-qp"))
    finding, _, _, _ = search_in(leaf_spine(2, 4, 1, hash=spec))
    assert finding.influence is Influence.NOT_HASHED
    assert "queue pair decides" in finding.reason


def test_one_path_is_recognised() -> None:
    finding, _, _, _ = search_in(leaf_spine(2, 1, 1))
    assert finding.influence is Influence.ONE_PATH
    assert finding.hops == ("leaf0", "spine0", "leaf1")


def test_a_port_that_is_not_hashed_is_told_where_several_paths_are_known() -> None:
    spec = HashSpec(fields=("src", "dst"))
    finding, _, _, _ = search_in(leaf_spine(2, 4, 1, hash=spec), task={"paths": 4})
    assert finding.influence is Influence.NOT_HASHED


def test_a_silent_tier_is_given_up_and_named() -> None:
    fabric = leaf_spine(2, 4, 1)
    finding, _, prober, _ = search_in(fabric, silent=frozenset({"leaf0", "leaf1"}), task={"switches": 3})
    assert finding.silent == (1, 3)
    assert finding.hops == (None, None, None)
    assert finding.varying == (2,)
    assert len(set(finding.ports.values())) == 4
    assert prober.counters.given_up < 40


def test_one_silent_spine_leaves_its_ports_unanswered() -> None:
    fabric = leaf_spine(2, 4, 1)
    finding, net, _, _ = search_in(fabric, silent=frozenset({"spine2"}), task={"switches": 3})
    assert_right(fabric, finding, net.source, net.target)
    assert len(set(finding.ports.values())) == 3
    assert finding.unanswered


def test_a_network_that_never_answers_ends_the_search() -> None:
    everyone = frozenset({"leaf0", "leaf1", "spine0", "spine1"})
    fabric = leaf_spine(2, 2, 1)
    target = fabric.nics[-1].address
    finding, _, prober, _ = search_in(fabric, silent=everyone | {target})
    assert not finding.ports
    assert prober.counters.sent < 100


@pytest.mark.slow
def test_a_weak_path_is_found_by_its_least_share() -> None:
    fabric = leaf_spine(2, 4, 1, hash=HashSpec(weights={f"spine{k}": 20 for k in range(3)}))
    finding, _, _, _ = search_in(fabric, task={"share_min": 1 / 61, "per_path": 1})
    assert len(set(finding.ports.values())) == 4


@pytest.mark.slow
def test_peers_are_searched_in_parallel() -> None:
    fabric = leaf_spine(2, 4, 4)
    source, targets = fabric.nics[0], fabric.nics[4:]
    networks = {nic.address: SimulatedNetwork(fabric, source, nic) for nic in targets}
    tasks = [
        Task(Flow(source.address, nic.address, 17, 0, 4791), range(50_000, 60_000), 4) for nic in targets
    ]
    searches = [Search(task) for task in tasks]
    prober = Prober(searches, nonce=1)
    together = run(prober, networks)
    assert prober.progress == (4, 4)
    for search, nic in zip(searches, targets, strict=True):
        assert_right(fabric, search.finding(), source, nic)
    one = Prober([Search(tasks[0])], nonce=1)
    assert together < 3 * run(one, {targets[0].address: SimulatedNetwork(fabric, source, targets[0])})


def test_answers_that_are_not_ours_change_nothing() -> None:
    fabric = leaf_spine(2, 4, 1)
    source, target = fabric.nics
    search = Search(Task(Flow(source.address, target.address, 17, 0, 4791), range(50_000, 50_100), 4))
    prober = Prober([search], nonce=5)
    (probe, *_) = prober.probes_to_send(0)
    forged = IcmpError(
        "6.6.6.6", True, probe.flow.src, probe.flow.dst, 17, probe.flow.sport, probe.flow.dport, 0xDEAD_BEEF
    )
    before = search.finding()
    prober.icmp_received(1, forged)
    assert prober.counters.foreign == 1
    assert search.finding() == before


def test_ports_needed_bound_the_chance_of_a_miss() -> None:
    for found in (1, 4, 16):
        share = 1 / (found + 1)
        number = ports_needed(found, share)
        assert (found + 1) * (1 - share) ** number <= 0.001 < (found + 1) * (1 - share) ** (number - 2)


def test_the_pace_follows_losses_once_for_a_burst() -> None:
    pacer = Pacer()
    for sent in range(10):
        pacer.lost(sent, now=100)
    assert pacer.interval_ns == int(START_NS * 1.6)
    for now in range(200, 3000, 100):
        pacer.lost(now - 1, now)
    assert pacer.interval_ns == SLOWEST_NS
    for _ in range(1000):
        pacer.answered()
    assert pacer.interval_ns == pacer.fastest_ns
