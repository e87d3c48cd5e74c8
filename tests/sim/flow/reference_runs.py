"""The results of SimAI's ns-3 in tests/data/ns3, as flow tables pinned to the spines that ns-3 chose."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ark.workload.flows import Flows

FOLDER = Path(__file__).resolve().parents[2] / "data" / "ns3"
FIRST_SPINE = 18


def reference_run(name: str) -> tuple[Flows, NDArray[np.int64]]:
    """The flows of one run, and their FCT in ns."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = {column: np.array([int(row[column]) for row in rows]) for column in rows[0]}
    flows = Flows(
        id=[row["id"] for row in rows],
        src=[f"h{row['src']}" for row in rows],
        dst=[f"h{row['dst']}" for row in rows],
        size_bytes=numbers["size"],
        start_ns=numbers["start_ns"],
        sport=numbers["sport"].astype(np.int32),
        dport=numbers["dport"].astype(np.int32),
        path=[str(spine - FIRST_SPINE) for spine in numbers["spine"]],
    )
    return flows, numbers["fct_ns"]
