"""Presets drawn from quantile tables: they look like the traces that they stand for."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest
from tests.shared_data import shared_data

from ark.errors import ConfigError
from ark.workload import load_requests, paper_requests, preset_names, preset_qps, preset_requests
from ark.workload.arrivals import Constant

TRACES = {
    "mooncake-conversation": ("mooncake_conversation", "inp", "outp"),
    "azure-code": ("azure2023_code", "ctx", "gen"),
    "azure-conv": ("azure2023_conv", "ctx", "gen"),
}


def test_names() -> None:
    assert preset_names() == ("paper", *TRACES)
    with pytest.raises(ConfigError, match='unknown workload "azure-cod"; did you mean "azure-code"'):
        preset_requests("azure-cod", requests=1, seed=0)
    with pytest.raises(ConfigError, match="unknown workload"):
        preset_qps("moon")


def test_the_papers_preset_is_the_papers_workload() -> None:
    preset = preset_requests("paper", requests=50, seed=3)
    paper = paper_requests(qps=25, requests=50, seed=3)
    np.testing.assert_array_equal(preset.arrived_s, paper.arrived_s)
    np.testing.assert_array_equal(preset.prompt_tokens, paper.prompt_tokens)


@pytest.mark.parametrize("name", TRACES)
def test_a_preset_has_the_percentiles_and_rate_of_its_trace(name: str) -> None:
    stats = json.loads(shared_data("traces/trace_stats.json").read_text(encoding="utf-8"))
    key, prompts, outputs = TRACES[name]
    trace = stats[key]
    drawn = preset_requests(name, requests=200_000, seed=1)
    assert preset_qps(name) == pytest.approx(trace["qps"], rel=1e-3)
    for column, known in ((drawn.prompt_tokens, trace[prompts]), (drawn.output_tokens, trace[outputs])):
        assert column.min() == known["min"]
        assert column.max() <= known["max"]
        assert column.mean() == pytest.approx(known["mean"], rel=0.04)
        for point, share in (("p25", 25), ("p50", 50), ("p90", 90), ("p99", 99)):
            assert np.percentile(column, share) == pytest.approx(known[point], rel=0.06, abs=1)


@pytest.mark.parametrize("name", ["azure-code", "azure-conv"])
def test_a_preset_has_the_bursts_of_its_trace(name: str) -> None:
    file = f"traces/AzureLLMInferenceTrace_{name.removeprefix('azure-')}.csv"
    real = np.diff(load_requests(shared_data(file)).arrived_s)
    drawn = np.diff(preset_requests(name, requests=200_000, seed=1).arrived_s)
    assert drawn.std() / drawn.mean() == pytest.approx(real.std() / real.mean(), rel=0.15)


def test_outputs_depend_on_prompts_as_in_the_trace() -> None:
    """Medians in bands of prompts lie far apart (66 to 407 tokens) and in no order; draws follow them."""
    real = load_requests(shared_data("traces/AzureLLMInferenceTrace_conv.csv"))
    drawn = preset_requests("azure-conv", requests=100_000, seed=1)
    medians = np.array(
        [
            [
                np.median(each.output_tokens[(each.prompt_tokens >= low) & (each.prompt_tokens < high)])
                for each in (real, drawn)
            ]
            for low, high in ((250, 380), (1050, 1150), (2500, 4000))
        ]
    )
    np.testing.assert_allclose(medians[:, 1], medians[:, 0], rtol=0.2)
    assert abs(medians[:, 0] / np.median(real.output_tokens) - 1).min() > 0.25


@pytest.mark.parametrize("name", TRACES)
def test_a_seed_gives_the_same_requests_at_every_rate_and_count(name: str) -> None:
    slow = preset_requests(name, requests=40, seed=9, qps=1)
    fast = preset_requests(name, requests=90, seed=9, qps=5)
    np.testing.assert_array_equal(slow.prompt_tokens, fast.prompt_tokens[:40])
    np.testing.assert_array_equal(slow.output_tokens, fast.output_tokens[:40])
    np.testing.assert_allclose(slow.arrived_s, fast.arrived_s[:40] * 5)
    even = preset_requests(name, requests=40, seed=9, qps=1, arrivals=Constant())
    np.testing.assert_array_equal(slow.prompt_tokens, even.prompt_tokens)
    assert even.arrived_s.tolist() == list(range(1, 41))


def test_the_rate_is_the_one_asked_for() -> None:
    drawn = preset_requests("azure-conv", requests=100_000, seed=0, qps=40)
    assert drawn.qps == pytest.approx(40, rel=0.02)


def tool() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "quantile_tables.py"
    spec = importlib.util.spec_from_file_location("quantile_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_tables_are_what_the_tool_makes_of_the_traces() -> None:
    shared_data("traces/mooncake_conversation_trace_first2000.jsonl")
    module = tool()
    made = module.tables(shared_data("traces"))
    committed = msgspec.json.decode(module.TABLE.read_bytes(), type=type(made))
    for name, table in made.traces.items():
        for field in ("prompt_tokens", "unit_gaps", "qps"):
            np.testing.assert_allclose(
                getattr(committed.traces[name], field), getattr(table, field), atol=2e-5
            )
        np.testing.assert_allclose(committed.traces[name].output_tokens, table.output_tokens)
    assert committed.prompt_probabilities == made.prompt_probabilities
