"""The engine under schemes: laws of time and sharing, and what schemes may count on."""

import os
import subprocess
import sys
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ark.fabric import Fabric, dual_plane, fat_tree, leaf_spine, paper_fabric, route
from ark.fabric.five_tuple import FiveTuple
from ark.sim.experiment import Experiment, run_point
from ark.sim.flow.engine import FlowEngine
from ark.sim.flow.model import FlowModel
from ark.sim.offered import transfers_of
from ark.sim.results import Outcome
from ark.sim.schemes.catalogue import SCHEMES, SchemeOptions, make_scheme
from ark.sim.traffic import PresetWorkload
from ark.workload.flows import Flows

PAPER = paper_fabric()
POOLED = {"ideal", "drill", "spray", "fastpass"}
FABRICS = [
    PAPER,
    leaf_spine(3, 2, 2, fabric_rate_bps=40_000_000_000),
    leaf_spine(1, 0, 4),
    leaf_spine(2, 3, 2, down=("spine1",)),
    fat_tree(4),
    dual_plane(2, 2, 2),
]


def run(
    flows: Flows, scheme: str, options: SchemeOptions | None = None, *, fabric: Fabric = PAPER
) -> Outcome:
    transfers = transfers_of(flows, fabric)
    chosen = make_scheme(scheme, fabric, options or SchemeOptions(), transfers=transfers, seed=0)
    return FlowEngine(fabric, transfers, chosen, FlowModel()).run()


def table(rows: list[tuple[str, str, int, int, int]]) -> Flows:
    """Flows of (src, dst, size_bytes, start_ns, sport), in order of start."""
    rows = sorted(rows, key=lambda row: row[3])
    return Flows(
        id=[str(number) for number in range(len(rows))],
        src=[row[0] for row in rows],
        dst=[row[1] for row in rows],
        size_bytes=np.array([row[2] for row in rows], np.int64),
        start_ns=np.array([row[3] for row in rows], np.int64),
        sport=np.array([row[4] for row in rows], np.int32),
        dport=np.full(len(rows), 4791, np.int32),
    )


@st.composite
def traffics(draw: st.DrawFn, fabrics: list[Fabric] = FABRICS) -> tuple[Fabric, Flows]:
    fabric = draw(st.sampled_from(fabrics))
    names = [nic.name for nic in fabric.nics]
    pair = st.permutations(names).map(lambda names: (names[0], names[1]))
    row = st.tuples(
        pair, st.integers(1, 500_000_000), st.integers(0, 50_000_000), st.integers(0xC000, 0xFFFF)
    ).map(lambda row: (*row[0], *row[1:]))
    return fabric, table(draw(st.lists(row, min_size=1, max_size=25)))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@given(
    traffic=traffics(), lag_us=st.sampled_from([0, 100, 3000]), stripes=st.integers(1, 3), moves=st.booleans()
)
@settings(deadline=None, max_examples=40)
def test_every_transfer_ends_on_paths_that_its_ports_lead_to(
    scheme: str, traffic: tuple[Fabric, Flows], lag_us: int, stripes: int, *, moves: bool
) -> None:
    fabric, flows = traffic
    options = SchemeOptions(lag_ns=lag_us * 1000, stripes=stripes, moves=moves, segment_bytes=20_000_000)
    outcome = run(flows, scheme, options, fabric=fabric)
    for index in range(len(flows)):
        source, target = fabric.nic(flows.src[index]), fabric.nic(flows.dst[index])
        rate_bps = max(fabric.links[out].rate_bps for out, _ in fabric.ports(source))
        ports = len(fabric.ports(source))
        assert outcome.fct_ns[index] >= flows.size_bytes[index] * 8e9 / (rate_bps * ports) - 1
        if scheme in POOLED:
            continue
        paths = outcome.path[index].replace(">", ";").split(";")
        sports = outcome.sport[index].replace(">", ";").split(";")
        for path, sport in zip(paths, sports, strict=True):
            taken = route(fabric, FiveTuple(source.address, target.address, int(sport), 4791), source, target)
            assert str(taken.index) == path


