import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.report.synthetic import run

from ark.report.runs import Runs
from ark.report.tables import change, flow_file, headings, table_rows, write_flows, write_results
from ark.sim.results import RESULT_COLUMNS


def test_results_have_the_columns_of_the_contract_and_empty_cells(one_point: Runs, tmp_path: Path) -> None:
    write_results(one_point.rows(), tmp_path / "results.csv")
    rows = read(tmp_path / "results.csv")
    assert tuple(rows[0]) == RESULT_COLUMNS
    assert len(rows) == 20
    assert {row["qps"] for row in rows} == {""}
    assert {row["peak_flows_per_spine"] for row in rows if row["scheme"] == "ideal"} == {""}
    assert all(int(row["peak_flows_per_spine"]) > 0 for row in rows if row["scheme"] == "ecmp")


def test_numbers_in_results_are_exact(tmp_path: Path) -> None:
    row = run("ark", 25.0, 3).row()
    write_results([row], tmp_path / "results.csv")
    written = read(tmp_path / "results.csv")[0]
    assert float(written["fct_mean_s"]) == row["fct_mean_s"]
    assert int(written["seed"]) == 3


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_flow_table_keeps_columns_that_ark_does_not_know(tmp_path: Path) -> None:
    result = run("ark", 25.0, 0)
    write_flows(result, tmp_path / "flows.csv")
    rows = read(tmp_path / "flows.csv")
    assert set(rows[0]) == {
        "id", "src", "dst", "size_bytes", "start_ns", "sport", "dport", "path", "fct_ns", "spine", "tenant",
    }  # fmt: skip
    assert rows[7]["tenant"] == "a,b"
    assert int(rows[7]["fct_ns"]) == result.fct_ns[7]


def test_a_given_column_does_not_hide_a_result(tmp_path: Path) -> None:
    result = run("ark", 25.0, 0)
    given = replace(result, flows=replace(result.flows, extra={"fct_ns": ["1"] * len(result.flows)}))
    write_flows(given, tmp_path / "flows.csv")
    assert [int(row["fct_ns"]) for row in read(tmp_path / "flows.csv")] == result.fct_ns.tolist()


def test_the_packet_engine_adds_its_columns(tmp_path: Path) -> None:
    result = run("ark", 25.0, 0)
    marks = np.arange(len(result.flows))
    write_flows(replace(result, ecn_marks=marks, retransmits=marks * 0), tmp_path / "flows.csv")
    row = read(tmp_path / "flows.csv")[5]
    assert (row["ecn_marks"], row["retransmits"]) == ("5", "0")


@pytest.mark.parametrize(
    ("qps", "name"),
    [(25.0, "ark_qps25_seed0.csv"), (2.5, "ark_qps2.5_seed0.csv"), (None, "ark_own-times_seed0.csv")],
)
def test_flow_files_are_named_by_run(qps: float | None, name: str) -> None:
    assert flow_file(run("ark", qps, 0)) == name


def test_table_shows_each_point_and_scheme_once(sweep: Runs) -> None:
    rows = table_rows(sweep)
    assert headings(sweep) == ["req/s", "load", "scheme", "mean FCT", "P95 FCT", "mean TTFT", "P95 TTFT"]
    assert [row[0] for row in rows if row and row[0]] == ["1", "5", "25", "30"]
    assert [row[2] for row in rows[:5]] == ["ECMP", "round robin", "ARK (paper)", "ARK", "ideal"]
    assert rows[0][3].endswith("ms")  # ECMP is what others are compared with
    assert "%" not in rows[0][3]
    assert "±" in rows[3][3]


def test_a_change_is_a_reduction_with_its_sign_turned(sweep: Runs) -> None:
    saved = sweep.reduction("ark", 25.0, "fct_mean_s")
    assert change(saved).startswith(f"−{100 * saved.value:.1f} %")
