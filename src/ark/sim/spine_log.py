"""Which spines transfers used when: written down by an engine as it goes, counted up at the end."""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.sim.results import SpineSeries
from ark.units import NS_PER_S

BINS: Final = 600
"""Times of a series: a figure is about that many pixels wide."""


class SpineLog:
    """Begins and ends of the use of spines; 13 bytes an entry."""

    def __init__(self, spines: tuple[str, ...]) -> None:
        self._spines = spines
        self._time_ns = array("d")
        self._spine = array("i")
        self._step = array("b")

    def enter(self, time_ns: float, spine: int) -> None:
        """A stripe begins to use a spine; -1 is none."""
        self._note(time_ns, spine, 1)

    def leave(self, time_ns: float, spine: int) -> None:
        """A stripe no longer uses a spine; -1 is none."""
        self._note(time_ns, spine, -1)

    def _note(self, time_ns: float, spine: int, step: int) -> None:
        if spine >= 0:
            self._time_ns.append(time_ns)
            self._spine.append(spine)
            self._step.append(step)

    def series(self) -> SpineSeries:
        """Active stripes per spine over time, in ``BINS`` equal parts of the time to the last entry."""
        time_ns = np.array(self._time_ns, np.float64)
        spine = np.array(self._spine, np.int32)
        step = np.array(self._step, np.int32)
        order = np.lexsort((step, time_ns))  # who leaves at an instant is gone before another comes
        edges = np.linspace(0.0, float(time_ns.max(initial=0.0)), BINS + 1)
        active = np.zeros((len(self._spines), BINS), np.int32)
        peak = np.zeros(len(self._spines), np.int32)
        for number in range(len(self._spines)):
            mine = order[spine[order] == number]
            counts = np.cumsum(step[mine], dtype=np.int32)
            active[number] = _most_per_bin(edges, time_ns[mine], counts)
            peak[number] = counts.max(initial=0)
        return SpineSeries(edges[:-1] / NS_PER_S, active, self._spines, peak)


def _most_per_bin(
    edges: NDArray[np.float64], time_ns: NDArray[np.float64], counts: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The greatest count that holds at some time in each bin; ``counts[i]`` holds from ``time_ns[i]`` on."""
    before = np.searchsorted(time_ns, edges[:-1], side="right") - 1
    most = np.where(before >= 0, counts[before], 0) if len(counts) else np.zeros(BINS, np.int32)
    bins = np.clip(np.searchsorted(edges, time_ns, side="right") - 1, 0, BINS - 1)
    np.maximum.at(most, bins, counts)
    return most.astype(np.int32)
