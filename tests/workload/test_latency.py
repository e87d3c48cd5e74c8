"""Latency presets: their formula, their names, and what they rest on."""

import json

import numpy as np
import pytest
from tests.shared_data import shared_data

from ark.errors import ConfigError
from ark.workload import LATENCY_DEFAULT, kv_model, latency_model, latency_names
from ark.workload.latency import fitting_preset


def test_the_default_is_the_papers_calibration() -> None:
    model = latency_model(LATENCY_DEFAULT)
    length = 13_300
    assert model.prefill_s(length) == pytest.approx((2.728 + 0.040228 * length + 7.8601e-7 * length**2) / 1e3)
    assert model.decode1_s(length) == pytest.approx((9.2881 + 5.3515e-5 * length) / 1e3)


@pytest.mark.parametrize("name", latency_names())
def test_every_preset_rises_with_the_prompt(name: str) -> None:
    model = latency_model(name.upper())
    tokens = np.array([1, 100, 1000, 10_000, 100_000, 1_000_000])
    assert model.name == name
    assert model.origin
    assert model.prefill_s(tokens).min() > 0
    assert bool(np.all(np.diff(model.prefill_s(tokens)) > 0))
    assert bool(np.all(np.diff(model.decode1_s(tokens)) > 0))


def test_presets_are_the_fits_they_were_copied_from() -> None:
    fits = json.loads(shared_data("latency/latency_fits.json").read_text(encoding="utf-8"))
    for name, preset in fits["presets"].items():
        for chunk, fit in preset["prefill"].items():
            model = latency_model(name if chunk == "whole" else f"{name}/{chunk}")
            expected = fit["a_ms"] + fit["b_ms_per_token"] * 2e4 + fit["c_ms_per_token2"] * 4e8
            assert model.prefill_s(20_000) * 1e3 == pytest.approx(expected)
            decode = preset["decode_step_batch1"]
            assert model.decode1_s(20_000) * 1e3 == pytest.approx(
                decode["a_ms"] + decode["b_ms_per_token"] * 2e4
            )


def test_fixed_times() -> None:
    model = latency_model("constant:840ms:10 ms")
    assert model.prefill_s([1, 10**6]).tolist() == [0.84, 0.84]
    assert model.decode1_s(7) == 0.01


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ark_calibratd", 'unknown latency model "ark_calibratd"; did you mean "ark_calibrated"'),
        ("constant:840ms", "write the times of prefill and first decode step like"),
        ("constant:840:10ms", 'has no unit; write "840us"'),
        ("", "unknown latency model"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        latency_model(name)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("model", "preset"),
    [
        ("llama-3-70b", "h100_sxm/meta-llama-3-70b/tp4/whole"),
        ("llama-2-70b", "h100/llama-2-70b-hf/tp4/chunk4096"),
        ("deepseek-v3", None),
    ],
)
def test_a_preset_of_the_model_is_suggested(model: str, preset: str | None) -> None:
    found = kv_model(model)
    assert fitting_preset((found.name, *found.aliases)) == preset
