"""What reports keep of the runs of one experiment: every row, the parts of TTFT, and little else.

Flow tables can be large and there is one a run; so a :class:`RunResult` is taken in, summed up and let go.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.report.looks import LOOKS
from ark.report.statistics import Estimate, Values, mean_over_seeds, reduction_over_seeds
from ark.sim.results import Cell, RunResult, SpineSeries
from ark.units import NS_PER_S

BASE: Final = "ecmp"
"""The scheme that reductions are counted against."""

QUANTILES: Final = np.linspace(0.0, 1.0, 201)
"""Where each run's distribution of FCT is kept, for the curves of one point."""

Point = float | None
"""Requests per second, or None where the traffic keeps times of its own."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one run."""

    row: dict[str, Cell]
    parts_s: dict[str, float]
    saving_max: float
    fct_quantiles_s: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Transfers:
    """The single transfers of one run, in the order of the flow table."""

    fct_ns: NDArray[np.int64]
    path: list[str]
    marked: NDArray[np.bool_]
    """Whether packets of it were marked by ECN; never at flow level, which knows no packets."""
    retransmits: int
    """Packets that were sent again."""


@dataclass(slots=True)
class Runs:
    """All runs of one experiment, by scheme, point and seed; a full grid once the experiment is done."""

    kept: dict[tuple[str, Point, int], Kept] = field(default_factory=dict)
    series: dict[tuple[str, Point], SpineSeries] = field(default_factory=dict)
    """Flows per spine over time, of the first seed of each scheme and point."""
    transfers: dict[tuple[str, Point], Transfers] = field(default_factory=dict)
    """The single transfers of the same seeds."""
    config: dict[str, object] = field(default_factory=dict)
    remarks: dict[Point, list[str]] = field(default_factory=dict)
    """Warnings of the runs of the first seed at each point: other seeds differ in numbers only."""

    def add(self, result: RunResult) -> None:
        """Take in one run."""
        self.kept[result.scheme, result.qps, result.seed] = _kept(result)
        first = min(
            seed for scheme, point, seed in self.kept if (scheme, point) == (result.scheme, result.qps)
        )
        if result.seed == first:
            self.series[result.scheme, result.qps] = result.spine_series
            self.transfers[result.scheme, result.qps] = _transfers(result)
            known = self.remarks.setdefault(result.qps, [])
            known += [text for text in result.warnings if text not in known]
        if not self.config:
            self.config = dict(result.config)

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes that ran, in the order of reports."""
        present = dict.fromkeys(scheme for scheme, _, _ in self.kept)
        return tuple(name for name in LOOKS if name in present) + tuple(n for n in present if n not in LOOKS)

    @property
    def points(self) -> tuple[Point, ...]:
        """The loads that ran, lowest first."""
        present = {point for _, point, _ in self.kept}
        return tuple(sorted(present, key=lambda point: -1.0 if point is None else point))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that ran, in order."""
        return tuple(sorted({seed for _, _, seed in self.kept}))

    @property
    def own_qps(self) -> float | None:
        """The requests per second that the traffic has by itself; None for a table of transfers."""
        workload = self.config.get("workload")
        rate = workload.get("own_qps") if isinstance(workload, dict) else None
        return float(rate) if isinstance(rate, float | int) else None

    @property
    def main_point(self) -> Point:
        """The point that the answer speaks of: the busiest one that the fabric can carry (load up to 1)."""
        carried = [point for point in self.points if self.load(point) <= 1]
        return carried[-1] if carried else self.points[0]

    @property
    def has_ttft(self) -> bool:
        """Whether requests were served, and not only transfers made."""
        return all(kept.row["ttft_mean_s"] != "" for kept in self.kept.values())

    @property
    def warnings(self) -> list[str]:
        """What the runs warn of: the same at several points is told once.

        Its numbers are those of the main point, and where that has no such warning of the last one.
        """
        alike: dict[str, dict[Point, str]] = {}
        for point in self.points:
            for text in self.remarks.get(point, []):
                alike.setdefault(_NUMBER.sub("#", text), {})[point] = text
        return [_at_points(texts, self.main_point) for texts in alike.values()]

    def rows(self) -> list[dict[str, Cell]]:
        """The rows of ``results.csv``, by point, scheme and seed."""
        return [
            self.kept[scheme, point, seed].row
            for point in self.points
            for scheme in self.schemes
            for seed in self.seeds
        ]

    def values(self, scheme: str, point: Point, column: str) -> Values:
        """One column of one scheme at one point, float64[seed]; NaN where the cell is empty."""
        cells = (self.kept[scheme, point, seed].row[column] for seed in self.seeds)
        return np.array([np.nan if cell == "" else float(cell) for cell in cells])

    def mean(self, scheme: str, point: Point, column: str) -> Estimate:
        """One column's mean over seeds."""
        return mean_over_seeds(self.values(scheme, point, column))

    def reduction(self, scheme: str, point: Point, column: str) -> Estimate:
        """By which share one column is lower than that of ECMP on the same traffic."""
        return reduction_over_seeds(self.values(BASE, point, column), self.values(scheme, point, column))

    def load(self, point: Point) -> float:
        """Offered load at a point, mean over seeds; it is the same for all schemes."""
        return float(self.values(self.schemes[0], point, "load").mean())

    def parts_s(self, scheme: str, point: Point) -> dict[str, float]:
        """Mean seconds of each part of TTFT over all requests and seeds; without requests all parts are 0."""
        runs = self._runs(scheme, point)
        return {part: float(np.mean([run.parts_s[part] for run in runs])) for part in runs[0].parts_s}

    def saving_max(self, scheme: str, point: Point) -> float:
        """Share of mean TTFT that a network in which no transfer waits for another would save."""
        return float(np.mean([run.saving_max for run in self._runs(scheme, point)]))

    def fct_quantiles_s(self, scheme: str, point: Point) -> NDArray[np.float64]:
        """FCT at :data:`QUANTILES`, mean over seeds."""
        stacked = np.stack([run.fct_quantiles_s for run in self._runs(scheme, point)])
        return np.asarray(stacked.mean(axis=0), dtype=np.float64)

    def _runs(self, scheme: str, point: Point) -> list[Kept]:
        return [self.kept[scheme, point, seed] for seed in self.seeds]


