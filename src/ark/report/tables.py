"""Results as CSV files (``results.csv``, ``flows/*.csv``) and as rows of the table that a terminal shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from ark.report.looks import look
from ark.report.runs import BASE, Point, Runs
from ark.report.statistics import Estimate
from ark.report.style import percent
from ark.sim.results import RESULT_COLUMNS, Cell, RunResult
from ark.units import format_time
from ark.workload.flow_file import write_flows as write_flow_table

METRICS: Final = {
    "fct_mean_s": "mean FCT",
    "fct_p95_s": "P95 FCT",
    "ttft_mean_s": "mean TTFT",
    "ttft_p95_s": "P95 TTFT",
}
"""What tables show of each scheme and point, by column of ``results.csv``."""

_TEXTS: Final = ("scheme", "engine", "fabric", "ttft_model")
_WHOLE: Final = ("seed", "requests", "peak_flows_per_spine")


def write_results(rows: Sequence[dict[str, Cell]], path: Path) -> None:
    """Write ``results.csv``: one row a run, an empty cell where there is no value."""
    schema = {name: _type_of(name) for name in RESULT_COLUMNS}
    columns = {name: [None if row[name] == "" else row[name] for row in rows] for name in RESULT_COLUMNS}
    pl.DataFrame(columns, schema=schema).write_csv(path)


def _type_of(column: str) -> type[pl.DataType]:
    if column in _TEXTS:
        return pl.String
    return pl.Int64 if column in _WHOLE else pl.Float64


def write_flows(result: RunResult, path: Path) -> None:
    """Write the flow table of one run: its input, the paths and ports taken, and what came out.

    Columns that ARK does not know are kept; one that has the name of a result gives way to it.
    """
    columns: dict[str, Sequence[object]] = {
        "sport": result.sport,
        "path": result.path,
        "fct_ns": result.fct_ns.tolist(),
        "spine": result.spine,
    }
    if result.ecn_marks is not None:
        columns["ecn_marks"] = result.ecn_marks.tolist()
    if result.retransmits is not None:
        columns["retransmits"] = result.retransmits.tolist()
    write_flow_table(result.flows, path, columns=columns)


def flow_file(result: RunResult) -> str:
    """The name of a run's flow table below ``flows/``: ``ark_qps25_seed0.csv``."""
    point = "own-times" if result.qps is None else f"qps{result.qps:g}"
    return f"{result.scheme}_{point}_seed{result.seed}.csv"


def metrics_of(runs: Runs) -> dict[str, str]:
    """The metrics that these runs have: without requests there is no TTFT."""
    return {name: title for name, title in METRICS.items() if runs.has_ttft or name.startswith("fct")}


def headings(runs: Runs) -> list[str]:
    """The columns of :func:`table_rows`."""
    return ["req/s", "load", "scheme", *metrics_of(runs).values()]


def table_rows(runs: Runs, *, joint: str = " ") -> list[list[str]]:
    """Each point's schemes with their metrics over all seeds; an empty row between two points.

    ``joint`` stands between a value and its difference to ECMP; a line break makes a narrow table.
    """
    rows: list[list[str]] = []
    for point in runs.points:
        if rows:
            rows.append([])
        for index, scheme in enumerate(runs.schemes):
            place = [point_cell(point), f"{runs.load(point):.2f}"] if index == 0 else ["", ""]
            cells = [joint.join(metric_cell(runs, scheme, point, column)) for column in metrics_of(runs)]
            rows.append([*place, look(scheme).label, *cells])
    return rows


def point_cell(point: Point) -> str:
    """A point as a cell."""
    return "own" if point is None else f"{point:g}"


def metric_cell(runs: Runs, scheme: str, point: Point, column: str) -> list[str]:
    """A metric's mean over seeds and its difference to ECMP: ``["1.41 s", "−17.6 ±0.5"]``, in %."""
    value = format_time(runs.mean(scheme, point, column).value)
    if scheme == BASE or BASE not in runs.schemes:
        return [value]
    saved = runs.reduction(scheme, point, column)
    margin = f" ±{50 * (saved.high - saved.low):.1f}" if saved.has_interval else ""
    return [value, f"{percent(-saved.value, 1).removesuffix(' %')}{margin}"]


def change(reduction: Estimate) -> str:
    """A reduction as a change, with its interval: ``−27.3 % (−30.1 … −24.0)``."""
    text = percent(-reduction.value, 1)
    if not reduction.has_interval:
        return text
    low, high = (percent(-share, 1).removesuffix(" %") for share in (reduction.high, reduction.low))
    return f"{text} ({low} … {high})"


def interval(estimate: Estimate) -> str:
    """A share with its interval, in words: ``27.3 % (95 % confidence interval 24.0 to 30.1 %)``."""
    text = percent(estimate.value, 1)
    if not estimate.has_interval:
        return text
    low = percent(estimate.low, 1).removesuffix(" %")
    return f"{text} (95 % confidence interval {low} to {percent(estimate.high, 1)})"
