import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.fabric import leaf_spine, paper_fabric
from ark.sim.experiment import Experiment, qps_of_load, run_point
from ark.sim.flow.model import FlowModel
from ark.sim.offered import TIME_MAX_NS
from ark.sim.results import RunResult
from ark.sim.schemes.catalogue import SCHEMES, SCHEMES_USUAL, SchemeOptions
from ark.sim.sweep import run_all
from ark.sim.traffic import FlowWorkload, PresetWorkload, TraceWorkload, mean_transfer_bytes, requests_of
from ark.workload import kv_model, make_flows, paper_requests
from ark.workload.arrivals import parse_arrivals

SMALL = Experiment(workload=PresetWorkload(requests=40))


def test_all_faults_of_an_experiment_come_together() -> None:
    wrong = replace(
        SMALL,
        qps=(-1.0,),
        seeds=(),
        schemes=("ecpm", "konga", "ark", "ark"),
        engine="packets",  # type: ignore[arg-type]
        ttft="magic",  # type: ignore[arg-type]
        layers=0,
        scale=0.0,
        options=SchemeOptions(lag_ns=-1, release="any", stripes=99),
        flow_model=FlowModel(goodput=1.5, payload_bytes=1, base_latency_ns=-1),
    )
    with pytest.raises(ConfigError) as caught:
        wrong.check()
    text = str(caught.value)
    for part in (
        'schemes: "ecpm" is not known; did you mean "ecmp"?',
        'schemes: "konga" is not known; did you mean "conga"?',
        'schemes: "ark" is given twice',
        "qps: -1 is not a positive number",
        "seeds: none given",
        "engine:",
        "ttft:",
        "layers:",
        "scale:",
        "lag_ns:",
        "stripes:",
        "release:",
        "goodput:",
        "payload:",
        "base_latency_ns:",
    ):
        assert part in text
    assert set(SCHEMES_USUAL) <= set(SCHEMES)


def test_a_sweep_refuses_before_it_runs_anything() -> None:
    with pytest.raises(ConfigError, match="flow table has times of its own"):
        next(run_all(replace(SMALL, workload=FlowWorkload(run_point(SMALL, "ecmp", 5.0, 0).flows))))


def test_every_scheme_sees_the_same_traffic() -> None:
    results = [run_point(SMALL, scheme, 10.0, 7) for scheme in SCHEMES]
    for result in results[1:]:
        assert result.flows.size_bytes.tolist() == results[0].flows.size_bytes.tolist()
        assert result.flows.start_ns.tolist() == results[0].flows.start_ns.tolist()
        assert result.flows.src == results[0].flows.src
        assert result.load == results[0].load


def test_what_a_run_was_is_plain_data_and_complete() -> None:
    result = run_point(SMALL, "ark", 10.0, 0)
    told = json.loads(json.dumps(result.config))
    assert told["fabric_digest"] == paper_fabric().digest().hex()
    assert told["workload"] == {"preset": "paper", "requests": 40, "arrivals": "poisson", "own_qps": 25.0}
    assert told["flow_model"]["goodput"] == pytest.approx(0.99448, abs=1e-5)
    assert {"ark", "numpy", "numba", "python"} <= told.keys()
    assert pickle.loads(pickle.dumps(result)).row() == result.row()


def test_a_result_run_again_as_a_flow_table_gives_the_same_times() -> None:
    first = run_point(SMALL, "ark", 25.0, 0)
    pinned = replace(first.flows, path=first.path)
    again = run_point(replace(SMALL, workload=FlowWorkload(pinned), qps=None), "ecmp", None, 0)
    assert again.fct_ns.tolist() == first.fct_ns.tolist()
    assert again.spine == first.spine
    assert again.ttft is None


def test_a_load_is_made_into_the_qps_that_offers_it() -> None:
    experiment = replace(SMALL, workload=PresetWorkload(requests=20_000))
    qps = qps_of_load(experiment, 0.85)
    assert qps == pytest.approx(24.3, rel=0.02)
    assert run_point(experiment, "ideal", qps, 3).load == pytest.approx(0.85, rel=0.03)


def test_loads_that_mean_nothing_are_refused() -> None:
    flows = run_point(SMALL, "ecmp", 5.0, 0).flows
    with pytest.raises(ConfigError, match="times of its own"):
        mean_transfer_bytes(FlowWorkload(flows), kv_model("llama-3-8b"))
    with pytest.raises(ConfigError, match="nothing leads up"):
        qps_of_load(replace(SMALL, fabric=leaf_spine(1, 0, 4)), 0.5)


def test_a_trace_keeps_its_own_times_or_is_brought_to_a_rate() -> None:
    requests = paper_requests(qps=3.0, requests=50, seed=0)
    trace = replace(SMALL, workload=TraceWorkload(requests), qps=None)
    own = run_point(trace, "ideal", None, 0)
    assert own.flows.start_ns.tolist() == np.rint(requests.arrived_s * 1e9).tolist()
    faster = run_point(trace, "ideal", 30.0, 0)
    assert faster.load == pytest.approx(own.load * 30 / requests.qps, rel=1e-6)


def test_one_leaf_has_no_load_and_no_spines_and_runs() -> None:
    for scheme in SCHEMES:
        result = run_point(replace(SMALL, fabric=leaf_spine(1, 0, 4)), scheme, 5.0, 0)
        assert result.load == 0.0
        assert result.row()["peak_flows_per_spine"] == ""


