"""HPCC and Swift beyond delivery: what their papers promise, and their steps against plain versions."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.sim.packet.networks import LeafSpine, start

from ark.sim.packet.hpcc import on_telemetry
from ark.sim.packet.layout import INT_HOPS
from ark.sim.packet.settings import Control, preset
from ark.sim.packet.simulation import Simulation
from ark.sim.packet.swift import on_delay, target_delay

SIMAI = replace(preset("simai"), payload_bytes=1_000)
PLACE = LeafSpine(spines=1, hosts=16, delay_ns=1_000)
UPLINK = 2 * PLACE.leaves * PLACE.hosts
RATE_BPS = 10**11
SETTLED_NS: dict[str, int] = {"hpcc": 400_000, "swift": 2_500_000}
"""Swift adds a packet a round trip: two flows need seventy to fill their windows."""
WATCHED_NS, STEP_NS = 800_000, 2_000


@dataclass(frozen=True)
class Observed:
    """A shared link once the flows have settled."""

    queued_bytes: NDArray[np.int64]
    utilisation: float
    bytes_each: NDArray[np.int64]
    simulation: Simulation


def observe(control: Control, flows: int) -> Observed:
    """``flows`` long flows, each from a NIC of its own, over one uplink."""
    pairs = [(nic, PLACE.hosts + nic, 50_000_000) for nic in range(flows)]
    simulation = start(PLACE, replace(SIMAI, control=control), pairs)
    queued, sent, acked = [], [], []
    settled_ns = SETTLED_NS[control]
    for time_ns in range(settled_ns, settled_ns + WATCHED_NS, STEP_NS):
        simulation.run(time_ns)
        simulation.settle()
        line = simulation.world.links[UPLINK]
        queued.append(int(line.queued))
        sent.append(int(line.sent_bytes))
        acked.append(simulation.world.flows["acked"][:flows].copy())
    seconds = (WATCHED_NS - STEP_NS) / 1e9
    share = (sent[-1] - sent[0]) * 8 / seconds / RATE_BPS
    return Observed(np.array(queued), share, acked[-1] - acked[0], simulation)


def jain(shares: NDArray[np.int64]) -> float:
    """Jain's index of fairness: 1 where all are equal, 1 / n where one has all."""
    values = shares.astype(np.float64)
    return float(values.sum() ** 2 / len(values) / (values**2).sum())


@pytest.mark.slow
@pytest.mark.parametrize("flows", [2, 4, 8, 16])
def test_hpcc_fills_a_link_to_its_target_with_next_to_no_queue(flows: int) -> None:
    """HPCC, SIGCOMM 2019, 5.2: near-zero queues at eta = 95 % of the link."""
    observed = observe("hpcc", flows)
    assert observed.utilisation == pytest.approx(0.95, abs=0.01)
    assert observed.queued_bytes.mean() < 3_000  # of 1094 B packets; a bandwidth-delay product is 104 KB
    assert observed.queued_bytes.max() < 1_100 * flows
    assert jain(observed.bytes_each) > 0.95  # additive steps of 0.4 Gbit/s even shares out slowly


@pytest.mark.slow
@pytest.mark.parametrize("flows", [2, 4, 8, 16])
def test_swift_keeps_the_delay_at_its_target_and_shares_the_whole_link(flows: int) -> None:
    """Swift, SIGCOMM 2020, 5: full links, delay near the target, which grows as windows shrink."""
    observed = observe("swift", flows)
    assert observed.utilisation > 0.99
    simulation = observed.simulation
    base_us = int(simulation.world.flows[0].base_rtt) / 1e6
    delay_us = base_us + observed.queued_bytes.mean() * 8 / 1e5
    target_us = np.mean([target_delay(simulation.world, flow) for flow in range(flows)]) / 1e6
    assert delay_us == pytest.approx(target_us, rel=0.1)
    assert jain(observed.bytes_each) > 0.999


@pytest.mark.slow
def test_a_lone_flow_has_the_link_to_itself() -> None:
    assert observe("hpcc", 1).utilisation == pytest.approx(0.95, abs=0.005)
    assert observe("swift", 1).utilisation > 0.99


# The same rules once more, written down plainly from the papers.

HOPS = st.lists(
    st.tuples(st.integers(1, 20_000), st.integers(0, 250_000), st.integers(0, 500_000)),
    min_size=3,
    max_size=3,
)
"""Of three hops: nanoseconds since the last ACK, bytes sent in them, bytes queued."""


