"""KV sizes: the models that everybody can check by hand, the table's own rules, and files of users."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload import KvModel, kv_model, kv_models
from ark.workload.kv import DTYPE_BITS, LayerGroup, read_kv_models


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("llama-3-8b", 2 * 32 * 8 * 128 * 2),
        ("llama-3.1-405b", 504 * 1024),
        ("llama-3.3-70b-instruct", 320 * 1024),
        ("meta-llama/Meta-Llama-3-8B", 131_072),
        ("Qwen/Qwen3-32B", 256 * 1024),
        ("qwen3-235b-a22b", 2 * 94 * 4 * 128 * 2),
        ("qwen2.5-72b-instruct", 320 * 1024),
        ("deepseek-ai/DeepSeek-R1", 61 * (512 + 64) * 2),
        ("kimi-k2-instruct", 61 * 576 * 2),
        ("mixtral-8x22b", 2 * 56 * 8 * 128 * 2),
        ("glm-4.5-air", 2 * 46 * 8 * 128 * 2),
    ],
)
def test_bytes_per_token(name: str, bytes_per_token: int) -> None:
    model = kv_model(name)
    assert model.bytes_per_token == bytes_per_token
    assert model.kv_bytes([1, 1000]).tolist() == [bytes_per_token, 1000 * bytes_per_token]


def test_windows_hold_only_the_last_tokens() -> None:
    model = kv_model("gpt-oss-120b")
    layer = 2 * 8 * 64 * 2
    assert model.kv_bytes(100) == 36 * layer * 100
    assert model.kv_bytes(10_000) == 18 * layer * (10_000 + 128)


def test_linear_attention_keeps_one_state() -> None:
    model = kv_model("qwen3-next-80b-a3b")
    per_token = 2 * 12 * 2 * 256 * 2
    assert model.kv_bytes(2000) - model.kv_bytes(1000) == 1000 * per_token
    assert model.kv_bytes(1) - per_token == 36 * (32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2)


def test_the_type_of_the_numbers_scales_the_cache() -> None:
    full = kv_model("llama-3-8b").kv_bytes(777)
    assert kv_model("llama-3-8b", dtype="fp8").kv_bytes(777) * 2 == full
    assert kv_model("llama-3-8b", dtype="int4").kv_bytes(777) * 4 == full
    # What has a type of its own keeps it: the indexer's keys.
    latent = kv_model("deepseek-v3.2", dtype="fp8").kv_bytes(1)
    assert latent == 61 * (576 + 132)


@pytest.mark.parametrize("model", kv_models(), ids=lambda model: model.name)
def test_every_row_says_where_it_is_from(model: KvModel) -> None:
    assert model.source
    assert model.name == model.name.lower()
    assert all(kv_model(alias) == model for alias in (model.name, *model.aliases))
    assert 10_000 < model.bytes_per_token < 1_000_000


@given(
    st.sampled_from(kv_models()),
    st.lists(st.integers(1, 10**8), min_size=1),
    st.sampled_from(list(DTYPE_BITS)),
)
def test_caches_grow_with_the_prompt(model: KvModel, tokens: list[int], dtype: str) -> None:
    sizes = kv_model(model.name, dtype=dtype).kv_bytes(np.sort(tokens))
    assert sizes.dtype == np.int64
    assert sizes.min() > 0
    assert bool(np.all(np.diff(sizes) >= 0))


def test_unknown_models_get_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r'unknown model "lama-3-8b"; did you mean "llama-3-8b"'):
        kv_model("lama-3-8b")
    with pytest.raises(ConfigError, match='unknown KV data type "bf8"; known are fp32, bf16'):
        kv_model("llama-3-8b", dtype="bf8")


TOML = """
[[model]]
name = "ours"
aliases = ["llama-3-8b"]
layers = [{ count = 10, kv_heads = 2, head_dim = 64 }, { count = 5, latent = 100, window = 50 }]
dtype = "fp8"
"""


def test_a_users_file_adds_models_and_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(TOML, encoding="utf-8")
    for name in ("ours", "llama-3-8b"):
        assert kv_model(name, file=file).kv_bytes(60) == 10 * 2 * 2 * 64 * 60 + 5 * 100 * 50
    assert kv_model("qwen3-8b", file=file) == kv_model("qwen3-8b")
    as_json = tmp_path / "models.json"
    as_json.write_text('{"model": [{"name": "j", "layers": [{"count": 1, "latent": 3}]}]}', encoding="utf-8")
    assert kv_model("j", file=as_json).kv_bytes(4) == 24


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[model]]\nname = 3", "Expected `str`, got `int` - at `$.model[0].name`"),
        ('[[model]]\nname = "x"', "missing required field `layers`"),
        ('[[model]]\nname = "x"\nlayers = []', "length >= 1"),
        (
            '[[model]]\nname = "x"\nlayers = [{count = 1}]',
            "give either kv_heads and head_dim, or latent, or state",
        ),
        ('[[model]]\nname = "x"\nlayers = [{count = 1, kv_heads = 1}]', "give either kv_heads and head_dim"),
        ('[[model]]\nname = "x"\nlayers = [{count = 1, latent = 1, state = 1}]', "give either kv_heads"),
        ('[[model]]\nname = "x"\nlayers = [{count = 1, state = 1, window = 1}]', "window not with state"),
        ('[[model]]\nname = "x"\nlayers = [{count = 1, latent = 1, value_dim = 1}]', "value_dim goes with"),
        ('[[model]]\nname = "x"\nlayers = [{count = 0, latent = 1}]', ">= 1"),
        ('[[model]]\nname = "x"\nlayers = [{count = 1000000, latent = 1000000000}]', "bytes a token are too"),
        (
            '[[model]]\nname = "x"\nlayers = [{count = 1000000, state = 1000000000}]',
            "the states are too large",
        ),
        (
            '[[model]]\nname = "x"\ndtype = "fp7"\nlayers = [{count = 1, latent = 1}]',
            'dtype "fp7" is not known',
        ),
        ('[[model]]\nname = "x"\nlayer = 1\nlayers = [{count = 1, latent = 1}]', "unknown field `layer`"),
        (TOML + TOML, 'model "ours" stands there twice'),
        ("name = ", "Invalid value"),
        ('{"model": ', "truncated"),
        ("<!DOCTYPE html><html></html>", "is a web page"),
        ("", "is empty; expected a file of models"),
    ],
)
def test_faults_of_a_users_file_are_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_kv_models(file)
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(file))


def test_layers_of_one_kind_count_their_numbers() -> None:
    assert LayerGroup(count=1, kv_heads=4, head_dim=192, value_dim=128).values_per_token == 4 * (192 + 128)
    assert LayerGroup(count=1, state=5).values_per_token == 0
