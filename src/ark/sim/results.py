"""What one run of an engine hands back, and the row of ``results.csv`` that it becomes.

Holds numbers only: files, tables and figures are made by ``ark.report``. Both engines fill the same
:class:`RunResult`, so that whoever reads it need not know which engine ran.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.units import NS_PER_S
from ark.workload.flows import Flows

Cell = str | int | float

RESULT_COLUMNS: Final = (
    "scheme",
    "engine",
    "fabric",
    "qps",
    "seed",
    "requests",
    "load",
    "lag_s",
    "ttft_model",
    "fct_mean_s",
    "fct_p50_s",
    "fct_p95_s",
    "fct_p99_s",
    "ttft_mean_s",
    "ttft_p50_s",
    "ttft_p95_s",
    "peak_flows_per_spine",
)
"""The columns of ``results.csv``, in order."""


@dataclass(frozen=True, slots=True)
class Ttft:
    """Time to first token of every request, by its parts, all ``float64[n]`` in seconds.

    The parts add up to :attr:`total_s`. Where layers are sent while the prefill still runs, ``transfer_s`` is
    the part of the transfer that stands out behind the end of the prefill. ``alone_s`` is what ``transfer_s``
    would be if the request's transfer had the network to itself.
    """

    queue_s: NDArray[np.float64]
    prefill_s: NDArray[np.float64]
    reserve_s: NDArray[np.float64]
    transfer_s: NDArray[np.float64]
    decode1_s: NDArray[np.float64]
    alone_s: NDArray[np.float64]

    @property
    def total_s(self) -> NDArray[np.float64]:
        """Arrival of the request to its first token."""
        return self.queue_s + self.prefill_s + self.reserve_s + self.transfer_s + self.decode1_s

    def saving_max(self) -> float:
        """Share of the mean TTFT that a perfect network would save, 0 to 1.

        No network of the same line rate moves any transfer faster than if it were alone, so no scheme can
        save more: what is left is prefill, its queue, the decode step and the bytes themselves.
        """
        total = float(self.total_s.mean()) if len(self.queue_s) else 0.0
        if total <= 0:
            return 0.0
        return max(0.0, float((self.reserve_s + self.transfer_s - self.alone_s).mean()) / total)

    def mean_parts(self) -> dict[str, float]:
        """Mean seconds of each part, in the order in which a request meets them."""
        parts = ("queue_s", "prefill_s", "reserve_s", "transfer_s", "decode1_s")
        return {name: float(np.mean(getattr(self, name))) for name in parts}


@dataclass(frozen=True, slots=True)
class SpineSeries:
    """How many transfers used each spine over time.

    ``active[s, i]`` is the most that were active on spine ``s`` at once from ``time_s[i]`` to the next time:
    a short peak stays visible at any resolution. ``peak[s]`` is the exact maximum of the run. A stripe counts
    as a transfer; schemes that pool the spines leave everything at zero.
    """

    time_s: NDArray[np.float64]
    active: NDArray[np.int32]
    spines: tuple[str, ...]
    peak: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine made of each transfer, in the order of the flow table; see ``RunResult``."""

    fct_ns: NDArray[np.int64]
    reserve_ns: NDArray[np.int64]
    path: list[str]
    sport: list[str]
    spine: list[str]
    spine_series: SpineSeries
    ecn_marks: NDArray[np.int64] | None = None
    retransmits: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """One scheme on one draw of traffic, as one engine ran it.

    ``fct_ns`` counts from the moment at which a transfer could have begun (``flows.start_ns``) to its
    completion at the sender, so it includes ``reserve_ns``, the time for which ARK held the transfer back.
    ``path``, ``sport`` and ``spine`` are in the form of the flow table: ``;`` between stripes, ``>`` at a
    move, an empty ``spine`` where there is none or more than one.
    """

    scheme: str
    engine: str
    fabric: str
    qps: float | None
    seed: int
    requests: int
    load: float
    lag_s: float
    ttft_model: str
    flows: Flows
    fct_ns: NDArray[np.int64]
    reserve_ns: NDArray[np.int64]
    path: list[str]
    sport: list[str]
    spine: list[str]
    ttft: Ttft | None
    spine_series: SpineSeries
    config: dict[str, object]
    warnings: list[str] = field(default_factory=list)
    ecn_marks: NDArray[np.int64] | None = None
    """ECN-marked packets of each transfer; only the packet engine knows them."""
    retransmits: NDArray[np.int64] | None = None
    """Packets of each transfer that were sent again; only the packet engine knows them."""

    @property
    def peak_flows_per_spine(self) -> int:
        """Most transfers that any one spine carried at once."""
        return int(self.spine_series.peak.max(initial=0))

    def row(self) -> dict[str, Cell]:
        """The run as one row of ``results.csv``: exactly :data:`RESULT_COLUMNS`, in order.

        A cell that has no value (the QPS of a flow table, the TTFT without requests, the peak of pooled
        spines) is the empty string.
        """
        cells: dict[str, Cell] = {
            "scheme": self.scheme,
            "engine": self.engine,
            "fabric": self.fabric,
            "qps": "" if self.qps is None else self.qps,
            "seed": self.seed,
            "requests": self.requests,
            "load": self.load,
            "lag_s": self.lag_s,
            "ttft_model": self.ttft_model,
        }
        cells |= _statistics("fct", self.fct_ns / NS_PER_S, (50, 95, 99))
        total_s = None if self.ttft is None else self.ttft.total_s
        cells |= _statistics("ttft", total_s, (50, 95))
        cells["peak_flows_per_spine"] = self.peak_flows_per_spine or ""
        return cells


def _statistics(
    name: str, values_s: NDArray[np.float64] | None, percentiles: tuple[int, ...]
) -> dict[str, Cell]:
    """Mean and percentiles (linear between ranks) under their column names; empty cells without values."""
    columns = [f"{name}_mean_s", *(f"{name}_p{percent}_s" for percent in percentiles)]
    if values_s is None or not len(values_s):
        return dict.fromkeys(columns, "")
    numbers = [float(values_s.mean()), *np.percentile(values_s, percentiles).tolist()]
    return dict(zip(columns, numbers, strict=True))
