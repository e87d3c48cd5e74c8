"""Bytes into each spine over time, as the counters of the emulated switches saw them."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from ark.fabric import Fabric
from ark.lab.outcome import LinkBytes
from ark.report.looks import look
from ark.report.style import drawn

BIN_S: Final = 0.5
"""Width of a column: shorter ones would show single bursts."""

COLOURS: Final = "magma_r"
_NAMED_MAX: Final = 16


def utilisation(fabric: Fabric, counted: LinkBytes) -> NDArray[np.float64]:
    """Share of the rate of the links into each spine that was used: float64[spine, bin of ``BIN_S``]."""
    end_s = float(counted.time_s[-1]) if len(counted.time_s) else 0.0
    edges = np.arange(0.0, end_s + BIN_S, BIN_S)
    found = np.zeros((len(fabric.spines), max(1, len(edges) - 1)))
    for row, spine in enumerate(fabric.spines):
        columns = [c for c, link in enumerate(counted.links) if fabric.links[link].target == spine]
        rate_bps = sum(fabric.links[counted.links[column]].rate_bps for column in columns)
        if rate_bps and len(edges) > 1:
            total = counted.sent[:, columns].sum(axis=1)
            at_edges = np.interp(edges, counted.time_s, total)
            found[row] = np.diff(at_edges) * 8 / (rate_bps * BIN_S)
    return found


def link_bytes_figure(fabric: Fabric, counted: Mapping[str, LinkBytes], about: str) -> Figure:
    """One panel a scheme: how much of the rate into each spine was used over time."""
    shown = {scheme: utilisation(fabric, one) for scheme, one in counted.items()}
    end_s = max((values.shape[1] for values in shown.values()), default=1) * BIN_S

    def draw(figure: Figure) -> None:
        panels = figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
        image = None
        for axes, (scheme, values) in zip(panels, shown.items(), strict=False):
            image = _draw_panel(axes, values, fabric.spines, end_s)
            axes.set_title(look(scheme).label)
        panels[-1].set_xlabel("seconds")
        if image is not None:
            bar = figure.colorbar(image, ax=list(panels), pad=0.02, aspect=10 * len(shown))
            bar.set_label("share of the rate into the spine", labelpad=8)
            bar.outline.set_visible(False)
        figure.suptitle(f"Bytes into each spine, {about}", x=0.01, ha="left", fontsize=9, color="#555555")

    return drawn(7.2, 0.9 + 1.25 * max(1, len(shown)), draw)


def _draw_panel(axes: Axes, values: NDArray[np.float64], spines: tuple[str, ...], end_s: float) -> AxesImage:
    count, width = values.shape
    image = axes.imshow(
        values,
        aspect="auto",
        interpolation="nearest",
        cmap=COLOURS,
        vmin=0,
        vmax=1,
        extent=(0.0, width * BIN_S, count - 0.5, -0.5),
    )
    axes.set_xlim(0, end_s)
    axes.grid(visible=False)
    if count <= _NAMED_MAX:
        axes.set_yticks(range(count), spines)
        axes.hlines(np.arange(count - 1) + 0.5, 0, end_s, color="white", linewidth=1.2)
    else:
        axes.set_ylabel(f"{count} spines")
    axes.tick_params(axis="y", length=0)
    return image
