from dataclasses import replace

import pytest
from tests.report.synthetic import grid, run

from ark.report.answer import answer, main_point
from ark.report.runs import Runs, collect


def test_the_answer_is_about_the_busiest_load_that_the_fabric_carries(sweep: Runs) -> None:
    assert main_point(sweep) == 30.0  # load 0.99
    over = collect(replace(result, load=1.2 if result.qps == 30 else result.load) for result in grid(seeds=1))
    assert main_point(over) == 25.0


def test_where_all_is_over_load_it_is_about_the_least(sweep: Runs) -> None:
    assert main_point(collect(replace(run("ecmp", qps, 0), load=2.0) for qps in (5.0, 9.0))) == 5.0


def test_sentences_hold_the_figures_of_the_runs(sweep: Runs) -> None:
    told = answer(sweep, 25.0)
    text = " ".join(told.sentences)
    assert f"at most {100 * sweep.saving_max('ecmp', 25.0):.1f} %" in told.verdict
    assert f"ARK as built here saves {100 * sweep.reduction('ark', 25.0, 'ttft_mean_s').value:.1f} %" in text
    assert f"{100 * sweep.reduction('ideal', 25.0, 'ttft_mean_s').value:.1f} %" in text
    assert "prefill GPU" not in text  # nobody waits for one in these runs


@pytest.mark.parametrize(
    ("prefill_s", "word"), [(0.1, "large part"), (8.0, "small part"), (80.0, "not the problem")]
)
def test_the_verdict_follows_what_a_perfect_network_saves(prefill_s: float, word: str) -> None:
    results = []
    for result in grid(schemes=("ecmp", "ark"), points=(25.0,), seeds=2):
        assert result.ttft is not None
        slow = replace(result.ttft, prefill_s=result.ttft.prefill_s * 0 + prefill_s)
        results.append(replace(result, ttft=slow))
    assert word in answer(collect(results), 25.0).verdict


def test_transfers_alone_are_judged_by_their_fct() -> None:
    runs = collect(grid(points=(None,), served=False))
    told = answer(runs, None)
    saved = runs.reduction("ark", None, "fct_mean_s").value
    assert told.verdict == f"ARK lowers the mean time of a transfer by {100 * saved:.1f} % against ECMP."
    assert "TTFT" not in " ".join(told.sentences)


def test_without_ecmp_nothing_is_said_about_savings() -> None:
    told = answer(collect(grid(schemes=("ark", "ideal"), points=(5.0,), seeds=1)), 5.0)
    assert "add ecmp" in told.sentences[0]


def test_one_scheme_alone_is_described() -> None:
    told = answer(collect(grid(schemes=("ecmp",), points=(None,), seeds=1, served=False)), None)
    assert told.verdict.startswith("Mean FCT ")


def test_a_scheme_that_costs_time_is_not_said_to_save_any() -> None:
    results = []
    for result in grid(schemes=("ecmp", "ark-paper"), points=(None,), served=False):
        slower = result.fct_ns * (3 if result.scheme == "ark-paper" else 1)
        results.append(replace(result, fct_ns=slower))
    text = " ".join(answer(collect(results), None).sentences)
    assert "The paper's ARK makes mean FCT longer, by " in text
    assert "−" not in text
