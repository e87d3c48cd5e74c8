"""Whole transfers on the compiled kernel: laws, the plain twin, and growth of the arrays."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.flow.water_filling import PlainFlow, completion_times_plain

from ark.sim.flow.arrays import LIVE
from ark.sim.flow.network import FIRST_PLACES, FluidNetwork

RATE = 12.5


def completion_times(link_rate: list[float], flows: list[PlainFlow]) -> list[float]:
    """What the kernel makes of the flows, in ns."""
    network = FluidNetwork(np.array(link_rate), stripes_max=4)
    starts = sorted(range(len(flows)), key=lambda i: flows[i].start_ns)
    owner: dict[int, int] = {}
    ends = [math.nan] * len(flows)
    while starts or owner:
        until = flows[starts[0]].start_ns if starts else math.inf
        stop = network.run(until)
        for slot in stop.ended:
            ends[owner.pop(slot)] = network.now_ns
            network.free_flow(slot)
        if not stop.ended and starts:
            flow = flows[starts[0]]
            slot = network.add_flow(
                flow.paths, flow.size, chunk_bytes=flow.chunk, weight=flow.weight, layers=flow.layers
            )
            owner[slot] = starts.pop(0)
    return ends


@st.composite
def plain_flows(draw: st.DrawFn, links: int) -> PlainFlow:
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True)
    start, size = draw(st.integers(0, 100_000)), draw(st.integers(1, 1_000_000))
    layers = draw(
        st.none()
        | st.tuples(
            st.integers(0, 50_000).map(lambda wait: float(start + wait)), st.just(7001.0), st.integers(1, 5)
        )
    )
    paths = draw(st.lists(path, min_size=1, max_size=4))
    return PlainFlow(
        start,
        size,
        paths,
        chunk=draw(st.sampled_from([math.inf, 300_000.0, 77_777.0])),
        weight=draw(st.sampled_from([1.0, 1 / len(paths)])),
        layers=layers,
    )


@st.composite
def traffics(draw: st.DrawFn) -> tuple[list[float], list[PlainFlow]]:
    links = draw(st.integers(1, 6))
    rates = draw(st.lists(st.sampled_from([3.125, RATE, 12.43]), min_size=links, max_size=links))
    return rates, draw(st.lists(plain_flows(links), min_size=1, max_size=12))


@pytest.mark.slow
@given(traffics())
@settings(deadline=None)
def test_equals_the_plain_twin(traffic: tuple[list[float], list[PlainFlow]]) -> None:
    rates, flows = traffic
    assert completion_times(rates, flows) == pytest.approx(completion_times_plain(rates, flows), abs=0.02)


@pytest.mark.slow
@given(traffics())
@settings(deadline=None)
def test_links_are_never_idle_while_a_flow_waits_for_them(
    traffic: tuple[list[float], list[PlainFlow]],
) -> None:
    """Work conservation on one link: it ends all work when a server of its rate would."""
    rates, flows = traffic
    for flow in flows:
        flow.paths, flow.layers = [[0]] * len(flow.paths), None
    busy_until = 0.0
    for flow in sorted(flows, key=lambda flow: flow.start_ns):
        busy_until = max(busy_until, flow.start_ns) + flow.size / rates[0]
    assert max(completion_times(rates, flows)) == pytest.approx(busy_until, abs=0.02 * len(flows))


@pytest.mark.slow
@given(size=st.integers(1, 10**12), rate=st.floats(1e-3, 1e3), start=st.integers(0, 10**12))
@settings(deadline=None)
def test_a_lone_flow_takes_its_size_over_the_rate(size: int, rate: float, start: int) -> None:
    took = completion_times([rate, 2 * rate], [PlainFlow(start, size, [[0, 1]])])[0] - start
    assert took == pytest.approx(size / rate, rel=1e-9, abs=1.0)


def test_layers_that_come_slowly_set_the_pace() -> None:
    """Four layers, one each 100 us, each sent in 20 us: the flow ends 20 us after the last one came."""
    flow = PlainFlow(0, 1_000_000, [[0]], layers=(0.0, 100_000.0, 4))
    assert completion_times([RATE], [flow]) == [pytest.approx(300_000 + 20_000, abs=0.01)]


def test_a_flow_that_waits_for_layers_leaves_the_link_to_others() -> None:
    waiting = PlainFlow(0, 1_000_000, [[0]], layers=(500_000.0, 1.0, 1))
    other = PlainFlow(0, 1_000_000, [[0]])
    assert completion_times([RATE], [waiting, other]) == pytest.approx([580_000, 80_000], abs=0.01)


def test_stripes_that_pull_chunks_end_together_on_unequal_paths() -> None:
    """Pulling beats splitting ahead: 12.5 and 3.125 bytes/ns together carry the flow at their sum."""
    flow = PlainFlow(0, 10_000_000, [[0], [1]], chunk=10_000.0)
    took = completion_times([RATE, 3.125], [flow])[0]
    assert 10_000_000 / (RATE + 3.125) <= took <= 10_000_000 / (RATE + 3.125) + 10_000 / 3.125


def test_a_moved_stripe_takes_its_bytes_along() -> None:
    network = FluidNetwork(np.array([RATE, 2 * RATE]), stripes_max=1)
    slot = network.add_flow([[0]], 1_000_000)
    network.run(40_000)
    assert network.bytes_left(slot) == 500_000
    network.move_stripe(slot, 0, [1])
    assert network.run(math.inf).ended == (slot,)
    assert network.now_ns == pytest.approx(60_000)


def test_segment_ends_are_told_only_to_those_who_ask_and_not_at_the_very_end() -> None:
    network = FluidNetwork(np.array([RATE]), stripes_max=1)
    slot = network.add_flow([[0]], 1_000_000, chunk_bytes=400_000, asks=True)
    stops: list[tuple[int, object, object]] = []
    while network.arguments.counts[LIVE] or not stops:
        stop = network.run(math.inf)
        stops.append((round(network.now_ns), stop.asked, stop.ended))
    assert stops == [(32_000, ((slot, 0),), ()), (64_000, ((slot, 0),), ()), (80_000, (), (slot,))]


def test_the_arrays_grow_and_places_are_used_again() -> None:
    network = FluidNetwork(np.array([RATE]), stripes_max=2)
    for _ in range(3):
        slots = {network.add_flow([[0], [0]], 1000, chunk_bytes=100) for _ in range(3 * FIRST_PLACES)}
        assert len(slots) == 3 * FIRST_PLACES
        ended: set[int] = set()
        while len(ended) < len(slots):
            ended |= set(network.run(math.inf).ended)
        assert ended == slots
        for slot in ended:
            network.free_flow(slot)
    assert len(network.arguments.flows) == 4 * FIRST_PLACES


def test_a_long_path_makes_room() -> None:
    network = FluidNetwork(np.full(40, RATE), stripes_max=1)
    short = network.add_flow([[0]], 1_000_000)
    long = network.add_flow([list(range(40))], 1_000_000)
    assert network.run(math.inf).ended in {(short, long), (long, short)}
    assert network.now_ns == pytest.approx(160_000)
