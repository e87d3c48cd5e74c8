from dataclasses import replace

import pytest
from tests.report.synthetic import grid, run

from ark.report.answer import answer
from ark.report.runs import Runs, collect
from ark.report.style import percent


def test_the_answer_is_about_the_busiest_load_that_the_fabric_carries(sweep: Runs) -> None:
    assert sweep.main_point == 30.0  # load 0.99
    over = collect(replace(result, load=1.2 if result.qps == 30 else result.load) for result in grid(seeds=1))
    assert over.main_point == 25.0


def test_where_all_is_over_load_it_is_about_the_least(sweep: Runs) -> None:
    assert collect(replace(run("ecmp", qps, 0), load=2.0) for qps in (5.0, 9.0)).main_point == 5.0


def test_sentences_hold_the_figures_of_the_runs(sweep: Runs) -> None:
    told = answer(sweep, 25.0)
    text = " ".join(told.sentences)
    assert f"at most {100 * sweep.saving_max('ecmp', 25.0):.1f} %" in told.verdict
    assert f"ARK as built here saves {100 * sweep.reduction('ark', 25.0, 'ttft_mean_s').value:.1f} %" in text
    assert f"{100 * sweep.reduction('ideal', 25.0, 'ttft_mean_s').value:.1f} %" in text
    assert "prefill GPU" not in text  # nobody waits for one in these runs


@pytest.mark.parametrize(
    ("prefill_s", "words"),
    [
        (0.1, "The network is a large part of"),
        (8.0, "The network is a small part of"),
        (30.0, "The network is hardly a part of"),
        (300.0, "There is nothing to gain from the network at this load"),
    ],
)
def test_the_verdict_follows_what_a_perfect_network_saves(prefill_s: float, words: str) -> None:
    results = []
    for result in grid(schemes=("ecmp", "ark"), points=(25.0,), seeds=2):
        assert result.ttft is not None
        slow = replace(result.ttft, prefill_s=result.ttft.prefill_s * 0 + prefill_s)
        results.append(replace(result, ttft=slow))
    assert answer(collect(results), 25.0).verdict.startswith(words)


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


def quiet(point: float | None, *, served: bool, load: float = 0.1) -> Runs:
    """Runs in which no transfer meets another: all schemes take what ECMP takes."""
    alike = [run("ideal", point, seed, served=served) for seed in range(3)]
    return collect(
        replace(result, scheme=scheme, load=load, config={"workload": {"own_qps": 8.0} if served else {}})
        for result in alike
        for scheme in ("ecmp", "ark", "ideal")
    )


@pytest.mark.parametrize(
    ("point", "load", "step"),
    [
        # 4 requests/s make a load of 0.1, so 20 one of 0.5 and 34 one of 0.85.
        (4.0, 0.1, "try --qps 20,34: loads of about 0.5 and 0.85."),
        (None, 0.1, "try --qps 40,68: loads of about 0.5 and 0.85."),  # the trace's own rate is 8
        (4.0, 0.6, "try --qps 5.67: a load of about 0.85."),
    ],
)
def test_where_nothing_can_be_gained_that_is_said_with_a_next_step(
    point: float | None, load: float, step: str
) -> None:
    told = answer(quiet(point, served=True, load=load), point)
    assert told.verdict.startswith(
        "There is nothing to gain from the network at this load: a perfect network"
    )
    assert told.sentences[-1].endswith(step)
    assert "of what is possible" not in " ".join(told.sentences)
    assert len(told.sentences) == 2


def test_waiting_that_no_path_avoids_is_not_laid_to_paths() -> None:
    alike = [run("ecmp", 25.0, seed) for seed in range(3)]
    told = answer(collect(replace(r, scheme=scheme) for r in alike for scheme in ("ecmp", "ideal")), 25.0)
    assert told.verdict.startswith(
        "There is nothing to gain from other paths at this load: a perfect network"
    )
    assert told.verdict.endswith("of mean TTFT, the best paths 0.0 %.")


def test_a_full_fabric_without_gain_gets_no_next_step() -> None:
    assert len(answer(quiet(4.0, served=True, load=0.9), 4.0).sentences) == 1


def test_transfers_with_nothing_to_gain_are_told_how_to_come_closer() -> None:
    told = answer(quiet(None, served=False), None)
    assert told.verdict == (
        "There is nothing to gain from the network at this load: no choice of paths would save more "
        "than 0.0 % of mean FCT."
    )
    assert told.sentences[-1] == "With all start_ns divided by 5 or 8.5 the load would be about 0.5 and 0.85."


def test_no_share_is_a_minus_zero() -> None:
    assert [percent(-0.0001, 1), percent(-0.001), percent(-0.012, 1)] == ["0.0 %", "0 %", "−1.2 %"]
