"""What TTFT is made of under each scheme: one bar a scheme, one piece a part."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ark.report.looks import PARTS, look
from ark.report.runs import Point, Runs
from ark.report.style import drawn, point_name


def breakdown_figure(runs: Runs, point: Point) -> Figure:
    """Mean TTFT of each scheme at ``point``, by its parts."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _draw_bars(axes, runs, point)
        axes.set_title(f"What the mean TTFT is made of, {point_name(point, runs.load(point))}")
        figure.legend(loc="outside lower center", ncols=3, handlelength=1.6)

    return drawn(7.2, 1.6 + 0.36 * len(runs.schemes), draw)


def _draw_bars(axes: Axes, runs: Runs, point: Point) -> None:
    bars = {scheme: runs.parts_s(scheme, point) for scheme in runs.schemes}
    shown = [part for part in PARTS if any(parts[part] > 0 for parts in bars.values())]
    starts = np.zeros(len(bars))
    for part in shown:
        widths = np.array([parts[part] for parts in bars.values()])
        axes.barh(
            range(len(bars)),
            widths,
            left=starts,
            height=0.66,
            color=PARTS[part].colour,
            hatch=PARTS[part].hatch,
            edgecolor="white",
            linewidth=0.6,
            label=PARTS[part].label,
        )
        starts = starts + widths
    for row, total_s in enumerate(starts):
        axes.annotate(
            f"{total_s:.3g} s",
            (total_s, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(bars)), [look(scheme).label for scheme in bars])
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlim(left=0)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("seconds, mean over all requests and seeds")
