"""The spines of all flows and acknowledgements of the ns-3 reference runs, from their five-tuples alone."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.shared_data import shared_data

from ark.fabric import Fabric, FiveTuple, route, route_flows, route_ports
from ark.fabric.load import load_fabric

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted(path.name for path in (ROOT / "tests" / "data" / "ns3").glob("*.csv"))
FIRST_SPINE = 18


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    path = ROOT / "examples" / "ns3-reference.toml"
    return load_fabric(path.read_text(encoding="utf-8"), path.name)


def check(fabric: Fabric, path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{name: int(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    assert rows
    for row in rows:
        source, target = fabric.nics[row["src"]], fabric.nics[row["dst"]]
        flow = FiveTuple(source.address, target.address, row["sport"], row["dport"])
        there = route(fabric, flow, source, target)
        back = route(fabric, flow.reversed(), target, source)
        assert (FIRST_SPINE + there.index, FIRST_SPINE + back.index) == (row["spine"], row["ack_spine"]), row
        assert there.spine == f"spine{there.index}"


@pytest.mark.parametrize("name", OWN)
def test_every_flow_takes_the_spine_that_it_took_in_ns3(fabric: Fabric, name: str) -> None:
    check(fabric, ROOT / "tests" / "data" / "ns3" / name)


def test_so_does_every_flow_of_the_other_runs(fabric: Fabric) -> None:
    files = sorted(shared_data("ns3").glob("*.csv"))
    assert len(files) >= len(OWN)
    for path in files:
        check(fabric, path)


def test_many_flows_at_once_take_the_same_spines(fabric: Fabric) -> None:
    with (ROOT / "tests" / "data" / "ns3" / "w200_q15__d9000.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    source, target, sport, dport, spine, ack_spine = (
        np.array([int(row[name]) for row in rows])
        for name in ("src", "dst", "sport", "dport", "spine", "ack_spine")
    )
    assert (route_flows(fabric, source, target, sport, dport) + FIRST_SPINE).tolist() == spine.tolist()
    assert (route_flows(fabric, target, source, dport, sport) + FIRST_SPINE).tolist() == ack_spine.tolist()
    for number in range(8):
        nics = fabric.nics[source[number]], fabric.nics[target[number]]
        found = route_ports(fabric, *nics, sport[number : number + 1], dport=100)
        assert found.tolist() == [spine[number] - FIRST_SPINE]
