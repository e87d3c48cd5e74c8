"""Figures 2 and 4: completion times, or times to first token, against load; or at the one load that ran."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ark.report.looks import look
from ark.report.runs import BASE, QUANTILES, Point, Runs
from ark.report.style import drawn, legend_above, percent, plot_scheme, point_name, remark

STATISTICS: Final = {"mean_s": "mean", "p95_s": "P95"}
NAMES: Final = {"fct": "FCT", "ttft": "TTFT"}

TICK_ROOM_INCH: Final = 0.12
"""Beside each panel: half of a tick's label hangs over its end, and the layout leaves no room for that."""

PaperPoints = Mapping[str, Mapping[float, float]]
"""Reductions that the paper states: column of ``results.csv`` -> QPS -> share."""


def times_figure(runs: Runs, metric: str, paper: PaperPoints | None = None) -> Figure:
    """Figure 2 (``metric`` "fct") or 4 ("ttft"): curves over load, or one load's distribution and means."""
    if len(runs.points) == 1:
        return _one_point_figure(runs, metric)
    return _sweep_figure(runs, metric, paper or {})


def _sweep_figure(runs: Runs, metric: str, paper: PaperPoints) -> Figure:
    others = [scheme for scheme in runs.schemes if scheme != BASE]
    compares = BASE in runs.schemes and bool(others)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(2 if compares else 1, 2, sharex=True, squeeze=False)
        for column, (statistic, name) in enumerate(STATISTICS.items()):
            top: Axes = grid[0, column]
            _draw_times(top, runs, f"{metric}_{statistic}")
            top.set_title(f"{name} {NAMES[metric]}")
            if compares:
                bottom: Axes = grid[1, column]
                _draw_reductions(bottom, runs, others, f"{metric}_{statistic}", paper)
                bottom.set_title(f"{name} {NAMES[metric]}: lower than with ECMP by")
            grid[-1, column].set_xlabel("requests per second (below: offered load)")
            _label_points(grid[-1, column], runs)
        grid[0, 0].set_ylabel("seconds")
        legend_above(figure, *grid[:, 0])
        if len(runs.seeds) > 1:
            remark(figure, _marks(len(runs.seeds), bands=True))

    return drawn(7.2, 5.6 if compares else 3.2, draw)


def _marks(seeds: int, *, bands: bool) -> str:
    return (
        f"{'Bands and thick' if bands else 'Thick'} lines: 95 % confidence interval over {seeds} seeds. "
        "Thin lines: 10th to 90th percentile of single seeds."
    )


def _draw_times(axes: Axes, runs: Runs, column: str) -> None:
    for scheme in runs.schemes:
        means = [runs.mean(scheme, point, column) for point in runs.points]
        plot_scheme(axes, scheme, _places(runs), [mean.value for mean in means])
        if len(runs.seeds) > 1:
            axes.fill_between(
                _places(runs),
                [mean.low for mean in means],
                [mean.high for mean in means],
                color=look(scheme).colour,
                alpha=0.15,
                linewidth=0,
            )
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_reductions(axes: Axes, runs: Runs, others: list[str], column: str, paper: PaperPoints) -> None:
    places = _places(runs)
    step = float(np.min(np.diff(places))) * 0.09
    for index, scheme in enumerate(others):
        x = places + (index - (len(others) - 1) / 2) * step
        estimates = [runs.reduction(scheme, point, column) for point in runs.points]
        plot_scheme(axes, scheme, x, [estimate.value for estimate in estimates])
        if len(runs.seeds) > 1:
            colour = look(scheme).colour
            axes.vlines(
                x, [e.p10 for e in estimates], [e.p90 for e in estimates], color=colour, linewidth=0.8
            )
            axes.vlines(
                x, [e.low for e in estimates], [e.high for e in estimates], color=colour, linewidth=2.8
            )
    quoted = {qps: share for qps, share in paper.get(column, {}).items() if qps in runs.points}
    if quoted:
        _draw_quoted(axes, quoted)
    axes.axhline(0, color="#555555", linewidth=0.8)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _draw_quoted(axes: Axes, quoted: Mapping[float, float]) -> None:
    axes.plot(
        list(quoted),
        list(quoted.values()),
        linestyle="none",
        marker="*",
        markersize=11,
        markerfacecolor="white",
        markeredgecolor="#111111",
        markeredgewidth=1.1,
        label="the paper's text",
        zorder=5,
    )


def _label_points(axes: Axes, runs: Runs) -> None:
    labels = [f"{point:g}\n{runs.load(point):.2f}" for point in runs.points if point is not None]
    axes.set_xticks(_places(runs), labels)


def _places(runs: Runs) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([0.0 if point is None else point for point in runs.points])


def _one_point_figure(runs: Runs, metric: str) -> Figure:
    point = runs.points[0]

    def draw(figure: Figure) -> None:
        figure.set_layout_engine("constrained", w_pad=TICK_ROOM_INCH)
        widths = [1.15, 1, 1] if metric == "fct" else [1, 1]
        panels = list(figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0])
        if metric == "fct":
            _draw_distribution(panels[0], runs, point)
        for index, (axes, (statistic, name)) in enumerate(zip(panels[-2:], STATISTICS.items(), strict=True)):
            _draw_dots(axes, runs, point, f"{metric}_{statistic}")
            axes.set_title(f"{name} {NAMES[metric]}")
            if index:
                axes.tick_params(labelleft=False)
        figure.suptitle(point_name(point, runs.load(point)), x=0.01, ha="left", fontsize=9, color="#555555")
        if len(runs.seeds) > 1:
            remark(figure, _marks(len(runs.seeds), bands=False))

    return drawn(8.4 if metric == "fct" else 7.2, 1.8 + 0.3 * len(runs.schemes), draw)


def _draw_distribution(axes: Axes, runs: Runs, point: Point) -> None:
    """Share of transfers that take longer than the time on the x axis; on a log axis the tail is readable."""
    for scheme in runs.schemes:
        plot_scheme(axes, scheme, runs.fct_quantiles_s(scheme, point)[:-1], 1 - QUANTILES[:-1], every=25)
    axes.set_yscale("log")
    axes.set_yticks([1, 0.5, 0.1, 0.05, 0.01], ["100 %", "50 %", "10 %", "5 %", "1 %"])
    axes.yaxis.minorticks_off()
    axes.set_ylim(0.005, 1.1)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")
    axes.set_title("transfers that take longer than")


def _draw_dots(axes: Axes, runs: Runs, point: Point, column: str) -> None:
    """One row a scheme: the mean over seeds with its value, its interval, and the spread of single seeds."""
    base = runs.mean(BASE, point, column).value if BASE in runs.schemes else None
    for row, scheme in enumerate(runs.schemes):
        mean = runs.mean(scheme, point, column)
        if mean.has_interval:
            axes.hlines(row, mean.p10, mean.p90, color=look(scheme).colour, linewidth=0.8)
            axes.hlines(row, mean.low, mean.high, color=look(scheme).colour, linewidth=2.8)
        plot_scheme(axes, scheme, [mean.value], [row], size=6)
        change = "" if base is None or scheme == BASE else f" ({percent(mean.value / base - 1, 1)})"
        axes.annotate(
            f"{mean.value:.3g} s{change}",
            (mean.value, row),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(runs.schemes)), [look(scheme).label for scheme in runs.schemes])
    axes.set_ylim(len(runs.schemes) - 0.5, -0.7)
    axes.set_xlim(0, 1.25 * max(runs.mean(scheme, point, column).value for scheme in runs.schemes))
    axes.grid(axis="x")
    axes.set_xlabel("seconds")
