"""The report as one HTML page that needs nothing else: figures inside, no script, no outside address.

Everything that comes from files or flags passes through Jinja's escaping; the template marks nothing as safe.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from ark import __version__
from ark.report import paper
from ark.report.answer import answer
from ark.report.claims import HELD, NOT_HELD, OPEN, Judged, judge
from ark.report.engines import compare, differences, engine_cells
from ark.report.looks import look
from ark.report.runs import BASE, Point, Runs
from ark.report.style import point_name, svg
from ark.report.table1 import Table1
from ark.report.tables import change, headings, metrics_of, point_cell
from ark.units import format_time

SEEDS_ENOUGH: Final = 10
"""Fewer seeds than this get a remark: an interval out of a handful of draws is a rough one."""


_UNIT_SPACE: Final = re.compile(r"(?<=[0-9]) (?=%|[nµm]?s\b|[kMGT]?(?:B|bit/s)\b)")


@dataclass(frozen=True, slots=True)
class Story:
    """What the page says besides results: what was run, and how to run it again."""

    title: str
    subtitle: str
    facts: Sequence[tuple[str, str]]
    command: str
    config: dict[str, object]
    table1: Table1 | None = None
    """With it the page judges the paper's claims; without it the paper is not mentioned."""

    remarks: Sequence[str] = ()
    """What else a reader must know before using a number."""

    repeatable: str = "The same versions and seeds give the same numbers."

    twin: Runs | None = None
    """The same traffic at flow level, where the runs are at packet level: the page compares them."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One figure with what it shows in words."""

    figure: Figure
    title: str
    caption: str
    alt: str


def page(runs: Runs, story: Story, figures: Sequence[Shown]) -> str:
    """The text of ``report.html``."""
    environment = Environment(
        loader=PackageLoader("ark.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=False
    )
    environment.filters["glued"] = glued
    with_paper = story.table1 is not None
    claims = [] if story.table1 is None else judge(runs, story.table1)
    return environment.get_template("report.html.j2").render(
        title=story.title,
        subtitle=story.subtitle,
        answer=answer(runs, runs.main_point),
        warnings=[*story.remarks, *warnings(runs)],
        facts=story.facts,
        schemes=[look(scheme) for scheme in runs.schemes],
        seed_text=seed_text(len(runs.seeds)),
        many_seeds=len(runs.seeds) > 1,
        headings=headings(runs),
        main_rows=_rows(runs, [runs.main_point]),
        all_rows=_rows(runs, runs.points) if len(runs.points) > 1 else [],
        figures=[_embedded(shown) for shown in figures],
        meaning=_meaning(runs),
        engines=[] if story.twin is None else engine_cells(compare(runs, story.twin, with_paper=with_paper)),
        differences=[] if story.twin is None else differences(runs, story.twin),
        with_paper=with_paper,
        claims=claims,
        claims_summary=_summary(claims),
        table1=[] if story.table1 is None else story.table1.cells(),
        paper_machine=paper.MACHINE,
        machine="" if story.table1 is None else story.table1.machine,
        command=story.command,
        repeatable=story.repeatable,
        config=json.dumps(story.config, indent=2, ensure_ascii=False, default=str),
        version=__version__,
    )


def glued(text: str) -> str:
    """The text with no line break between a number and its unit."""
    return _UNIT_SPACE.sub("\N{NO-BREAK SPACE}", text)


def warnings(runs: Runs) -> list[str]:
    """What a reader must know before using a number: from the runs, and about loads and seeds."""
    texts = list(runs.warnings)
    loads = {point: runs.load(point) for point in runs.points}
    over = [point_name(point, load) for point, load in loads.items() if 1 < load < inf]
    if over:
        texts.append(
            f"More is offered than the fabric carries at {', '.join(over)}: times there grow with the "
            "length of the run, so only differences between schemes mean something."
        )
    if inf in loads.values():
        texts.append(
            "All transfers start at once: times grow with their number, so only differences between schemes "
            "mean something."
        )
    seeds = len(runs.seeds)
    if seeds == 1:
        texts.append(
            "One seed: a single draw of the traffic says little, reductions of single draws differ by many "
            "points. Repeat with --seeds 10 or more."
        )
    elif seeds < SEEDS_ENOUGH:
        texts.append(
            f"{seeds} seeds: the confidence intervals are rough; --seeds {SEEDS_ENOUGH} gives better ones."
        )
    return texts


def seed_text(seeds: int) -> str:
    """The number of seeds for people: ``10 seeds``."""
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def _rows(runs: Runs, points: Sequence[Point]) -> list[dict[str, object]]:
    return [
        {
            "first": index == 0,
            "point": point_cell(point) if index == 0 else "",
            "load": f"{runs.load(point):.2f}" if index == 0 else "",
            "scheme": look(scheme).label,
            "cells": [_cell(runs, scheme, point, column) for column in metrics_of(runs)],
        }
        for point in points
        for index, scheme in enumerate(runs.schemes)
    ]


def _cell(runs: Runs, scheme: str, point: Point, column: str) -> dict[str, str]:
    value = format_time(runs.mean(scheme, point, column).value)
    if scheme == BASE or BASE not in runs.schemes:
        return {"value": value, "change": ""}
    return {"value": value, "change": change(runs.reduction(scheme, point, column))}


def _embedded(shown: Shown) -> dict[str, str]:
    data = base64.b64encode(svg(shown.figure).encode()).decode()
    return {"data": data, "title": shown.title, "caption": shown.caption, "alt": shown.alt}


def _summary(claims: Sequence[Judged]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    said = [f"{counts[verdict]} {verdict}" for verdict in (HELD, NOT_HELD, OPEN) if counts[verdict]]
    return f"Of {len(claims)} claims: {', '.join(said)}." if said else ""


def _meaning(runs: Runs) -> list[str]:
    rows = runs.rows()
    texts = [_ENGINES.get(str(rows[0]["engine"]), "")]
    if len(runs.seeds) > 1:
        texts.append(
            "A confidence interval says how well the mean over all seeds is known. A single hour of traffic "
            "scatters more than that: see the thin lines of the figures."
        )
    if rows[0]["ttft_model"] == "additive":
        texts.append(
            "TTFT is the sum of prefill, transfer and first decode step, as in the paper: no request waits "
            "for a prefill GPU. Where GPUs are the bottleneck, ark simulate --ttft fifo shows the "
            "queue, and the network's share shrinks."
        )
    if "ark-paper" in runs.schemes:
        texts.append(
            "The paper's ARK keeps one reservation a spine for the whole fabric. With more transfers at once "
            "than spines, and so with more than two leaves nearly always, it falls back to a random path; "
            "ARK as built here counts what each link carries instead."
        )
    if "ideal" in runs.schemes:
        texts.append(
            "What is left between “ideal” and no waiting at all is not a matter of paths: it takes more "
            "capacity, fewer bytes, or better placement of prefill and decode."
        )
    return [text for text in texts if text]


_ENGINES: Final = {
    "flow": "This is a simulation at flow level: transfers on one link share its rate fairly at each moment. "
    "It knows no packets: no loss, no pauses, no ramp-up of congestion control. It is exact about who shares "
    "which link and when, and that is what the choice of paths changes.",
    "emulated": "Bytes, sockets, agents and the kernel's ECMP were real; prefill and decode were times from "
    "a table, and all of it shared the cores of one machine. Rates and sizes were divided by one number, "
    "delays were not. How switches and network cards queue, mark and pause was not tried.",
    "packet": "This is a simulation packet by packet, with congestion control, ECN marks and pauses.",
}
