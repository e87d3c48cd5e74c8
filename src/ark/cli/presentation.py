"""What ``reproduce`` and ``simulate`` share: run an experiment with progress, keep it, show it."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from ark.cli.output import note, print_json, print_table, progress
from ark.report.answer import answer, main_point
from ark.report.claims import judge
from ark.report.looks import look
from ark.report.page import Story, seed_text, warnings
from ark.report.runs import BASE, Point, Runs
from ark.report.statistics import Estimate
from ark.report.style import point_name
from ark.report.tables import headings, metrics_of, table_rows
from ark.report.write import REPORT, Folder
from ark.sim.results import RunResult

WIDE: Final = 110
"""From this width on a value and its difference to ECMP stand on one line."""

TEXT_MAX: Final = 100
"""Longest line of running text."""


def gather(results: Iterator[RunResult], total: int, folder: Folder) -> Runs:
    """Take in all runs as they come, with progress on stderr."""
    runs = Runs()
    with progress(total, "Simulating") as advance:
        for result in results:
            runs.add(result)
            folder.take(result)
            advance(_what(result))
    return runs


def _what(result: RunResult) -> str:
    point = "" if result.qps is None else f" {result.qps:g} requests/s"
    return f"{look(result.scheme).label}{point} seed {result.seed}"


def present(runs: Runs, story: Story, out: Path, *, as_json: bool) -> None:
    """Print what came out: a table and the answer for people, or one JSON object."""
    if as_json:
        print_json(as_object(runs, story, out))
        return
    wide = Console().width >= WIDE
    print_table(
        f"{story.title} ({seed_text(len(runs.seeds))})",
        headings(runs),
        table_rows(runs, joint="  " if wide else "\n"),
        caption=_caption(runs),
    )
    told = answer(runs, main_point(runs))
    _print_text(told.verdict)
    for sentence in told.sentences:
        _print_text(sentence, bullet="- ")
    for warning in warnings(runs):
        note(f"Note: {warning}")
    print(f"\nReport: {out / REPORT}")


def _caption(runs: Runs) -> str | None:
    if BASE not in runs.schemes or len(runs.schemes) == 1:
        return None
    margin = "; ± half of its 95 % confidence interval" if len(runs.seeds) > 1 else ""
    return f"%: difference of the means over all seeds to ECMP{margin}"


def _print_text(text: str, bullet: str = "") -> None:
    width = min(TEXT_MAX, Console().width)
    print(textwrap.fill(text, width, initial_indent=bullet, subsequent_indent=" " * len(bullet)))


def as_object(runs: Runs, story: Story, out: Path) -> dict[str, object]:
    """Everything that a program may want to know, under names that stay."""
    told = answer(runs, main_point(runs))
    claims = [] if story.table1 is None else judge(runs, story.table1)
    result: dict[str, object] = {
        "out": str(out),
        "report": str(out / REPORT),
        "answer": {
            "verdict": told.verdict,
            "sentences": told.sentences,
            "at": point_name(told.point, runs.load(told.point)),
            "saving_max_share": runs.saving_max(BASE, told.point)
            if runs.has_ttft and BASE in runs.schemes
            else None,
        },
        "warnings": warnings(runs),
        "reductions": _reductions(runs),
        "results": runs.rows(),
        "config": story.config,
    }
    if story.table1 is not None:
        result["claims"] = [
            {"section": c.section, "claim": c.claim, "paper": c.paper, "ours": c.ours, "ark": c.ark}
            | {"verdict": c.verdict, "why": c.why}
            for c in claims
        ]
        result["table1"] = story.table1.as_json()
    return result


def _reductions(runs: Runs) -> list[dict[str, object]]:
    if BASE not in runs.schemes:
        return []
    return [
        _reduction(scheme, point, column, runs.reduction(scheme, point, column))
        for point in runs.points
        for scheme in runs.schemes
        if scheme != BASE
        for column in metrics_of(runs)
    ]


def _reduction(scheme: str, point: Point, column: str, saved: Estimate) -> dict[str, object]:
    return {
        "scheme": scheme,
        "qps": point,
        "metric": column,
        "share": saved.value,
        "low": saved.low,
        "high": saved.high,
        "p10": saved.p10,
        "p50": saved.p50,
        "p90": saved.p90,
        "seeds": saved.seeds,
    }


def loads(runs: Runs) -> str:
    """The load of every point, for people."""
    return "; ".join(point_name(point, runs.load(point)) for point in runs.points)


def listed(values: Sequence[float]) -> str:
    """Numbers as a flag takes them."""
    return ",".join(f"{value:g}" for value in values)
