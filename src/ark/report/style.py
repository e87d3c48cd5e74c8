"""The common form of all figures: type, lines, and files that come out the same from the same numbers.

Figures are made without pyplot, so that nothing is global and nothing needs a display.
"""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType
from numpy.typing import ArrayLike

from ark.report.looks import look
from ark.report.runs import Point

PNG_DPI: Final = 300

STYLE: Final[dict[RcKeyType, Any]] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib: the same on each machine
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#E2E2E2",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "ark",  # ids inside an SVG come from its content alone
    "svg.fonttype": "path",
}


def drawn(width: float, height: float, draw: Callable[[Figure], None]) -> Figure:
    """A figure of ``width`` x ``height`` inches that ``draw`` fills, in the style of all figures."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        return figure


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure for slides and print."""
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=PNG_DPI, metadata={"Software": None})


def svg(figure: Figure) -> str:
    """A figure as the text of an SVG file, for the report."""
    with mpl.rc_context(STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return buffer.getvalue()


def plot_scheme(
    axes: Axes, scheme: str, x: ArrayLike, y: ArrayLike, *, size: float = 4.5, every: int | None = None
) -> None:
    """Draw a scheme's line, labelled, the way that all figures do; ``every`` thins the markers out."""
    its = look(scheme)
    crossed = its.marker == "x"
    axes.plot(
        x,
        y,
        color=its.colour,
        marker=its.marker,
        markersize=size,
        markevery=every,
        linestyle=(0, its.dashes) if its.dashes else "-",
        markeredgecolor=its.colour if crossed else "white",
        markeredgewidth=1.2 if crossed else 0.6,
        label=its.label,
    )


def legend_above(figure: Figure, *panels: Axes) -> None:
    """One legend over all panels, each label once."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside upper center",
        ncols=min(6, len(entries)),
        handlelength=2.8,
        columnspacing=1.5,
        fontsize=8.5,
    )


def remark(figure: Figure, text: str) -> None:
    """A small grey line under the whole figure."""
    figure.supxlabel(text, fontsize=7.5, color="#555555", x=0.01, ha="left")


def point_name(point: Point, load: float) -> str:
    """A point for people: ``25 requests/s (load 0.83)``, or ``the traffic's own times (load 0.11)``."""
    name = "the traffic's own times" if point is None else f"{point:g} requests/s"
    return f"{name} ({load_text(load)})"


def load_text(load: float) -> str:
    """A load for people: ``load 0.83``, and ``all at once`` where no time is between transfers."""
    return "all at once" if math.isinf(load) else f"load {load:.2f}"


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage with a true minus sign and no ``-0``."""
    text = f"{100 * share:.{decimals}f}"
    return (text.lstrip("-") if float(text) == 0 else text.replace("-", "−")) + " %"
