"""Traces of requests in the CSV forms in common use, and in our own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.workload.arrivals import ARRIVED_S_MAX
from ark.workload.columns import Number, Timestamp, Whole
from ark.workload.faults import FAULTS_MAX, Faults
from ark.workload.table import Column, Rows, Table

Ints = NDArray[np.int64]

TOKENS_MAX: Final = 100_000_000
"""Most tokens of one request; the largest context windows have ten million."""

PROMPT: Final = Whole(1, TOKENS_MAX)
OUTPUT: Final = Whole(0, TOKENS_MAX)
TIME: Final = Number(0.0, ARRIVED_S_MAX)


@dataclass(frozen=True)
class Raw:
    """What a trace's file says, in the file's order."""

    arrived_s: NDArray[np.float64]
    prompt_tokens: Ints
    output_tokens: Ints
    prefix_tokens: Ints
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CsvFormat:
    """One CSV form: how to know it, its columns, and how its rows become requests.

    ``columns`` are those that the header must have, in the order in which messages list them; ``schema`` may
    have more.
    """

    columns: tuple[str, ...]
    schema: Mapping[str, Column]
    requests: Callable[[Table, Rows], Raw]

    def read(self, table: Table, limit: int | None) -> Raw:
        """All requests of the table, or the first ``limit`` rows of it.

        Raises
        ------
        ConfigError
            With every missing column, or every fault of every row.
        """
        table.require(*self.columns)
        return self.requests(table, table.rows(self.schema, limit=limit))


def _none(rows: Rows) -> Ints:
    return np.zeros(len(rows.line), dtype=np.int64)


def _ark(table: Table, rows: Rows) -> Raw:
    prompt = rows.whole["prompt_tokens"]
    prefix = rows.whole.get("prefix_tokens", _none(rows))
    faults = Faults(table.file)
    for index in np.flatnonzero(prefix >= prompt)[:FAULTS_MAX].tolist():
        faults.add(
            f'"{prefix[index]}" is not below the {prompt[index]} tokens of the prompt',
            line=int(rows.line[index]),
            column="prefix_tokens",
        )
    faults.check()
    return Raw(rows.number["arrived_s"], prompt, rows.whole["output_tokens"], prefix)


def _azure(_table: Table, rows: Rows) -> Raw:
    seconds = rows.number["TIMESTAMP"]
    return Raw(
        seconds - seconds.min(), rows.whole["ContextTokens"], rows.whole["GeneratedTokens"], _none(rows)
    )


def _vidur(_table: Table, rows: Rows) -> Raw:
    return Raw(
        rows.number["arrived_at"],
        rows.whole["num_prefill_tokens"],
        rows.whole["num_decode_tokens"],
        _none(rows),
    )


def _burstgpt(table: Table, rows: Rows) -> Raw:
    prompt, output = rows.whole["Request tokens"], rows.whole["Response tokens"]
    served = (prompt > 0) & (output > 0)
    if not served.any():
        faults = Faults(table.file)
        faults.add("has no request that was answered: all have 0 request or response tokens")
        faults.check()
    failed = int(np.count_nonzero(~served))
    note = f"{failed} of {len(prompt)} requests failed (0 response tokens) and are left out"
    return Raw(
        rows.number["Timestamp"][served],
        prompt[served],
        output[served],
        _none(rows)[served],
        (note,) if failed else (),
    )


ARK: Final = CsvFormat(
    ("arrived_s", "prompt_tokens", "output_tokens"),
    {
        "arrived_s": TIME,
        "prompt_tokens": PROMPT,
        "output_tokens": OUTPUT,
        "prefix_tokens": Whole(0, TOKENS_MAX, default=0),
    },
    _ark,
)
AZURE: Final = CsvFormat(
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    {"TIMESTAMP": Timestamp(), "ContextTokens": PROMPT, "GeneratedTokens": OUTPUT},
    _azure,
)
VIDUR: Final = CsvFormat(
    ("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    {"arrived_at": TIME, "num_prefill_tokens": PROMPT, "num_decode_tokens": OUTPUT},
    _vidur,
)
BURSTGPT: Final = CsvFormat(
    ("Timestamp", "Request tokens", "Response tokens"),
    {"Timestamp": TIME, "Request tokens": OUTPUT, "Response tokens": OUTPUT},
    _burstgpt,
)
