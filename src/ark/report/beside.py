"""Emulated beside simulated: the same transfers with real bytes and as fluids."""

from typing import Final

import numpy as np
from matplotlib.figure import Figure

from ark.report.looks import look
from ark.report.runs import BASE, Point, Runs
from ark.report.style import drawn, percent
from ark.sim.results import Cell
from ark.units import format_time

METRICS: Final = {"fct_mean_s": "mean FCT", "fct_p95_s": "P95 FCT"}
_WIDTH: Final = 0.38


def beside_rows(runs: Runs, twin: Runs) -> list[dict[str, Cell]]:
    """For each load and scheme: mean and P95 of FCT emulated and simulated, and both reductions."""
    rows: list[dict[str, Cell]] = []
    for point in runs.points:
        for scheme in runs.schemes:
            row: dict[str, Cell] = {"qps": "" if point is None else point, "scheme": scheme}
            for name, level in (("emulated", runs), ("simulated", twin)):
                for column in METRICS:
                    row[f"{name}_{column}"] = level.mean(scheme, point, column).value
                    if BASE in runs.schemes and scheme != BASE:
                        row[f"{name}_{column.removesuffix('_s')}_reduction_share"] = level.reduction(
                            scheme, point, column
                        ).value
            rows.append(row)
    return rows


def beside_sentences(runs: Runs, twin: Runs) -> list[str]:
    """The same in words, one sentence a load and scheme."""
    told = []
    for point in runs.points:
        for scheme in runs.schemes:
            real, fluid = (level.mean(scheme, point, "fct_mean_s").value for level in (runs, twin))
            longer = percent(abs(real / fluid - 1), 1)
            side = "longer" if real >= fluid else "shorter"
            text = (
                f"{look(scheme).label}{'' if point is None else f' at {point:g} requests/s'}: mean FCT "
                f"{format_time(real)} emulated, {format_time(fluid)} simulated ({longer} {side})"
            )
            if BASE in runs.schemes and scheme != BASE:
                saved = [level.reduction(scheme, point, "fct_mean_s").value for level in (runs, twin)]
                text += (
                    f"; lower than ECMP by {percent(saved[0], 1)} emulated, {percent(saved[1], 1)} simulated"
                )
            told.append(f"{text}.")
    return told


def beside_figure(runs: Runs, twin: Runs, point: Point) -> Figure:
    """Two bars a scheme: emulated, and simulated at flow level."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(METRICS), squeeze=False)[0]
        places = np.arange(len(runs.schemes))
        for axes, (column, title) in zip(panels, METRICS.items(), strict=True):
            for side, (name, level, hatch) in enumerate(
                (("emulated", runs, ""), ("simulated", twin, "////"))
            ):
                values = [level.mean(scheme, point, column).value for scheme in runs.schemes]
                axes.bar(
                    places + (side - 0.5) * _WIDTH,
                    values,
                    _WIDTH,
                    color=[look(scheme).colour for scheme in runs.schemes],
                    edgecolor="white",
                    hatch=hatch,
                    alpha=1.0 if side == 0 else 0.55,
                    label=name,
                )
            axes.set_xticks(places, [look(scheme).label for scheme in runs.schemes])
            axes.set_title(f"{title}, seconds")
        panels[0].text(
            0.0, -0.22, "plain: emulated; hatched: simulated", transform=panels[0].transAxes, fontsize=8
        )

    return drawn(7.2, 2.9, draw)
