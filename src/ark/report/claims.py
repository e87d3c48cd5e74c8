"""The paper's claims, each beside our figure: held or not held, and why we say so.

The paper reports one trace a point. Ours are many; so a number of the paper's *held* where a single seed of
ours could well have given it (10th to 90th percentile of seeds), or where our mean agrees with it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ark.report import paper
from ark.report.runs import BASE, Runs
from ark.report.statistics import Estimate
from ark.report.style import percent
from ark.report.table1 import Table1
from ark.report.tables import METRICS

HELD: Final = "held"
NOT_HELD: Final = "not held"
OPEN: Final = "not decided"

SEEDS_MIN: Final = 3
"""With fewer seeds nothing is said about numbers."""

SEEDS_REFUTE: Final = 10
"""With fewer seeds their 10th and 90th percentiles are hardly known, and no number is called not held."""

_MORE_SEEDS: Final = "use --seeds 10 or more"

ROUNDING: Final = 0.01  # the paper rounds its smaller shares to whole per cent

_SCHEME: Final = "ark-paper"


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim: where it stands, what it says, what came out here, the verdict and its reason."""

    section: str
    claim: str
    paper: str
    ours: str
    ark: str
    """The same figure for ARK as built here; empty where it makes no sense."""
    verdict: str
    why: str


def judge(runs: Runs, table1: Table1) -> list[Judged]:
    """Every claim of the paper's section 4 that these runs can speak to."""
    if BASE not in runs.schemes or _SCHEME not in runs.schemes:
        return []
    numbers = [
        _number(runs, column, qps, share)
        for qps in runs.points
        if qps is not None
        for column, quoted in paper.REDUCTIONS.items()
        if (share := quoted.get(qps)) is not None
    ]
    trends = [trend for check in _TRENDS if (trend := check(runs)) is not None]
    return [*numbers, *trends, _overhead(table1)]


def _number(runs: Runs, column: str, qps: float, share: float) -> Judged:
    ours = runs.reduction(_SCHEME, qps, column)
    agrees = abs(ours.value - share) <= ROUNDING or ours.low <= share <= ours.high
    likely = ours.p10 <= share <= ours.p90
    if ours.seeds < SEEDS_MIN:
        verdict, why = (
            OPEN,
            f"{ours.seeds} seed{'s say' if ours.seeds > 1 else ' says'} too little; {_MORE_SEEDS}",
        )
    elif agrees:
        verdict, why = HELD, f"our mean over {ours.seeds} seeds agrees"
    elif likely:
        verdict, why = HELD, "single seeds of ours scatter across it; the paper's is one trace"
    elif ours.seeds < SEEDS_REFUTE:
        verdict, why = OPEN, f"{ours.seeds} seeds, none of which gives it, are too few; {_MORE_SEEDS}"
    else:
        side = "higher" if ours.value > share else "lower"
        verdict, why = NOT_HELD, f"ours is {side}, outside of what eight in ten of our seeds give"
    return Judged(
        "4.3" if column.startswith("ttft") else "4.2",
        f"QPS {qps:g}: {METRICS[column]} lower than ECMP by",
        percent(share, 1),
        f"{percent(ours.value, 1)} (seeds {_range(ours)})",
        percent(runs.reduction("ark", qps, column).value, 1) if "ark" in runs.schemes else "",
        verdict,
        why,
    )


def _range(shares: Estimate) -> str:
    return f"{percent(shares.p10).removesuffix(' %')} to {percent(shares.p90)}"


def _always_lower(runs: Runs) -> Judged | None:
    shares = {
        (point, column): runs.reduction(_SCHEME, point, column).value
        for point in runs.points
        for column in ("fct_mean_s", "fct_p95_s")
    }
    (point, column), least = min(shares.items(), key=lambda item: item[1])
    return Judged(
        "4.2",
        "ARK reduces both mean and P95 FCT at every load",
        "always lower",
        f"least: {percent(least, 1)} ({METRICS[column]} at QPS {point:g})",
        "",
        HELD if least > 0 else NOT_HELD,
        "all points of both are lower" if least > 0 else "there is a point at which it gains nothing",
    )


def _best_at_25(runs: Runs) -> Judged | None:
    points = [point for point in runs.points if point is not None]
    if not {20.0, 25.0, 30.0} <= set(points):
        return None
    best = {column: _best_point(runs, points, column) for column in ("fct_mean_s", "fct_p95_s")}
    held = set(best.values()) == {25.0}
    return Judged(
        "4.2",
        "the reduction grows with load and is largest at QPS 25",
        "QPS 25",
        f"mean: QPS {best['fct_mean_s']:g}, P95: QPS {best['fct_p95_s']:g}",
        "",
        HELD if held else NOT_HELD,
        "largest at QPS 25 here too"
        if held
        else "averaged over seeds it is largest where spines are busy but one is often still free; at higher "
        "load all are reserved and the paper's ARK picks at random",
    )


def _best_point(runs: Runs, points: list[float], column: str) -> float:
    return max(points, key=lambda point: runs.reduction(_SCHEME, point, column).value)


def _narrows_at_30(runs: Runs) -> Judged | None:
    if not {25.0, 30.0} <= set(runs.points):
        return None
    at_25, at_30 = (
        [runs.reduction(_SCHEME, qps, column).value for column in ("fct_mean_s", "fct_p95_s")]
        for qps in (25.0, 30.0)
    )
    held = all(late < early for early, late in zip(at_25, at_30, strict=True))
    return Judged(
        "4.2",
        "near saturation (QPS 30) the reduction narrows, mean / P95",
        "27.3 → 13.8 % / 34.0 → 12.4 %",
        " / ".join(f"{percent(a, 1)} → {percent(b, 1)}" for a, b in zip(at_25, at_30, strict=True)),
        "",
        HELD if held else NOT_HELD,
        "both are smaller at QPS 30" if held else "not both are smaller at QPS 30",
    )


