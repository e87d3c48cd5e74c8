from dataclasses import replace

import pytest

from ark.cli.presentation import latency_remarks
from ark.sim.experiment import Experiment
from ark.sim.traffic import FlowWorkload
from ark.workload import kv_model, latency_model, make_flows, paper_requests


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        ("llama-3.3-70b", "Give --latency h100_sxm/meta-llama-3-70b/tp4/whole."),
        ("deepseek-r1", "Give a --latency that fits, see ark models --latencies."),
        ("mixtral-8x7b", "Give a --latency that fits, see ark models --latencies."),
    ],
)
def test_the_default_prefill_times_are_said_to_be_another_models(model: str, advice: str) -> None:
    experiment = Experiment(kv=kv_model(model))
    [text] = latency_remarks(experiment)
    assert text.startswith(
        f"The prefill times (ark_calibrated) are those of an 8B model, not of {experiment.kv.name}"
    )
    assert text.endswith(advice)
    fitting = latency_model("h100_sxm/meta-llama-3-70b/tp4/whole")
    assert latency_remarks(replace(experiment, latency=fitting)) == []


@pytest.mark.parametrize("model", ["llama-3-8b", "Qwen/Qwen3-8B", "mistral-7b"])
def test_an_8b_model_has_them(model: str) -> None:
    assert latency_remarks(Experiment(kv=kv_model(model))) == []


def test_transfers_alone_need_none() -> None:
    flows = make_flows(paper_requests(qps=1, requests=3, seed=0), kv_model("llama-3-8b"), ["h0"], ["h8"], 0)
    assert latency_remarks(Experiment(kv=kv_model("deepseek-v3"), workload=FlowWorkload(flows))) == []
