"""What must hold whatever the load: nothing lost without a reason, everything arrives, nothing hangs."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sim.packet.networks import FOREVER_NS, LeafSpine, finish, link_total, start, total

from ark.errors import ConfigError
from ark.sim.packet.settings import (
    MIB,
    PRESETS,
    Buffer,
    Control,
    PacketSettings,
    describe,
    preset,
    with_timers,
)
from ark.sim.packet.simulation import Pause

SIMAI = preset("simai")
UNCONTROLLED = replace(SIMAI, control="none", window="none")
INCAST = [(nic, 8, 500_000) for nic in range(8)]
PAIRS = [(nic, 8 + nic, 1_000_000) for nic in range(8)]


@pytest.mark.slow
@pytest.mark.parametrize("control", ["dcqcn", "none", "hpcc", "swift"])
def test_all_bytes_arrive_in_spite_of_losses(control: Control) -> None:
    settings = replace(SIMAI, control=control, loss=0.01, timeout_ns=100_000)
    simulation = finish(start(LeafSpine(), settings, PAIRS))
    flows = simulation.world.flows[: simulation.flows]
    assert (flows["acked"] == flows["length"]).all()
    assert (flows["expected"] == flows["length"]).all()
    assert total(simulation, "retransmits") > 0
    assert total(simulation, "timeouts") > 0  # some tail was lost


def test_the_buffer_is_empty_in_the_end() -> None:
    simulation = finish(start(LeafSpine(), SIMAI, PAIRS))
    simulation.run(simulation.now_ns + 10**6)
    world = simulation.world
    assert not world.accounts["bytes"].any()
    assert not world.switches["shared"].any()
    assert world.clock.under_way == 0
    assert not world.queues["bytes"].any()


@pytest.mark.slow
def test_pfc_with_enough_headroom_loses_nothing() -> None:
    buffer = Buffer(bytes=2 * MIB, headroom_packets=4)
    simulation = finish(start(LeafSpine(), replace(UNCONTROLLED, buffer=buffer), INCAST))
    assert link_total(simulation, "pauses") > 0
    assert link_total(simulation, "drops") == 0
    assert total(simulation, "retransmits") == 0
    # The shared link never idles, so pauses cost nothing: all bytes at line rate, and a little latency.
    packets = sum(-(-size // 9000) for _, _, size in INCAST)
    assert simulation.fct_ns().max() == pytest.approx(packets * 724, rel=0.02)


@pytest.mark.slow
def test_an_incast_of_hundreds_is_lossless_where_the_pool_takes_what_comes_after_a_pause() -> None:
    place = LeafSpine(leaves=4, hosts=32, delay_ns=1_000)
    incast = [(32 + nic % 96, 0, 50_000) for nic in range(400)]
    lossless = finish(start(place, preset("conweave"), incast))
    assert link_total(lossless, "pauses") > 0
    assert link_total(lossless, "drops") == 0
    strict = replace(preset("conweave").buffer, pool_first=False)
    assert link_total(finish(start(place, replace(preset("conweave"), buffer=strict), incast)), "drops") > 0


@pytest.mark.slow
def test_without_pfc_the_buffer_overflows_and_go_back_n_repairs_it() -> None:
    buffer = Buffer(bytes=2 * MIB, pfc=False)
    simulation = finish(start(LeafSpine(), replace(UNCONTROLLED, buffer=buffer), INCAST))
    assert link_total(simulation, "pauses") == 0
    assert link_total(simulation, "drops") > 0
    assert total(simulation, "retransmits") > 0


def test_a_path_that_is_lost_for_good_is_found_in_simulated_time() -> None:
    settings = replace(SIMAI, loss=1.0, stall_ns=20_000_000)
    simulation = start(LeafSpine(), settings, [(0, 8, 20_000)])
    assert simulation.run(FOREVER_NS) == Pause.STALLED
    assert simulation.now_ns < 30_000_000


def test_without_a_time_out_a_lost_tail_is_a_stall_not_an_endless_run() -> None:
    simulation = start(LeafSpine(), replace(SIMAI, loss=1.0, timeout_ns=0), [(0, 8, 20_000)])
    assert simulation.run(FOREVER_NS) == Pause.STALLED


def test_a_link_that_fails_and_comes_back() -> None:
    place = LeafSpine()
    simulation = start(place, replace(SIMAI, timeout_ns=50_000), [(0, 8, 2_000_000)])
    uplink = place.route(0, 8, 0)[1]
    assert simulation.run(20_000) == Pause.TIME_UP
    simulation.set_link(uplink, 20_000, up=False)
    assert simulation.run(400_000) == Pause.TIME_UP
    assert simulation.world.flows[0].acked < 2_000_000
    simulation.set_link(uplink, 400_000, up=True)
    finish(simulation)
    assert simulation.fct_ns()[0] > 500_000
    assert total(simulation, "timeouts") > 0
    assert link_total(simulation, "drops") > 0


def test_strict_acks_overtake_data() -> None:
    both_ways = [(0, 8, 900_000), (8, 0, 900_000), (1, 8, 900_000)]
    shared = finish(start(LeafSpine(spines=1), SIMAI, both_ways))
    strict = finish(start(LeafSpine(spines=1), replace(SIMAI, ack_priority=0), both_ways))
    assert strict.fct_ns().mean() < shared.fct_ns().mean()


def test_priorities_share_a_link_packet_by_packet() -> None:
    place = LeafSpine(spines=1)
    simulation = start(place, SIMAI, [])
    for source, priority in ((0, 2), (1, 3), (2, 3), (3, 3)):
        route, back = place.route(source, 8 + source, 0), place.route(8 + source, source, 0)
        window = simulation.window_bytes(route)
        simulation.add_flow(3_000_000, route, back, window_bytes=4 * window, priority=priority)
    for flow in range(4):
        simulation.start(flow, 0)
    finish(simulation)
    fct = simulation.fct_ns()
    assert fct[0] < 0.65 * fct[1:].mean()  # half of the link against a third of the other half


@pytest.mark.slow
def test_incast_of_a_thousand_completes() -> None:
    place = LeafSpine(leaves=16, hosts=64)
    settings = replace(SIMAI, window_bytes=9_000, window="fixed")
    simulation = finish(start(place, settings, [(64 + nic % 960, 0, 18_000) for nic in range(1000)]))
    assert (simulation.fct_ns() > 0).all()


def test_mixed_rates_derive_their_thresholds() -> None:
    assert SIMAI.ecn.thresholds(400 * 10**9) == (800_000, 3_200_000, 0.2)
    assert SIMAI.ecn.thresholds(10 * 10**9) == (40_000, 160_000, 0.2)
    slow = finish(start(LeafSpine(rate_bps=10**10), SIMAI, PAIRS[:1]))
    fast = finish(start(LeafSpine(rate_bps=4 * 10**11), SIMAI, PAIRS[:1]))
    assert slow.fct_ns()[0] > 30 * fast.fct_ns()[0]


def test_whole_picoseconds_are_a_little_slower_than_truncated_nanoseconds() -> None:
    cut = finish(start(LeafSpine(), SIMAI, PAIRS[:1])).fct_ns()[0]
    exact = finish(start(LeafSpine(), replace(SIMAI, whole_nanoseconds=False), PAIRS[:1])).fct_ns()[0]
    assert 0 < exact - cut < 100


def test_sampled_seeds_repeat_and_differ() -> None:
    settings = replace(SIMAI, loss=0.01, timeout_ns=100_000)
    runs = [finish(start(LeafSpine(), settings, PAIRS, seed=seed)) for seed in (1, 1, 2)]
    assert runs[0].world.clock.history == runs[1].world.clock.history != runs[2].world.clock.history


@pytest.mark.slow
def test_memory_does_not_grow_with_the_bytes_sent() -> None:
    made = [finish(start(LeafSpine(), SIMAI, [(0, 8, size)])).world.clock.made for size in (10**6, 10**8)]
    assert made[0] == made[1] < 20


@pytest.mark.slow
@pytest.mark.parametrize("timers", [(1, 4, 300), (50, 50, 55)])
def test_the_cost_of_a_collision_without_window(timers: tuple[int, int, int]) -> None:
    # Measured with ConWeave's ns-3: FCT over that of a lone flow, two flows forced on one uplink.
    measured = {(1, 4, 300): (5.26, 3.52, 2.51), (50, 50, 55): (1.87, 2.52, 2.32)}[timers]
    place = LeafSpine(spines=1, hosts=16, delay_ns=1000)
    for size, expected in zip((10**6, 4 * 10**6, 16 * 10**6), measured, strict=True):
        settings = with_timers(preset("conweave"), *timers)
        simulation = finish(start(place, settings, [(0, 16, size), (1, 17, size)]))
        lone_ns = size / 1000 * 1048 * 8 / 100 + 8_320
        assert simulation.fct_ns().mean() / lone_ns == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_runs_and_is_described(name: str) -> None:
    settings = preset(name)
    assert describe(settings)["preset"] == name
    assert (finish(start(LeafSpine(), settings, PAIRS[:2])).fct_ns() > 0).all()


def test_wrong_constants_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        PacketSettings(payload_bytes=0, loss=2.0, priority=9)
    for name in ("payload_bytes", "loss", "priority"):
        assert name in str(caught.value)
    with pytest.raises(ConfigError, match="there are simai"):
        preset("simia")


def test_links_without_a_partner_are_refused() -> None:
    network = LeafSpine().network
    with pytest.raises(ConfigError, match="one way and"):
        replace(network, target_nic=np.where(network.target_nic == 1, 0, network.target_nic)).reverse()