def _peak_ecmp(runs: Runs) -> Judged | None:
    return _peak(runs, BASE, "ECMP drives up to 18 concurrent flows onto one spine (QPS 25)", paper.PEAK_ECMP)


def _peak_ark(runs: Runs) -> Judged | None:
    return _peak(runs, _SCHEME, "ARK keeps peaks below about 8 on all spines (QPS 25)", paper.PEAK_ARK)


def _peak(runs: Runs, scheme: str, claim: str, theirs: int) -> Judged | None:
    if paper.HEATMAP_QPS not in runs.points:
        return None
    ours = runs.mean(scheme, paper.HEATMAP_QPS, "peak_flows_per_spine")
    ark = ""
    if scheme == _SCHEME and "ark" in runs.schemes:
        own = runs.mean("ark", paper.HEATMAP_QPS, "peak_flows_per_spine")
        ark = f"{own.p50:.0f} (seeds {own.p10:.0f} to {own.p90:.0f})"
    verdict = (
        HELD if ours.p10 <= theirs <= ours.p90 or (scheme == _SCHEME and ours.p50 <= theirs) else NOT_HELD
    )
    reasons = {
        HELD: "within what our seeds give",
        NOT_HELD: "when all spines are reserved the algorithm falls back to a random path, and flows pile up"
        if scheme == _SCHEME
        else "outside of what eight in ten of our seeds give; one trace can have it",
    }
    if ours.seeds < (SEEDS_MIN if verdict == HELD else SEEDS_REFUTE):
        verdict = OPEN
        reasons[OPEN] = f"peaks differ much between seeds; {_MORE_SEEDS}"
    return Judged(
        "4.2",
        claim,
        f"{theirs}",
        f"{ours.p50:.0f} (seeds {ours.p10:.0f} to {ours.p90:.0f})",
        ark,
        verdict,
        reasons[verdict],
    )


def _even_spines(runs: Runs) -> Judged | None:
    point = paper.HEATMAP_QPS
    if point not in runs.points:
        return None
    gaps = {
        scheme: float(np.ptp(runs.series[scheme, point].active, axis=0).mean())
        for scheme in (BASE, _SCHEME, "ark")
        if scheme in runs.schemes
    }
    held = gaps[_SCHEME] <= gaps[BASE] / 2
    return Judged(
        "4.2",
        "ARK spreads flows uniformly over the spines (QPS 25; mean gap between fullest and emptiest spine)",
        "uniform",
        f"{gaps[_SCHEME]:.1f} flows (ECMP: {gaps[BASE]:.1f})",
        f"{gaps['ark']:.1f} flows" if "ark" in gaps else "",
        HELD if held else NOT_HELD,
        f"first seed; the gap is {percent(1 - gaps[_SCHEME] / gaps[BASE])} smaller than with ECMP, and "
        "half as large counts as uniform",
    )


def _widens(runs: Runs) -> Judged | None:
    points = [point for point in runs.points if point is not None and point <= 25]
    if len(points) < 3 or not runs.has_ttft:
        return None
    shares = [runs.reduction(_SCHEME, point, "ttft_mean_s").value for point in points]
    held = all(late > early for early, late in itertools.pairwise(shares))
    return Judged(
        "4.3",
        "the gain in mean TTFT widens steadily with load (up to QPS 25)",
        "2 → 13 %",
        " → ".join(percent(share, 1).removesuffix(" %") for share in shares) + " %",
        "",
        HELD if held else NOT_HELD,
        "each step is an increase" if held else "it stops growing before QPS 25",
    )


def _fixed_parts(runs: Runs) -> Judged | None:
    if not runs.has_ttft:
        return None
    parts = runs.parts_s(BASE, runs.points[-1])
    prefill_s, decode_s = parts["prefill"], parts["decode1"]
    held = abs(prefill_s / paper.PREFILL_S - 1) < 0.05 and abs(decode_s / paper.DECODE1_S - 1) < 0.1
    return Judged(
        "4.3",
        "prefill and the first decode step are a fixed part of TTFT",
        "840 ms + 10 ms",
        f"{1000 * prefill_s:.0f} ms + {1000 * decode_s:.1f} ms",
        "",
        HELD if held else NOT_HELD,
        "the latency model of this run; the preset ark_calibrated is fitted to the paper's two numbers",
    )


def _overhead(table1: Table1) -> Judged:
    arrival_s = table1.seconds("arrival_1000")
    share = arrival_s / table1.seconds("transfer")
    return Judged(
        "4.4",
        "the controller's work is well under 1 % of a transfer, even at K = 1000",
        "well under 1 % (870 µs of 137 ms)",
        _small(share),
        _small(table1.seconds("arrival_1000_ark") / table1.seconds("transfer")),
        HELD if share < 0.01 else NOT_HELD,
        "measured on this machine, see table 1",
    )


def _small(share: float) -> str:
    return f"{100 * share:.2g} %"


_TRENDS: Final[tuple[Callable[[Runs], Judged | None], ...]] = (
    _always_lower,
    _best_at_25,
    _narrows_at_30,
    _peak_ecmp,
    _peak_ark,
    _even_spines,
    _widens,
    _fixed_parts,
)