@pytest.mark.slow
@given(
    size=st.integers(1, 10**11),
    scheme=st.sampled_from(SCHEMES),
    payload=st.sampled_from([1000, 4096, 9000]),
    start=st.integers(0, 10**12),
)
@settings(deadline=None, max_examples=50)
def test_a_lone_transfer_takes_its_bytes_over_the_goodput_and_the_latency(
    size: int, scheme: str, payload: int, start: int
) -> None:
    flows = table([("h0", "h8", size, start, 50_000)])
    model = FlowModel(payload_bytes=payload)
    transfers = transfers_of(flows, PAPER)
    chosen = make_scheme(scheme, PAPER, SchemeOptions(), transfers=transfers, seed=0)
    outcome = FlowEngine(PAPER, transfers, chosen, model).run()
    sent_ns = outcome.fct_ns[0] - outcome.reserve_ns[0]
    packet_ns = (payload + 52) * 8 // 100
    latency_ns = 4 * 500 + 3 * packet_ns + 4 * (500 + 4)
    assert sent_ns == pytest.approx(
        size / (12.5 * model.goodput_share * chosen.goodput) + latency_ns, rel=1e-9, abs=1
    )


def test_the_lone_100_mb_flow_of_ns3() -> None:
    flows = table([("h0", "h8", 100_000_000, 0, 50_000)])
    assert run(flows, "ecmp").fct_ns[0] == pytest.approx(8_050_636, abs=50)