@given(st.lists(HOPS, min_size=2, max_size=30))
@settings(max_examples=50, deadline=None)
def test_hpcc_s_rate_follows_the_paper_s_algorithm(acks: list[list[tuple[int, int, int]]]) -> None:
    constants = SIMAI.hpcc
    simulation = _lone("hpcc")
    world = simulation.world
    sender = world.flows[0]
    rtt_s = int(sender.base_rtt) / 1e12
    step_bps = constants.additive_share * RATE_BPS
    reference_bps, average, seen, round_ends = float(RATE_BPS), 1.0, [(0, 0, 0)] * 3, -1
    for number, hops in enumerate(acks):
        times = [(old[0] + new[0], old[1] + new[1], new[2]) for old, new in zip(seen, hops, strict=True)]
        sender.next = (number + 5) * 1_000  # five packets in flight
        _telemetry(simulation, times, sequence=(number + 1) * 1_000)
        if number > 0:
            loads = []
            for old, new in zip(seen, times, strict=True):
                sending = (new[1] - old[1]) * 8e9 / (new[0] - old[0]) / RATE_BPS
                waiting = min(new[2], old[2]) * 8 / (RATE_BPS * rtt_s)
                loads.append((sending + waiting, new[0] - old[0]))
            load, elapsed_ns = max(loads, key=lambda pair: pair[0])
            weight = min(elapsed_ns / 1e9, rtt_s) / rtt_s
            if load > 0:
                average = (1 - weight) * average + weight * load
            rate_bps = reference_bps / (average / constants.utilisation_target) + step_bps
            rate_bps = min(max(rate_bps, SIMAI.dcqcn.rate_min_bps), RATE_BPS)
            assert float(sender.rate) == pytest.approx(rate_bps, rel=1e-9)
            if (number + 1) * 1_000 > round_ends:
                reference_bps, round_ends = rate_bps, (number + 5) * 1_000
        else:
            round_ends = (number + 5) * 1_000
        seen = times


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 5)), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_swift_s_window_follows_the_paper_s_algorithm(acks: list[tuple[int, int]]) -> None:
    constants = SIMAI.swift
    simulation = _lone("swift")
    world = simulation.world
    window, cut_at_us, now_us = float(world.flows[0].reference), -1e9, 1_000
    for delay_us, packets in acks:
        now_us += 7
        factor, offset = constants.scaling()
        scaling_ns = min(max(factor / math.sqrt(window) + offset, 0), constants.scaling_max_ns * 1e3) / 1e3
        target_us = (constants.base_ns + 4 * constants.hop_ns + scaling_ns) / 1e3
        on_delay(world, 0, delay_us * 10**6, packets * 1_000, now_us * 10**6)
        if delay_us < target_us:
            window += constants.additive * packets / max(window, 1.0)
        elif now_us - cut_at_us >= delay_us:
            excess = constants.beta * (delay_us - target_us) / delay_us
            window *= max(1 - excess, 1 - constants.cut_max)
            cut_at_us = now_us
        window = min(max(window, constants.window_min), constants.window_max_bytes / 1_000)
        assert float(world.flows[0].reference) == pytest.approx(window, rel=1e-6)


_SIMULATIONS: dict[str, Simulation] = {}


def _lone(control: Control) -> Simulation:
    """A flow that has not started, over four links, in its first state; its world is used again and again."""
    if control not in _SIMULATIONS:
        _SIMULATIONS[control] = Simulation(PLACE.network, replace(SIMAI, control=control))
    simulation = _SIMULATIONS[control]
    simulation.flows = 0
    simulation.world.flows[0] = np.zeros((), simulation.world.dtype["flows"].base)
    route, back = PLACE.route(0, 16, 0), PLACE.route(16, 0, 0)
    simulation.add_flow(10**9, route, back, window_bytes=simulation.window_bytes(route))
    return simulation


def _telemetry(simulation: Simulation, hops: list[tuple[int, int, int]], *, sequence: int) -> None:
    """Packet 0 comes back as an ACK with the state of three hops."""
    entry = simulation.world.packets[0]
    entry.stops = len(hops)
    entry.sequence = sequence
    for hop, (time_ns, sent, queued) in enumerate(hops):
        stop = simulation.world.stops[hop]
        stop.time, stop.sent, stop.queued, stop.link = time_ns * 1_000, sent, queued, UPLINK + hop
    assert len(hops) <= INT_HOPS
    on_telemetry(simulation.world, 0, 0)
