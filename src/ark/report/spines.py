"""Figure 3: how many transfers each spine carries over time, one panel a scheme on one scale of colours."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ark.report.looks import look
from ark.report.runs import Point, Runs
from ark.report.style import drawn, point_name
from ark.sim.results import SpineSeries

Counts = NDArray[np.int32]

COLOURS: Final = "magma_r"
"""Pale where a spine is idle, dark where it is crowded, in even steps of lightness (also on a grey print)."""

_COLUMNS_MAX: Final = 1200
_NAMED_MAX: Final = 16  # spines whose names fit beside a panel


def spines_figure(runs: Runs, point: Point) -> Figure:
    """Active transfers per spine over time at ``point``, of the first seed; pooled spines have no panel."""
    shown = [scheme for scheme in runs.schemes if runs.series[scheme, point].peak.any()]

    def draw(figure: Figure) -> None:
        top = max((int(runs.series[scheme, point].peak.max()) for scheme in shown), default=1)
        end_s = max((float(runs.series[scheme, point].time_s[-1]) for scheme in shown), default=1.0)
        panels = figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
        image = None
        for axes, scheme in zip(panels, shown, strict=False):
            image = _draw_panel(axes, runs.series[scheme, point], top, end_s)
            axes.set_title(look(scheme).label)
            axes.set_title(_peaks(runs, scheme, point), loc="right", fontsize=8, fontweight="normal", pad=5)
        emulated = runs.rows()[0]["engine"] == "emulated"
        panels[-1].set_xlabel("seconds" if emulated else "simulated seconds")
        if image is None:
            panels[-1].set_title("No scheme of this run uses single spines.")
        else:
            bar = figure.colorbar(image, ax=list(panels), pad=0.02, aspect=10 * len(shown))
            bar.set_label("transfers on the spine", labelpad=8)
            bar.outline.set_visible(False)
            bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        figure.suptitle(
            f"Transfers on each spine, {point_name(point, runs.load(point))}, seed {runs.seeds[0]}",
            x=0.01,
            ha="left",
            fontsize=9,
            color="#555555",
        )

    return drawn(7.2, 0.9 + 1.25 * max(1, len(shown)), draw)


def _peaks(runs: Runs, scheme: str, point: Point) -> str:
    own = int(runs.series[scheme, point].peak.max())
    if len(runs.seeds) == 1:
        return f"at most {own} at once on one spine"
    peak = runs.mean(scheme, point, "peak_flows_per_spine")
    return (
        f"at most {own} at once on one spine "
        f"({len(runs.seeds)} seeds: median {peak.p50:.0f}, middle 80 % {peak.p10:.0f} to {peak.p90:.0f})"
    )


def _draw_panel(axes: Axes, series: SpineSeries, top: int, end_s: float) -> AxesImage:
    count = len(series.spines)
    step_s = float(series.time_s[1] - series.time_s[0]) if series.time_s.size > 1 else end_s
    image = axes.imshow(
        _binned(series.active),
        aspect="auto",
        interpolation="nearest",
        cmap=COLOURS,
        vmin=0,
        vmax=top,
        extent=(float(series.time_s[0]), float(series.time_s[-1]) + step_s, count - 0.5, -0.5),
    )
    axes.set_xlim(0, end_s)
    axes.grid(visible=False)
    if count <= _NAMED_MAX:
        axes.set_yticks(range(count), series.spines)
        axes.hlines(np.arange(count - 1) + 0.5, 0, end_s, color="white", linewidth=1.2)
    else:
        axes.set_ylabel(f"{count} spines")
    axes.tick_params(axis="y", length=0)
    return image


def _binned(active: Counts) -> Counts:
    """At most so many columns, each the maximum of what it covers: print resolution loses no peak."""
    width = active.shape[1]
    if width <= _COLUMNS_MAX:
        return active
    edges = np.linspace(0, width, _COLUMNS_MAX, endpoint=False).astype(np.int64)
    return np.maximum.reduceat(active, edges, axis=1)
