"""Workloads without a file: the paper's, and ones drawn from quantile tables of public traces.

A table keeps the distribution of prompt lengths, that of output lengths in each equal share of the prompts,
and that of the gaps between arrivals. It does not keep what the order of requests says: rates that change
over minutes, sessions, shared prefixes. ``tools/quantile_tables.py`` makes the tables.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError
from ark.fabric.nearest import nearest
from ark.workload.arrivals import Arrivals, Poisson, arrival_times_s
from ark.workload.paper import checked_count, paper_requests
from ark.workload.requests import Requests
from ark.workload.streams import Purpose, stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PAPER: Final = "paper"
PAPER_QPS: Final = 25.0
"""The paper's rate where none is given: the one of its largest gain (Figure 2)."""


class TraceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of one trace; all quantiles are values at the probabilities of the file.

    Attributes
    ----------
    qps : float
        Mean rate of the whole trace.
    prompt_tokens : tuple of float
        Quantiles of the prompt length.
    output_tokens : tuple of tuples of float
        Quantiles of the output length, one row for each equal share of the prompts, shortest prompts first.
    unit_gaps : tuple of float
        Quantiles of the gap between arrivals over the mean gap.
    rows : int
        Requests that the table was made from.
    origin, license : str
    """

    qps: float
    prompt_tokens: tuple[float, ...]
    output_tokens: tuple[tuple[float, ...], ...]
    unit_gaps: tuple[float, ...]
    rows: int
    origin: str
    license: str


class TableFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of tables: three grids of probabilities, and the traces by preset name."""

    prompt_probabilities: tuple[float, ...]
    output_probabilities: tuple[float, ...]
    gap_probabilities: tuple[float, ...]
    traces: dict[str, TraceTable]


@dataclass(frozen=True, slots=True)
class Measured:
    """Independent gaps with the distribution that a trace had, scaled to mean 1."""

    probabilities: tuple[float, ...]
    gaps: tuple[float, ...]

    def unit_gaps(self, count: int, rng: np.random.Generator) -> Floats:
        """Gaps of mean 1: float64[count]."""
        gaps = np.array(self.gaps)
        # Between two quantiles the gap is taken as uniform: this is the mean of exactly what is drawn.
        mean = float(np.sum(np.diff(self.probabilities) * (gaps[1:] + gaps[:-1]) / 2))
        return np.asarray(np.interp(rng.random(count), self.probabilities, gaps / mean))

    def __str__(self) -> str:
        return "measured"


def preset_names() -> tuple[str, ...]:
    """Names of all presets."""
    return (PAPER, *_tables().traces)


def preset_qps(name: str) -> float:
    """The rate of a preset where none is given: that of its trace, requests/s.

    Raises
    ------
    ConfigError
        If there is no such preset.
    """
    return PAPER_QPS if name == PAPER else _table(name).qps


def preset_arrivals(name: str) -> Arrivals:
    """The arrival process of a preset where none is given: the paper's, or the gaps that its trace had.

    Raises
    ------
    ConfigError
        If there is no such preset.
    """
    return Poisson() if name == PAPER else Measured(_tables().gap_probabilities, _table(name).unit_gaps)


def preset_requests(
    name: str, *, requests: int, seed: int, qps: float | None = None, arrivals: Arrivals | None = None
) -> Requests:
    """Requests drawn from a preset.

    Parameters
    ----------
    name : str
        One of ``preset_names``.
    requests : int
        How many; the first n of a seed are the same for every count.
    seed : int
    qps : float, optional
        Mean rate; that of the trace (``preset_qps``) where it is not given.
    arrivals : Arrivals, optional
        In place of the preset's own (``preset_arrivals``).

    Raises
    ------
    ConfigError
        If there is no such preset, or the rate or count is not allowed.
    """
    rate = preset_qps(name) if qps is None else qps
    if name == PAPER:
        return paper_requests(qps=rate, requests=requests, seed=seed, arrivals=arrivals)
    checked_count(requests)
    table, grids = _table(name), _tables()
    process = arrivals or preset_arrivals(name)
    uniform = stream(seed, Purpose.TOKENS).random(requests)
    prompt = np.rint(np.interp(uniform, grids.prompt_probabilities, table.prompt_tokens)).astype(np.int64)
    return Requests(
        arrived_s=arrival_times_s(process, qps=rate, count=requests, rng=stream(seed, Purpose.ARRIVALS)),
        prompt_tokens=prompt,
        output_tokens=_outputs(table, grids, uniform, stream(seed, Purpose.OUTPUT_TOKENS).random(requests)),
        prefix_tokens=np.zeros(requests, dtype=np.int64),
        origin=f"{name} (drawn from quantiles of {table.origin}; {process} arrivals)",
    )


def _outputs(table: TraceTable, grids: TableFile, prompt_rank: Floats, uniform: Floats) -> Ints:
    """Output lengths, each from the row of its prompt's share: int64[request]."""
    shares = len(table.output_tokens)
    share = np.minimum((prompt_rank * shares).astype(np.int64), shares - 1)
    outputs = np.empty(len(uniform), dtype=np.int64)
    for index, quantiles in enumerate(table.output_tokens):
        here = share == index
        outputs[here] = np.rint(np.interp(uniform[here], grids.output_probabilities, quantiles))
    return outputs


def _table(name: str) -> TraceTable:
    traces = _tables().traces
    if name not in traces:
        raise ConfigError(nearest(name, preset_names(), "workload", "known are"))
    return traces[name]


@lru_cache(maxsize=1)
def _tables() -> TableFile:
    raw = (files("ark.workload") / "data" / "trace_quantiles.json").read_bytes()
    return msgspec.json.decode(raw, type=TableFile)