_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")


def _at_points(texts: dict[Point, str], main: Point) -> str:
    told = main if main in texts else list(texts)[-1]
    named = [f"{point:g}" for point in texts if point is not None]
    if told is None:
        return texts[told]
    if len(named) == 1:
        return f"At {named[0]} requests/s: {texts[told]}."
    return f"At {', '.join(named)} requests/s (numbers for {told:g}): {texts[told]}."


def collect(results: Iterable[RunResult]) -> Runs:
    """All of ``results`` in one :class:`Runs`."""
    runs = Runs()
    for result in results:
        runs.add(result)
    return runs


def _transfers(result: RunResult) -> Transfers:
    count = len(result.fct_ns)
    marked = np.zeros(count, np.bool_) if result.ecn_marks is None else result.ecn_marks > 0
    again = 0 if result.retransmits is None else int(result.retransmits.sum())
    return Transfers(result.fct_ns, result.path, marked, again)


def _kept(result: RunResult) -> Kept:
    parts_s = dict.fromkeys(("queue", "prefill", "reserve", "alone", "shared", "decode1"), 0.0)
    saving_max = 0.0
    if result.ttft is not None:
        parts_s = {name.removesuffix("_s"): value for name, value in result.ttft.mean_parts().items()}
        transfer_s = parts_s.pop("transfer")
        parts_s["alone"] = min(transfer_s, float(result.ttft.alone_s.mean()))
        parts_s["shared"] = transfer_s - parts_s["alone"]
        parts_s["decode1"] = parts_s.pop("decode1")  # last, as it comes last
        saving_max = result.ttft.saving_max()
    quantiles = np.quantile(result.fct_ns / NS_PER_S, QUANTILES)
    return Kept(result.row(), parts_s, saving_max, quantiles)
