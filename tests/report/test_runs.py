from dataclasses import replace

import numpy as np
import pytest
from tests.report.synthetic import grid, run

from ark.report.runs import Runs, collect


def test_schemes_points_and_seeds_come_in_the_order_of_reports() -> None:
    runs = collect(
        run(scheme, qps, seed) for seed in (1, 0) for qps in (5.0, 1.0) for scheme in ("ideal", "ecmp")
    )
    assert runs.schemes == ("ecmp", "ideal")
    assert runs.points == (1.0, 5.0)
    assert runs.seeds == (0, 1)
    assert [row["seed"] for row in runs.rows()] == [0, 1] * 4


def test_parts_of_ttft_add_up_to_its_mean(sweep: Runs) -> None:
    total = sum(sweep.parts_s("ecmp", 25.0).values())
    assert total == pytest.approx(sweep.mean("ecmp", 25.0, "ttft_mean_s").value)


def test_the_time_alone_is_the_same_for_all_schemes(sweep: Runs) -> None:
    alone = {scheme: sweep.parts_s(scheme, 25.0)["alone"] for scheme in sweep.schemes}
    assert len({round(seconds, 12) for seconds in alone.values()}) == 1


def test_series_are_those_of_the_first_seed_in_any_order() -> None:
    forward, backward = (collect(run("ecmp", 5.0, seed) for seed in seeds) for seeds in ((0, 1), (1, 0)))
    np.testing.assert_array_equal(forward.series["ecmp", 5.0].active, backward.series["ecmp", 5.0].active)


def test_warnings_that_differ_in_numbers_only_are_told_once() -> None:
    results = (
        replace(run(scheme, qps, seed), warnings=[f"the load is {qps / 9 + seed:.2f} times 1"])
        for qps in (5.0, 20.0, 40.0)
        for scheme in ("ecmp", "ark")
        for seed in (0, 1)
    )
    runs = collect(results)
    assert runs.main_point == 20.0  # at 40 the load is 1.32
    told = runs.warnings
    assert told == ["At 5, 20, 40 requests/s (numbers for 20): the load is 2.22 times 1."]


def test_warnings_of_other_points_than_the_main_one_have_the_numbers_of_the_last() -> None:
    results = (
        replace(run("ecmp", qps, 0), warnings=[f"the load is {qps / 9:.2f} times 1"] if qps != 5 else [])
        for qps in (5.0, 40.0, 50.0)
    )
    assert collect(results).warnings == ["At 40, 50 requests/s (numbers for 50): the load is 5.56 times 1."]


def test_a_warning_of_one_point_names_it(sweep: Runs) -> None:
    assert sweep.warnings == ["At 30 requests/s: the offered prefill load is 2.2 times what the GPUs can do."]


def test_transfers_alone_have_no_ttft() -> None:
    assert not collect(grid(points=(None,), seeds=1, served=False)).has_ttft
