"""The kernel against the plain version of the same model: under pauses, where no reference run exists."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sim.packet.networks import FOREVER_NS, LeafSpine
from tests.sim.packet.plain import Flow, Plain

from ark.sim.packet.network import Network
from ark.sim.packet.settings import Buffer, Ecn, PacketSettings, preset
from ark.sim.packet.simulation import Pause, Simulation

SIMAI = preset("simai")
STEP = Ecn(min_bytes=50_000, max_bytes=150_000, share=0.0, proportional=False)
"""Marks above 150 KB, and no packet by chance below."""


def scenario(
    rng: np.random.Generator, place: LeafSpine, flows: int, targets: int, size: int
) -> list[tuple[int, int, int, int, int]]:
    """(source, target, bytes, spine, start in ns) of flows to a few NICs of the other leaf, by start."""
    found = [
        (
            int(rng.integers(place.hosts)),
            place.hosts + int(rng.integers(targets)),
            int(rng.integers(size // 2, size)),
            int(rng.integers(place.spines)),
            int(rng.integers(0, 20_000)),
        )
        for _ in range(flows)
    ]
    return sorted(found, key=lambda flow: flow[4])


@pytest.mark.slow
@pytest.mark.parametrize("window", [90_000, 10**9])
@pytest.mark.parametrize("payload", [1_000, 9_000])
@pytest.mark.parametrize("buffer_kb", [400, 1_500, 6_000])
def test_pauses_fall_where_they_do_in_a_plain_simulation(buffer_kb: int, payload: int, window: int) -> None:
    rng = np.random.default_rng([buffer_kb, payload])
    place = LeafSpine(spines=2, hosts=6)
    delays = rng.integers(300, 900, len(place.network.delay_ns))
    # No two links alike: packets would keep leaving two of them at one instant, and who is first is free.
    rates = rng.integers(95 * 10**9, 10**11, len(delays))
    network = replace(place.network, delay_ns=delays, rate_bps=rates)
    settings = replace(
        SIMAI,
        payload_bytes=payload,
        control="none",
        window="fixed",
        ecn=STEP,
        timeout_ns=0,
        whole_nanoseconds=False,
        buffer=Buffer(bytes=buffer_kb * 1_000, headroom_packets=3),
    )
    asked = scenario(rng, place, 16, 2, 200_000)
    simulation, plain = both(place, network, settings, asked, window)
    expected = plain.run()
    assert plain.drops == int(simulation.world.clock.drops) == 0
    assert simulation.fct_ns().tolist() == expected
    assert int(simulation.world.links["pauses"].sum()) == plain.pauses
    assert plain.pauses > 0 or buffer_kb > 400
    marks = simulation.world.flows["marks"][: simulation.flows].tolist()
    assert marks == [flow.marks for flow in plain.flows]


def both(
    place: LeafSpine,
    network: Network,
    settings: PacketSettings,
    asked: list[tuple[int, int, int, int, int]],
    window: int,
) -> tuple[Simulation, Plain]:
    """The kernel's simulation, run to its end, and the plain one of the same flows."""
    simulation = Simulation(network, settings)
    flows = []
    for source, target, size, spine, start in asked:
        route, back = place.route(source, target, spine), place.route(target, source, spine)
        simulation.add_flow(size, route, back, window_bytes=window)
        flows.append(Flow(source, size, route, back, window, start * 1_000))
    for number in range(len(asked)):
        while simulation.now_ns < asked[number][4]:
            simulation.run(asked[number][4])
        simulation.start(number, asked[number][4])
    while simulation.live:
        assert simulation.run(FOREVER_NS) == Pause.FLOW
    simulation.run(simulation.now_ns + 100_000)  # the last frames arrive
    return simulation, Plain(network, settings, flows)
