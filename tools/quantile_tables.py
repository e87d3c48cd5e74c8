"""Make ``src/ark/workload/data/trace_quantiles.json`` from the public traces themselves.

    python tools/quantile_tables.py FOLDER

FOLDER holds ``AzureLLMInferenceTrace_code.csv`` and ``..._conv.csv`` (Azure Public Dataset, 2023), the first
2000 lines of Mooncake's ``conversation_trace.jsonl`` and ``trace_stats.json`` with the percentiles of the
whole of it. The shape of Mooncake's distributions comes from those 2000 lines; between the percentiles that
are known of the whole trace it is stretched so that they are met.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from ark.workload.jitter import spread_batches
from ark.workload.presets import TableFile, TraceTable
from ark.workload.requests import Requests
from ark.workload.traces import load_requests

Floats = NDArray[np.float64]

TABLE: Final = Path(__file__).resolve().parents[1] / "src/ark/workload/data/trace_quantiles.json"
PROMPT_PROBABILITIES: Final = (
    0.0,
    0.002,
    0.005,
    *np.arange(0.01, 0.995, 0.01).round(2).tolist(),
    0.995,
    0.998,
    1.0,
)
OUTPUT_PROBABILITIES: Final = (
    0.0,
    0.01,
    *np.arange(0.05, 0.96, 0.05).round(2).tolist(),
    0.975,
    0.99,
    0.997,
    1.0,
)
GAP_PROBABILITIES: Final = (
    0.0, 0.001, 0.005, *np.arange(0.02, 0.985, 0.02).round(2).tolist(),
    0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 1.0,
)  # fmt: skip
ROWS_A_SHARE: Final = 250
SHARES_MAX: Final = 32
"""Rows of output quantiles: as many as leave enough requests in each share. Dialogue outputs depend on the
prompt in no monotone way (applications send prompts of their own lengths), so a rank correlation fails."""

JITTERS: Final = 32
"""Random spreadings of Mooncake's 3 s batches that are pooled for the distribution of its gaps."""


def tables(folder: Path) -> TableFile:
    """All tables, from the traces in ``folder``."""
    azure = "Azure LLM inference trace 2023"
    return TableFile(
        prompt_probabilities=PROMPT_PROBABILITIES,
        output_probabilities=OUTPUT_PROBABILITIES,
        gap_probabilities=GAP_PROBABILITIES,
        traces={
            "mooncake-conversation": _mooncake(folder),
            "azure-code": _table(
                load_requests(folder / "AzureLLMInferenceTrace_code.csv"),
                f"{azure}, code",
                "CC-BY 4.0, Microsoft",
            ),
            "azure-conv": _table(
                load_requests(folder / "AzureLLMInferenceTrace_conv.csv"),
                f"{azure}, conversation",
                "CC-BY 4.0, Microsoft",
            ),
        },
    )


def _mooncake(folder: Path) -> TraceTable:
    trace = load_requests(folder / "mooncake_conversation_trace_first2000.jsonl")
    whole = json.loads((folder / "trace_stats.json").read_text(encoding="utf-8"))["mooncake_conversation"]
    stretched = replace(
        trace,
        prompt_tokens=_stretched(trace.prompt_tokens.astype(np.float64), whole["inp"]),
        output_tokens=_stretched(trace.output_tokens.astype(np.float64), whole["outp"]),
    )
    gaps = np.concatenate([np.diff(spread_batches(trace.arrived_s, seed)) for seed in range(JITTERS)])
    made = _table(stretched, "Mooncake conversation trace", "Apache-2.0, Mooncake authors", gaps)
    return msgspec.structs.replace(made, qps=whole["qps"])


def _stretched(values: Floats, known: dict[str, float]) -> NDArray[np.int64]:
    """Values whose quantiles are the known ones, stretched evenly on a log scale in between."""
    names = {"min": 0.0, "p25": 0.25, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    have = np.log(np.quantile(values, list(names.values())))
    want = np.log([known[name] for name in names])
    return np.rint(np.exp(np.interp(np.log(values), have, want))).astype(np.int64)


def _table(trace: Requests, origin: str, license_name: str, gaps: Floats | None = None) -> TraceTable:
    gaps = np.diff(trace.arrived_s) if gaps is None else gaps
    # Shares by rank, so that equal prompts do not all fall into one.
    shares = min(SHARES_MAX, len(trace) // ROWS_A_SHARE)
    by_prompt = np.array_split(trace.output_tokens[np.argsort(trace.prompt_tokens, kind="stable")], shares)
    return TraceTable(
        qps=round(trace.qps, 4),
        prompt_tokens=_quantiles(trace.prompt_tokens, PROMPT_PROBABILITIES, 0),
        output_tokens=tuple(_quantiles(share, OUTPUT_PROBABILITIES, 0) for share in by_prompt),
        unit_gaps=_quantiles(gaps / gaps.mean(), GAP_PROBABILITIES, 5),
        rows=len(trace),
        origin=origin,
        license=license_name,
    )


def _quantiles(
    values: Floats | NDArray[np.int64], probabilities: tuple[float, ...], digits: int
) -> tuple[float, ...]:
    rounded = np.quantile(values, probabilities).round(digits).tolist()
    return tuple(rounded if digits else map(int, rounded))


def main() -> None:
    """Write the tables from the folder that the command line names."""
    text = msgspec.json.format(msgspec.json.encode(tables(Path(sys.argv[1]))), indent=0)
    TABLE.write_bytes(text.replace(b"], ", b"],\n").replace(b": {", b": {\n") + b"\n")


if __name__ == "__main__":
    main()