@pytest.mark.slow
@given(traffic=traffics(), random=st.randoms())
@settings(deadline=None, max_examples=40)
def test_the_order_of_flows_that_start_together_changes_nothing(
    traffic: tuple[Fabric, Flows], random: Random
) -> None:
    fabric, flows = traffic
    flows = replace(flows, start_ns=flows.start_ns // 25_000_000 * 25_000_000)
    order = list(range(len(flows)))
    random.shuffle(order)
    order.sort(key=lambda index: flows.start_ns[index])
    shuffled = Flows(
        id=[flows.id[index] for index in order],
        src=[flows.src[index] for index in order],
        dst=[flows.dst[index] for index in order],
        size_bytes=flows.size_bytes[order],
        start_ns=flows.start_ns[order],
        sport=flows.sport[order],
        dport=flows.dport[order],
    )
    for scheme in ("ecmp", "ideal"):
        straight, turned = run(flows, scheme, fabric=fabric), run(shuffled, scheme, fabric=fabric)
        assert turned.fct_ns.tolist() == pytest.approx(straight.fct_ns[order].tolist(), abs=2)


@pytest.mark.slow
@given(traffic=traffics([PAPER]), scheme=st.sampled_from(SCHEMES))
@settings(deadline=None, max_examples=30)
def test_the_same_run_gives_the_same_result(traffic: tuple[Fabric, Flows], scheme: str) -> None:
    _, flows = traffic
    options = SchemeOptions(lag_ns=200_000, stripes=2, moves=True)
    first, second = run(flows, scheme, options), run(flows, scheme, options)
    assert first.fct_ns.tolist() == second.fct_ns.tolist()
    assert (first.path, first.sport) == (second.path, second.sport)


@pytest.mark.slow
def test_no_choice_of_spines_beats_pooled_spines_on_average() -> None:
    """Of one draw this need not hold: a transfer that is slowed down can let several others by."""
    experiment = Experiment(workload=PresetWorkload(requests=300))
    means = {
        scheme: np.mean(
            [run_point(experiment, scheme, 20.0, seed).fct_ns.mean() for seed in experiment.seeds]
        )
        for scheme in SCHEMES
    }
    assert min(means.values()) == means["ideal"]


def test_simultaneous_picks_collide_under_lag_and_part_where_they_are_held_back() -> None:
    size = 1_600_000_000
    flows = table([(f"h{n}", f"h{8 + n}", size, 0, 50_000) for n in range(4)])
    seen = run(flows, "ark")
    blind = run(flows, "ark", SchemeOptions(lag_ns=1_000_000, hold_ns=0))
    held = run(flows, "ark", SchemeOptions(lag_ns=1_000_000))
    assert len(set(seen.path)) == 4
    assert len({path.split(">")[0] for path in blind.path}) < 4
    assert any(">" in path for path in blind.path), "who has lost a race leaves at a segment end"
    assert len(set(held.path)) == 4
    assert held.reserve_ns.tolist() == [1_000_000] * 4
    assert held.fct_ns.max() == pytest.approx(seen.fct_ns.max() + 1_000_000, abs=2)


def test_pinned_flows_stay_where_the_table_puts_them_and_the_rest_is_steered() -> None:
    size = 1_600_000_000
    flows = replace(
        table([(f"h{n}", f"h{8 + n}", size, n, 50_000) for n in range(4)]), path=["2", "2;0", "", ""]
    )
    outcome = run(flows, "ark")
    assert outcome.path[:2] == ["2", "2;0"]
    assert outcome.spine[:2] == ["spine2", ""]
    assert len(set(outcome.path[2:])) == 2
    assert outcome.spine_series.peak[2] >= 2


@pytest.mark.parametrize("size_bytes", [2, 1_000_001, 9_000_000, 30_000_000, 125_000_000])
def test_transfers_in_stripes_over_all_spines_are_as_over_one_pipe(size_bytes: int) -> None:
    fabric = leaf_spine(2, 2, 3)
    flows = table([(f"h{n}", f"h{n + 3}", size_bytes + n % 2, 1000 * n, 50_000) for n in range(3)])
    striped = run(flows, "ark", SchemeOptions(stripes=2), fabric=fabric)
    assert all(path.count(";") == 1 for path in striped.path)
    pooled = run(flows, "ideal", fabric=fabric)
    # A remainder of segments goes through one stripe alone, which has half of the pipe.
    alone_ns = 16 * 2**20 * 8 / 100
    assert striped.fct_ns == pytest.approx(pooled.fct_ns, abs=2 if size_bytes < 3e7 else alone_ns)


def test_a_stripe_of_a_moving_transfer_leaves_its_path_at_a_segment_end() -> None:
    """Three transfers on two spines: when the one that is alone has ended, one of the others moves over."""
    fabric = leaf_spine(2, 2, 4)
    rows = [(f"h{n}", f"h{4 + n}", 2_000_000_000 if n == 0 else 1_600_000_000, n, 50_000) for n in range(3)]
    still = run(table(rows), "ark", fabric=fabric)
    moving = run(table(rows), "ark", SchemeOptions(moves=True), fabric=fabric)
    assert not any(">" in path for path in still.path)
    assert any(">" in path for path in moving.path)
    assert moving.fct_ns.max() < still.fct_ns.max()


TRACE = """
import hashlib, numpy as np
from ark.sim.experiment import Experiment, run_point
from ark.sim.schemes.catalogue import SchemeOptions
from ark.sim.traffic import PresetWorkload
experiment = Experiment(workload=PresetWorkload(requests=15), layers=3,
                        options=SchemeOptions(lag_ns=100_000, stripes=2, moves=True))
for scheme in ("ark", "ideal"):
    result = run_point(experiment, scheme, 25.0, 3)
    print(hashlib.sha256(repr((result.fct_ns.tolist(), result.path, result.sport)).encode()).hexdigest())
"""


@pytest.mark.slow
def test_compiled_and_interpreted_kernels_agree_to_the_nanosecond() -> None:
    def hashes(disabled: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", TRACE],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
        )
        return done.stdout.split()

    compiled = hashes("0")
    assert len(compiled) == 2
    assert compiled == hashes("1")
