"""Flow by flow against SimAI's ns-3: micro cases to the nanosecond, the scaled workload in distribution."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.shared_data import shared_data

from ark.fabric.load import load_fabric
from ark.fabric.topology import Fabric
from ark.sim.packet.engine import PacketEngine
from ark.sim.packet.settings import preset
from ark.sim.schemes.ecmp import Ecmp
from ark.sim.schemes.scheme import Transfer

ROOT = Path(__file__).resolve().parents[3]
LONE_100_MB_NS = {9000: 8_050_636, 1000: 8_404_268}


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    path = ROOT / "examples" / "ns3-reference.toml"
    return load_fabric(path.read_text(encoding="utf-8"), path.name)


def transfers_of(fabric: Fabric, path: Path) -> tuple[list[Transfer], NDArray[np.int64]]:
    """The flows of a reference file in order of start, and what ns-3 measured."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{name: int(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    rows.sort(key=lambda row: (row["start_ns"], row["id"]))
    transfers = [
        Transfer(
            index,
            fabric.nics[row["src"]],
            fabric.nics[row["dst"]],
            row["size"],
            row["start_ns"],
            row["sport"],
            row["dport"],
        )
        for index, row in enumerate(rows)
    ]
    return transfers, np.array([row["fct_ns"] for row in rows])


def run(fabric: Fabric, transfers: list[Transfer], payload: int, seed: int = 0) -> NDArray[np.int64]:
    settings = replace(preset("simai"), payload_bytes=payload)
    return PacketEngine(fabric, transfers, Ecmp(fabric, transfers), settings, seed=seed).run().fct_ns


@pytest.mark.slow
@pytest.mark.parametrize("payload", [9000, 1000])
def test_a_lone_flow_takes_what_it_takes_in_ns3(fabric: Fabric, payload: int) -> None:
    lone = Transfer(0, fabric.nics[0], fabric.nics[8], 100_000_000, 0, 10_003, 100)
    assert run(fabric, [lone], payload).tolist() == [LONE_100_MB_NS[payload]]


@pytest.mark.slow
@pytest.mark.parametrize("payload", [9000, 1000])
@pytest.mark.parametrize(
    "case",
    [
        "m1_single",
        "m2_collide2",
        "m2b_collide2_uneven",
        "m3_four_spines",
        "m4_incast4",
        "m6_late",
        "m8_same_src",
    ],
)
def test_without_marks_every_flow_agrees_to_the_nanosecond(fabric: Fabric, case: str, payload: int) -> None:
    transfers, reference = transfers_of(fabric, shared_data(f"ns3/{case}__d{payload}.csv"))
    assert run(fabric, transfers, payload).tolist() == reference.tolist()


@pytest.mark.slow
def test_with_marks_the_distribution_agrees(fabric: Fabric) -> None:
    transfers, reference = transfers_of(fabric, shared_data("ns3/m5_eight_onespine__d9000.csv"))
    # One draw of ns-3 among twenty of ours: 8 equal flows, marked at random, end at different times.
    runs = np.array([run(fabric, transfers, 9000, seed) for seed in range(20)])
    assert runs.mean() == pytest.approx(reference.mean(), rel=0.03)
    assert runs.mean(axis=1).min() < reference.mean() < runs.mean(axis=1).max()
    spread = runs.max(axis=1) / runs.min(axis=1)
    assert spread.mean() == pytest.approx(reference.max() / reference.min(), abs=0.1)
    assert runs.max(axis=1).mean() == pytest.approx(reference.max(), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("payload", [9000, 1000])
@pytest.mark.parametrize("workload", ["w200_q5", "w200_q15"])
def test_the_scaled_workload_agrees(fabric: Fabric, workload: str, payload: int) -> None:
    transfers, reference = transfers_of(fabric, shared_data(f"ns3/{workload}__d{payload}.csv"))
    measured = run(fabric, transfers, payload)
    error = np.abs(measured / reference - 1)
    assert np.median(error) < 0.001
    assert np.percentile(error, 95) < 0.02
    assert measured.mean() == pytest.approx(reference.mean(), rel=0.003)
