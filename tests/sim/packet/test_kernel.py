"""The compiled kernel against the same source interpreted, and clever pieces against plain ones."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.packet.networks import LeafSpine, finish, start

from ark.sim.packet import layout
from ark.sim.packet.dcqcn import step_alpha
from ark.sim.packet.events import SLOT_MASK, begin_first, end_first, schedule
from ark.sim.packet.layout import ARRIVAL, World, empty_world
from ark.sim.packet.leaves import BALANCERS, Leaves
from ark.sim.packet.settings import MIB, Buffer, PacketSettings, preset

ROOT = Path(__file__).resolve().parents[3]
SIMAI = preset("simai")
CONWEAVE = replace(preset("conweave"), leaves=Leaves(flowlet_gap_ns=500))
CASES: dict[str, PacketSettings] = {
    "dcqcn": replace(SIMAI, window="none", ecn=replace(SIMAI.ecn, table={}, min_bytes=20_000)),
    "losses": replace(SIMAI, loss=0.02, timeout_ns=50_000, dcqcn=replace(SIMAI.dcqcn, increase_bytes=20_000)),
    "pauses": replace(SIMAI, window="none", buffer=Buffer(bytes=MIB // 2, headroom_packets=4)),
    "hpcc": replace(SIMAI, control="hpcc"),
    "swift": replace(SIMAI, control="swift", loss=0.01),
    **{balancer: CONWEAVE for balancer in BALANCERS if balancer},
}


def test_no_field_hides_behind_an_attribute_of_records() -> None:
    tables = [one for one in vars(layout).values() if isinstance(one, np.dtype) and one.names]
    assert len(tables) == 17
    for table in tables:
        assert not set(table.names or ()) & set(dir(np.record))


def trace(case: str) -> tuple[int, int]:
    """Hash over all events of a small run, and their number."""
    scale = 1 if case not in BALANCERS else 4  # their packets are smaller
    flows = [(0, 2, 300_000 // scale), (1, 2, 200_000 // scale), (2, 0, 100_000 // scale)]
    balancer = case if case in BALANCERS else ""
    simulation = start(LeafSpine(spines=2, hosts=2), CASES[case], flows, balancer=balancer)
    clock = finish(simulation).world.clock
    return int(clock.history), int(clock.events)


@pytest.mark.slow
def test_the_interpreter_sees_the_same_events() -> None:
    code = "from tests.sim.packet.test_kernel import CASES, trace\nprint([trace(case) for case in CASES])"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    interpreted = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert interpreted.stdout.strip() == str([trace(case) for case in CASES])


WORLD = empty_world()


@given(
    st.lists(st.tuples(st.integers(1, 30_000_000), st.booleans()), max_size=20),
    st.sampled_from([1 / 256, 5 / 1024, 0.5]),
)
def test_alpha_in_powers_is_alpha_step_by_step(events: list[tuple[int, bool]], gain: float) -> None:
    WORLD.rules.gain = gain
    WORLD.rules.alpha_interval = interval = 1_000_000
    sender = WORLD.flows[0]
    sender.alpha, sender.alpha_due, sender.alpha_cnp = 1.0, interval, 0
    alpha, due, cnp, now = 1.0, interval, False, 0
    for later, comes in events:
        now += later
        while due <= now:
            alpha = (1 - gain) * alpha + (gain if cnp else 0.0)
            cnp = False
            due += interval
        cnp = cnp or comes
        step_alpha(WORLD, 0, now)
        if comes:
            sender.alpha_cnp = 1
        assert sender.alpha == pytest.approx(alpha, rel=1e-12)
        assert sender.alpha_due == due


def _no_events() -> World:
    """The clock of ``WORLD`` at time 0, with nothing to come."""
    clock: World = WORLD.clock
    clock.pending, clock.heap, clock.order, clock.vacancy, clock.now = 0, 0, 0, 0, 0
    clock.events_made, clock.events_free = 0, -1
    WORLD.lanes["busy"], WORLD.lanes["head"] = 0, -1
    return clock


def test_tables_begin_at_cache_lines_and_hot_records_fill_them() -> None:
    for name in layout.WORLD.names or ():
        assert WORLD[name].__array_interface__["data"][0] % layout.LINE == 0, name
    assert all(record.itemsize % layout.LINE == 0 for record in (layout.LINK, layout.PACKET, layout.FLOW))


@given(st.lists(st.one_of(st.integers(0, 50), st.none()), max_size=100))
def test_the_heap_gives_events_by_time_and_then_by_order(steps: list[int | None]) -> None:
    clock = _no_events()
    model: list[tuple[int, int]] = []
    for number, lead in enumerate(steps):
        if lead is not None:
            schedule(WORLD, int(clock.now) + lead, ARRIVAL, number)
            model.append((int(clock.now) + lead, number))
        elif model:
            first = min(model)
            assert (int(WORLD.when[0]), int(WORLD.what[0] & SLOT_MASK) >> 3) == first
            begin_first(WORLD)
            clock.now = first[0]
            model.remove(first)
            if number % 2:  # its handler schedules another
                schedule(WORLD, int(clock.now) + number % 7, ARRIVAL, number)
                model.append((int(clock.now) + number % 7, number))
            end_first(WORLD)
    assert clock.pending == len(model)
    assert clock.events_made <= len(steps)


def test_events_of_one_lead_wait_outside_the_heap() -> None:
    clock = _no_events()
    for number in range(100):
        clock.now = number
        schedule(WORLD, number + (1_000 if number % 2 else 3_000), ARRIVAL, number)
    assert (int(clock.pending), int(clock.heap)) == (100, 2)
