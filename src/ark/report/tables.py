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


def flow_frame(result: RunResult) -> pl.DataFrame:
    """The flow table of one run: the columns of its input, the path and port taken, and what came out.

    Columns of the input that ARK does not know stand last; one that has the name of a result gets ``_given``
    behind it.
    """
    flows = result.flows
    columns: dict[str, object] = {
        "id": flows.id,
        "src": flows.src,
        "dst": flows.dst,
        "size_bytes": flows.size_bytes,
        "start_ns": flows.start_ns,
        "sport": result.sport,
        "dport": flows.dport,
        "path": result.path,
        "fct_ns": result.fct_ns,
        "spine": result.spine,
    }
    if result.ecn_marks is not None:
        columns["ecn_marks"] = result.ecn_marks
    if result.retransmits is not None:
        columns["retransmits"] = result.retransmits
    known = {*columns, "ecn_marks", "retransmits"}
    columns |= {f"{name}_given" if name in known else name: cells for name, cells in flows.extra.items()}
    return pl.DataFrame(columns)


def write_flows(result: RunResult, path: Path) -> None:
    """Write the flow table of one run."""
    flow_frame(result).write_csv(path)


def flow_file(result: RunResult) -> str:
    """The name of a run's flow table below ``flows/``: ``ark_qps25_seed0.csv``."""
    point = "own-times" if result.qps is None else f"qps{result.qps:g}"
    return f"{result.scheme}_{point}_seed{result.seed}.csv"


def metrics_of(runs: Runs) -> dict[str, str]:
    """The metrics that these runs have: without requests there is no TTFT."""
    return {name: title for name, title in METRICS.items() if runs.has_ttft or name.startswith("fct")}


def headings(runs: Runs) -> list[str]:
    """The columns of :func:`table_rows`."""
    return ["requests/s", "load", "scheme", *metrics_of(runs).values()]


def table_rows(runs: Runs) -> list[list[str]]:
    """Each point's schemes with their metrics over all seeds; an empty row between two points."""
    rows: list[list[str]] = []
    for point in runs.points:
        if rows:
            rows.append([])
        for index, scheme in enumerate(runs.schemes):
            place = [point_cell(point), f"{runs.load(point):.2f}"] if index == 0 else ["", ""]
            cells = [metric_cell(runs, scheme, point, column) for column in metrics_of(runs)]
            rows.append([*place, look(scheme).label, *cells])
    return rows


def point_cell(point: Point) -> str:
    """A point as a cell."""
    return "own" if point is None else f"{point:g}"


def metric_cell(runs: Runs, scheme: str, point: Point, column: str) -> str:
    """A metric's mean over seeds and its difference to ECMP: ``1.41 s  −17.6 % (−18.0 … −17.1)``."""
    value = format_time(runs.mean(scheme, point, column).value)
    if scheme == BASE or BASE not in runs.schemes:
        return value
    return f"{value}  {change(runs.reduction(scheme, point, column))}"


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