@pytest.mark.slow
def test_results_are_the_same_in_one_process_and_in_two() -> None:
    experiment = replace(SMALL, qps=(5.0, 25.0), seeds=(0, 1), schemes=("ecmp", "ark"))
    told: list[tuple[int, int, str]] = []

    def rows(processes: int) -> list[dict[str, str | int | float]]:
        told.clear()
        results = run_all(experiment, lambda *what: told.append(what), processes=processes)
        return [result.row() for result in results]

    alone = rows(0)
    assert told[0] == (1, 8, "ecmp, QPS 5, seed 0")
    assert rows(2) == alone
    assert [done for done, _, _ in told] == list(range(1, 9))
    assert [(row["scheme"], row["qps"], row["seed"]) for row in alone] == experiment.runs()


@pytest.mark.slow
def test_an_error_in_a_worker_reaches_the_caller_as_it_is() -> None:
    flows = replace(run_point(SMALL, "ecmp", 5.0, 0).flows, src=["h99"] * 40)
    experiment = replace(SMALL, workload=FlowWorkload(flows), qps=None)
    with pytest.raises(ConfigError, match="h99"):
        list(run_all(experiment, processes=1))


def _means(results: list[RunResult]) -> dict[str, float]:
    return {
        scheme: float(np.mean([r.fct_ns.mean() for r in results if r.scheme == scheme]))
        for scheme in dict.fromkeys(r.scheme for r in results)
    }


@pytest.mark.slow
def test_the_paper_s_point_comes_out_on_few_seeds() -> None:
    """Twelve seeds; benchmarks/paper_figures.py has the narrow ranges on 200."""
    experiment = Experiment(seeds=tuple(range(12)), schemes=("ecmp", "ark-paper", "ark", "ideal"))
    means = _means(list(run_all(experiment)))
    gains = {scheme: 100 * (1 - mean / means["ecmp"]) for scheme, mean in means.items()}
    assert 18 < gains["ark-paper"] < 36
    assert 42 < gains["ark"] < 54
    assert 50 < gains["ideal"] < 60


@pytest.mark.slow
def test_with_8_leaves_one_table_of_spines_gains_nothing_and_links_do() -> None:
    experiment = Experiment(
        fabric=leaf_spine(8, 4, 8),
        workload=PresetWorkload(requests=4000),
        seeds=(0, 1),
        schemes=("ecmp", "ark-paper", "ark"),
    )
    experiment = replace(experiment, qps=(qps_of_load(experiment, 0.85),))
    means = _means(list(run_all(experiment)))
    assert abs(1 - means["ark-paper"] / means["ecmp"]) < 0.06
    assert 1 - means["ark"] / means["ecmp"] > 0.43


SWEEP = """
import os
from ark.sim.experiment import Experiment
from ark.sim.sweep import run_all
from ark.sim.traffic import PresetWorkload
if __name__ == "__main__":
    experiment = Experiment(workload=PresetWorkload(requests=20), schemes=("ideal",), seeds=tuple(range(50)))
    runs = run_all(experiment, processes=1)
    next(runs)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_workers_do_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    """The worker holds the other end of stdout: reading to its end waits for the worker."""
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, timeout=300, check=False)
    assert done.returncode == -9


INTERRUPTED = """
import multiprocessing, os, signal
from ark.sim.experiment import Experiment
from ark.sim.sweep import run_all
from ark.sim.traffic import PresetWorkload

seen = []

def interrupt(*_):
    seen.extend(multiprocessing.active_children())
    if len(seen) > 2:  # they run for some time and are in their imports still
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    signal.signal(signal.SIGALRM, interrupt)
    runs = run_all(Experiment(workload=PresetWorkload(requests=20), qps=(5.0,)), processes=2)
    signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
    try:
        list(runs)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.slow
def test_an_interrupt_ends_workers_without_a_word_of_theirs(tmp_path: Path) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, timeout=300, check=False, start_new_session=True
    )
    assert (done.returncode, done.stdout) == (0, b"interrupted\n")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("text", "cv"), [("constant", 0.0), ("gamma:2.5", 2.5)])
def test_a_named_workload_takes_other_arrivals(text: str, cv: float) -> None:
    workload = PresetWorkload("mooncake-conversation", 20_000, parse_arrivals(text))
    requests = requests_of(workload, qps=5.0, seed=0)
    gaps_s = np.diff(requests.arrived_s)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.03, abs=1e-6)
    assert gaps_s.mean() == pytest.approx(0.2, rel=0.06)
    own = requests_of(replace(workload, arrivals=None), qps=5.0, seed=0)
    assert np.array_equal(own.prompt_tokens, requests.prompt_tokens)
    assert f"{text} arrivals" in requests.origin
    described = Experiment(workload=workload).describe()["workload"]
    assert isinstance(described, dict)
    assert described["arrivals"] == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        *((scheme, SchemeOptions()) for scheme in SCHEMES),
        ("ark", SchemeOptions(lag_ns=50_000, stripes=3, moves=True)),
    ],
)
def test_late_times_lose_no_more_than_their_rounding(scheme: str, options: SchemeOptions) -> None:
    requests = paper_requests(qps=25, requests=200, seed=0)
    nics = [f"h{number}" for number in range(16)]
    flows = make_flows(requests, kv_model("llama-3-8b"), nics[:8], nics[8:], 0)
    early, late = (
        run_point(
            Experiment(
                workload=FlowWorkload(replace(flows, start_ns=flows.start_ns + shift_ns)),
                qps=None,
                options=options,
            ),
            scheme,
            None,
            0,
        )
        for shift_ns in (0, TIME_MAX_NS - 2**42)  # the last 73 minutes that are allowed
    )
    assert late.path == early.path
    # One rounding to 8 ns an event, with hundreds of events (thousands with stripes) in a transfer.
    assert np.abs(late.fct_ns - early.fct_ns).max() < 1e-5 * early.fct_ns.mean()
