"""Traces of requests from files: which of the known forms a file has, and its requests."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ark.errors import ConfigError, Fault
from ark.fabric.nearest import nearest
from ark.units import quoted
from ark.workload.csv_traces import ARK, AZURE, BURSTGPT, VIDUR, CsvFormat, Raw
from ark.workload.jitter import batch_note, is_batched, spread_batches
from ark.workload.mooncake import read_mooncake
from ark.workload.requests import Requests
from ark.workload.table import Table
from ark.workload.text_file import read_text

MOONCAKE: Final = "mooncake"
CSV_FORMATS: Final[dict[str, CsvFormat]] = {"ark": ARK, "azure": AZURE, "vidur": VIDUR, "burstgpt": BURSTGPT}
FORMATS: Final = (MOONCAKE, *CSV_FORMATS)
"""Names of all forms that a trace may have."""


def load_requests(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 - the word that people and the flag use
    limit: int | None = None,
    jitter: bool = False,
    seed: int = 0,
    prefix_reuse: bool = False,
    qps: float | None = None,
    time_scale: float | None = None,
) -> Requests:
    """The requests of a trace file, in order of arrival.

    Parameters
    ----------
    path : Path or str
        A text file, not compressed.
    format : str, optional
        One of ``FORMATS``; found from the content where it is not given.
    limit : int, optional
        Take only the first so many requests of the file.
    jitter : bool
        Spread requests that the trace stamps with the same time over the time to the next stamp.
    seed : int
        Of that spreading.
    prefix_reuse : bool
        Take leading blocks that earlier requests had for cached (Mooncake's hashes). The ``prefix_tokens`` of
        our own form count always.
    qps : float, optional
        Stretch all times so that this is the mean rate; without it the trace keeps its own.
    time_scale : float, optional
        Multiply all times by this instead; 0.5 doubles the rate.

    Raises
    ------
    ConfigError
        If the file is no trace of a known form, with every fault in it; or an option does not fit.
    """
    path = Path(path)
    if qps is not None and time_scale is not None:
        raise ConfigError("a rate and a time scale exclude each other; give one of them")
    if limit is not None and limit < 1:
        raise ConfigError(f"{limit} requests are not allowed; give 1 or more")
    if format is not None and format not in FORMATS:
        raise ConfigError(nearest(format, FORMATS, "trace format", "known are"))
    text = read_text(path, what="a trace of requests", lines_max=None if limit is None else limit + 1)
    name, raw = _read(str(path), text, format, limit, prefix_reuse=prefix_reuse)
    requests = _in_order(raw, origin=f"{path.name} ({name} trace)")
    requests = _with_batches(requests, jitter=jitter, seed=seed)
    if prefix_reuse:
        share = requests.prefix_tokens.sum() / requests.prompt_tokens.sum()
        requests = _noted(requests, f"{share:.1%} of the prompt tokens are cached prefixes and not sent")
    if qps is not None:
        return requests.at_rate(qps)
    return requests if time_scale is None else requests.stretched(time_scale)


def _read(
    file: str, text: str, name: str | None, limit: int | None, *, prefix_reuse: bool
) -> tuple[str, Raw]:
    start = text.lstrip()[:1]
    if name == MOONCAKE or (name is None and start == "{"):
        return MOONCAKE, read_mooncake(file, text, limit=limit, prefix_reuse=prefix_reuse)
    if start == "[":
        raise ConfigError(Fault(file, "is one JSON array; write one object a line, without the brackets"))
    table = Table(file, text)
    name = _sniffed(table) if name is None else name
    if prefix_reuse and name != "ark":
        raise ConfigError(
            Fault(file, f"is a {name} trace, which has no block hashes; prefix reuse needs them")
        )
    return name, CSV_FORMATS[name].read(table, limit)


def _sniffed(table: Table) -> str:
    """The form whose columns the header has, or the one that it nearly has."""
    have = set(table.header)
    for name, form in CSV_FORMATS.items():
        if have.issuperset(form.columns):
            return name
    # Half of the columns make a form recognizable: its reader then says what is missing.
    for name, form in CSV_FORMATS.items():
        if 2 * len(have.intersection(form.columns)) > len(form.columns):
            return name
    known = "; ".join(f"{name}: {','.join(form.columns)}" for name, form in CSV_FORMATS.items())
    raise ConfigError(
        Fault(
            f"{table.file}:1",
            f"{quoted(','.join(table.header))} is no header of a known trace ({known}; or Mooncake JSONL)",
        )
    )


def _in_order(raw: Raw, origin: str) -> Requests:
    notes = raw.notes
    early = int(np.count_nonzero(np.diff(raw.arrived_s) < 0))
    order = np.argsort(raw.arrived_s, kind="stable")
    if early:
        notes = (*notes, f"{early} rows stood before an earlier one; all were sorted by time of arrival")
    return Requests(
        arrived_s=raw.arrived_s[order],
        prompt_tokens=raw.prompt_tokens[order],
        output_tokens=raw.output_tokens[order],
        prefix_tokens=raw.prefix_tokens[order],
        origin=origin,
        notes=notes,
    )


def _with_batches(requests: Requests, *, jitter: bool, seed: int) -> Requests:
    """Say that times are batched and what was done about it; spread them if that is wanted."""
    if not is_batched(requests.arrived_s):
        return _noted(requests, "jitter changes nothing: times are not batched") if jitter else requests
    note = batch_note(requests.arrived_s)
    if not jitter:
        return _noted(requests, f"{note}; kept so (jitter would spread them)")
    spread = replace(requests, arrived_s=spread_batches(requests.arrived_s, seed))
    return _noted(spread, f"{note}; spread at random with seed {seed}")


def _noted(requests: Requests, note: str) -> Requests:
    return replace(requests, notes=(*requests.notes, note))
