"""Profiles in Vidur's format: per-layer times of one model on one GPU, ``mlp.csv`` and ``attention.csv``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError, Fault
from ark.workload.columns import Number, Text, Whole
from ark.workload.table import Column, Rows, read_table

Floats = NDArray[np.float64]

LINEAR_OPERATIONS: Final = (
    "input_layernorm",
    "attn_pre_proj",
    "attn_rope",
    "attn_post_proj",
    "post_attention_layernorm",
    "mlp_up_proj",
    "mlp_act",
    "mlp_down_proj",
    "add",
)
"""Operations of one layer whose time depends on the number of tokens only, as ``mlp.csv`` names them."""

_SIZE: Final = Whole(0, 1 << 24)
_TIME_MS: Final = Number(0.0, 1e6)
_TRUTH: Final = Text(5, "True|False|true|false|0|1", "True or False")
_WORKERS: Final = "num_tensor_parallel_workers"


@dataclass(frozen=True)
class Points:
    """Measured times: one row of features a point.

    ``features`` is float64[point, feature], ``times_ms`` float64[point].
    """

    features: Floats
    times_ms: Floats


@dataclass(frozen=True)
class Profile:
    """What a profile says of one layer on one GPU.

    Attributes
    ----------
    linear : Points
        Over the number of tokens: all operations that depend on nothing else, summed.
    kv_save : Points
        Over the number of tokens: writing keys and values to the cache.
    prefill_attention : Points
        Over (cached tokens, prompt tokens).
    decode_attention : Points
        Over the cached tokens, for one request.
    """

    linear: Points
    kv_save: Points
    prefill_attention: Points
    decode_attention: Points


def read_profile(folder: Path) -> Profile:
    """The rows of a profile that were measured without tensor parallelism, one request at a time.

    Raises
    ------
    ConfigError
        If a file is missing or no such table, with every fault in it, or if it has no such rows.
    """
    mlp = _read(folder / "mlp.csv", LINEAR_OPERATIONS, {"num_tokens": _SIZE})
    alone = mlp.whole[_WORKERS] == 1
    times = sum((mlp.number[_median(name)] for name in LINEAR_OPERATIONS), np.zeros(len(mlp.line)))
    linear = _points(folder / "mlp.csv", alone, [mlp.whole["num_tokens"]], times, "1 worker")

    path = folder / "attention.csv"
    sizes: dict[str, Column] = dict.fromkeys(("batch_size", "prefill_chunk_size", "kv_cache_size"), _SIZE)
    rows = _read(path, ("attn_prefill", "attn_decode", "attn_kv_cache_save"), sizes | {"is_prefill": _TRUTH})
    prompt, cached = rows.whole["prefill_chunk_size"], rows.whole["kv_cache_size"]
    batch = rows.whole["batch_size"]
    alone = rows.whole[_WORKERS] == 1
    prefill = np.array([cell.lower() in {"true", "1"} for cell in rows.text["is_prefill"]])
    save = rows.number[_median("attn_kv_cache_save")]
    return Profile(
        linear=linear,
        kv_save=_points(path, alone, [np.maximum(prompt, batch)], save, "1 worker"),
        prefill_attention=_points(
            path,
            alone & prefill & (batch == 1),
            [cached, prompt],
            rows.number[_median("attn_prefill")],
            "prefill of 1 request by 1 worker",
        ),
        decode_attention=_points(
            path,
            alone & ~prefill & (batch == 1),
            [cached],
            rows.number[_median("attn_decode")],
            "decode of 1 request by 1 worker",
        ),
    )


def _median(operation: str) -> str:
    return f"time_stats.{operation}.median"


def _read(path: Path, operations: tuple[str, ...], others: dict[str, Column]) -> Rows:
    schema: dict[str, Column] = {_median(name): _TIME_MS for name in operations}
    schema |= others | {_WORKERS: Whole(1, 1024)}
    table = read_table(path, what="a table of Vidur's profiler")
    table.require(*schema)
    return table.rows(schema)


def _points(
    path: Path, chosen: NDArray[np.bool_], features: list[NDArray[np.int64]], times_ms: Floats, what: str
) -> Points:
    if not chosen.any():
        raise ConfigError(Fault(str(path), f"has no row of {what}"))
    return Points(np.column_stack(features)[chosen].astype(np.float64), times_ms[chosen])
