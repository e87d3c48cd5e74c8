"""``ark models``: what ``ark simulate`` takes for ``--model`` and ``--latency``, with the figures."""

from pathlib import Path
from typing import Annotated, Final

import cyclopts
import msgspec
from cyclopts import Parameter

from ark.cli.output import print_json, print_table
from ark.errors import ConfigError
from ark.units import format_size, format_time
from ark.workload.kv import KvModel, kv_models, read_kv_models
from ark.workload.latency import latency_model, latency_names

app: Final = cyclopts.App(
    name="models", help="List the models whose KV cache is known, or the latency presets."
)

TOKENS: Final = 16_000
"""The prompt whose KV cache a table shows: small enough for every model, above every sliding window."""

TOKENS_LATENCY: Final = (2_000, 16_000, 64_000)
"""The prompts whose prefill a table shows; the fits reach from 512 to 64,000 tokens."""

Switch = Annotated[bool, Parameter(negative=())]


@app.default
def models(*, latencies: Switch = False, models: Path | None = None, json: Switch = False) -> None:
    """List the models whose KV cache is known, or the latency presets.

    Parameters
    ----------
    latencies
        List the presets of --latency: times of prefill and first decode step, by GPU, model, number of GPUs
        that share the model (tp), and tokens a chunk.
    models
        A file of your own models (TOML or JSON); they stand first, and go before those of the same name.
    json
        Print one JSON object, with layers, aliases and sources.
    """
    if latencies and models is not None:
        raise ConfigError("--models: the latency presets have no file; leave it out")
    if latencies:
        _list_latencies(as_json=json)
        return
    own = () if models is None else read_kv_models(models)
    _list_models((*own, *kv_models()), as_json=json)


def _list_models(models: tuple[KvModel, ...], *, as_json: bool) -> None:
    if as_json:
        rows = [msgspec.to_builtins(model) | {"bytes_per_token": model.bytes_per_token} for model in models]
        print_json({"results": rows})
        return
    print_table(
        "Models (--model)",
        ["name", "KV a token", f"of {TOKENS:,}", "the same cache as"],
        [
            (
                model.name,
                format_size(model.bytes_per_token),
                format_size(int(model.kv_bytes(TOKENS))),
                ", ".join(_other_names(model)),
            )
            for model in models
        ],
        caption="--json has all aliases, layers and sources. A file of --models adds yours.",
    )


def _other_names(model: KvModel) -> list[str]:
    """The aliases but for those that only put something before or behind a name that stands already."""
    shown = [model.name]
    for alias in sorted(model.aliases, key=len):
        if not any(f"-{name}-" in f"-{alias}-" for name in shown):
            shown.append(alias)
    return shown[1:]


def _list_latencies(*, as_json: bool) -> None:
    found = [latency_model(name) for name in latency_names()]
    if as_json:
        rows = [
            {
                "name": model.name,
                "origin": model.origin,
                "prefill_s": {str(tokens): float(model.prefill_s(tokens)) for tokens in TOKENS_LATENCY},
                "decode1_s": {str(tokens): float(model.decode1_s(tokens)) for tokens in TOKENS_LATENCY},
            }
            for model in found
        ]
        print_json({"results": rows})
        return
    print_table(
        "Latencies (--latency): prefill of so many tokens, first decode step",
        ["name", *(f"{tokens:,}" for tokens in TOKENS_LATENCY), "decode"],
        [
            (
                model.name,
                *(format_time(float(model.prefill_s(tokens))) for tokens in TOKENS_LATENCY),
                format_time(float(model.decode1_s(TOKENS))),
            )
            for model in found
        ],
        caption=f"Decode at {TOKENS:,} tokens. Fixed times: constant:840ms:10ms. --json has sources.",
    )
