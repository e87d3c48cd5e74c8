from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from tests.report.synthetic import run

from ark.report import paper
from ark.report.claims import HELD, NOT_HELD, OPEN, Judged, judge
from ark.report.runs import Runs, collect
from ark.report.table1 import Table1, Timing
from ark.sim.results import RunResult


def table1(arrival_s: float = 1e-5) -> Table1:
    seconds = dict(paper.TABLE1_S) | {"arrival_1000": arrival_s, "arrival_1000_ark": arrival_s}
    return Table1(
        tuple(Timing(name, name, value, None, "made up") for name, value in seconds.items()), "none"
    )


def as_printed(scheme: str, qps: float, seed: int, saved: float) -> RunResult:
    """A run whose FCT is lower than that of ECMP by exactly ``saved``."""
    base = run("ecmp", qps, seed)
    if scheme == "ecmp":
        return base
    return replace(base, scheme=scheme, fct_ns=(base.fct_ns * (1 - saved)).astype(np.int64))


def judged(results: Iterable[RunResult], claim: str) -> Judged:
    return next(one for one in judge(collect(results), table1()) if claim in one.claim)


def at_25(saved: float, seeds: int = 10) -> list[RunResult]:
    return [
        as_printed(scheme, 25.0, seed, saved) for scheme in ("ecmp", "ark-paper") for seed in range(seeds)
    ]


@pytest.mark.parametrize(
    ("saved", "verdict"), [(0.273, HELD), (0.28, HELD), (0.10, NOT_HELD), (0.45, NOT_HELD)]
)
def test_a_number_is_held_where_ours_agrees_with_it(saved: float, verdict: str) -> None:
    assert judged(at_25(saved), "QPS 25: mean FCT").verdict == verdict


def test_a_number_is_held_where_single_seeds_scatter_across_it() -> None:
    scattered = [
        as_printed(scheme, 25.0, seed, saved)
        for seed, saved in enumerate((0.05, 0.10, 0.12, 0.15, 0.30, 0.35))
        for scheme in ("ecmp", "ark-paper")
    ]
    ours = judged(scattered, "QPS 25: mean FCT")
    assert (ours.verdict, ours.why) == (
        HELD,
        "single seeds of ours scatter across it; the paper's is one trace",
    )


@pytest.mark.parametrize(("seeds", "saved", "verdict"), [(1, 0.273, OPEN), (5, 0.273, HELD), (5, 0.45, OPEN)])
def test_few_seeds_refute_nothing_and_one_decides_nothing(seeds: int, saved: float, verdict: str) -> None:
    assert judged(at_25(saved, seeds), "QPS 25: mean FCT").verdict == verdict


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [((0.2, 0.27, 0.13), HELD), ((0.29, 0.27, 0.13), NOT_HELD), ((0.1, 0.2, 0.3), NOT_HELD)],
)
def test_where_the_reduction_is_largest(shares: tuple[float, ...], verdict: str) -> None:
    results = [
        as_printed(scheme, qps, seed, saved)
        for qps, saved in zip((20.0, 25.0, 30.0), shares, strict=True)
        for seed in range(3)
        for scheme in ("ecmp", "ark-paper")
    ]
    assert judged(results, "largest at QPS 25").verdict == verdict
    narrows = HELD if shares[2] < shares[1] else NOT_HELD
    assert judged(results, "near saturation").verdict == narrows


def test_a_load_without_gain_breaks_always_lower() -> None:
    results = [
        as_printed(scheme, qps, seed, saved)
        for qps, saved in ((5.0, -0.01), (25.0, 0.3))
        for seed in range(3)
        for scheme in ("ecmp", "ark-paper")
    ]
    ours = judged(results, "at every load")
    assert ours.verdict == NOT_HELD
    assert "QPS 5" in ours.ours


def peaks(scheme: str, peak: int) -> RunResult:
    result = run(scheme, 25.0, 0)
    series = replace(result.spine_series, peak=np.array([peak, 1], np.int32))
    return replace(result, spine_series=series)


@pytest.mark.parametrize(("peak", "verdict"), [(7, HELD), (8, HELD), (18, NOT_HELD)])
def test_peaks_of_the_papers_ark(peak: int, verdict: str) -> None:
    results = [
        replace(peaks(scheme, peak if scheme == "ark-paper" else 18), seed=seed)
        for scheme in ("ecmp", "ark-paper")
        for seed in range(10)
    ]
    assert judged(results, "below about 8").verdict == verdict
    assert judged(results, "up to 18").verdict == HELD


def test_overhead_is_judged_by_what_was_measured(sweep: Runs) -> None:
    fast, slow = (judge(sweep, table1(arrival_s))[-1] for arrival_s in (1e-5, 5e-3))
    assert (fast.verdict, slow.verdict) == (HELD, NOT_HELD)


def test_without_both_schemes_there_is_nothing_to_judge() -> None:
    assert judge(collect([run("ark", 25.0, 0)]), table1()) == []


def test_every_claim_says_where_it_stands_and_why(sweep: Runs) -> None:
    claims = judge(sweep, table1())
    assert {claim.section for claim in claims} == {"4.2", "4.3", "4.4"}
    assert all(claim.why and claim.ours and claim.paper for claim in claims)
    numbers = sum(qps in sweep.points for quoted in paper.REDUCTIONS.values() for qps in quoted)
    assert sum(claim.claim.startswith("QPS") for claim in claims) == numbers
