"""Flow tables, ``id,src,dst,size_bytes,start_ns[,sport,dport,path]``, read and written."""

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ark.errors import ConfigError, Fault
from ark.fabric.nearest import nearest
from ark.fabric.roce import DPORT
from ark.units import quoted
from ark.workload.columns import Port, Text, Whole
from ark.workload.faults import Faults
from ark.workload.flows import NO_PORT, Flows
from ark.workload.table import Column, Rows, read_table

SIZE_BYTES_MAX: Final = 1 << 50
"""Largest transfer, 1 PiB."""

START_NS_MAX: Final = 10**18
"""Latest start, about 32 years."""

COLUMNS: Final = ("id", "src", "dst", "size_bytes", "start_ns", "sport", "dport", "path")
_REQUIRED: Final = COLUMNS[:5]
_NAME: Final = Text(200, r"[^\s,]+", "a name without blanks and commas")
_SCHEMA: Final[dict[str, Column]] = {
    "id": Text(200, r".+", "a name"),
    "src": _NAME,
    "dst": _NAME,
    "size_bytes": Whole(1, SIZE_BYTES_MAX),
    "start_ns": Whole(0, START_NS_MAX),
    "sport": Port(default=NO_PORT),
    "dport": Port(default=DPORT),
    "path": Text(
        2_000, r"(\d{1,6}([;>]\d{1,6})*)?", 'a path like "2" (or "0;2>3": ; between stripes, > a move)'
    ),
}


def read_flows(path: Path | str, *, nics: Collection[str] | None = None) -> Flows:
    """Transfers from a flow table, in order of start.

    Parameters
    ----------
    path : Path or str
    nics : collection of str, optional
        Names that ``src`` and ``dst`` may have; without it any are taken.

    Returns
    -------
    Flows
        Without a ``sport`` column, or with an empty cell in it, the port is ``NO_PORT``; ``dport`` is RoCE's
        4791 where it is not given. Columns that ARK does not know are kept.

    Raises
    ------
    ConfigError
        If the file is no flow table, with every fault in it: missing columns, sizes and times out of bounds,
        ids that stand there twice, flows from a NIC to itself, unknown NICs.
    """
    table = read_table(Path(path), what="a table of flows")
    table.require(*_REQUIRED)
    faults = Faults(table.file)
    rows = table.rows(_SCHEMA, keep_rest=True, faults=faults)
    rows.check_unique("id", faults)
    _check_ends(rows, nics, faults)
    faults.check()
    count = len(rows.line)
    start = rows.whole["start_ns"]
    order = np.argsort(start, kind="stable")
    early = int(np.count_nonzero(np.diff(start) < 0))
    text = {name: [cells[index] for index in order.tolist()] for name, cells in rows.text.items()}
    return Flows(
        id=text["id"],
        src=text["src"],
        dst=text["dst"],
        size_bytes=rows.whole["size_bytes"][order],
        start_ns=start[order],
        sport=rows.whole.get("sport", np.full(count, NO_PORT))[order].astype(np.int32),
        dport=rows.whole.get("dport", np.full(count, DPORT))[order].astype(np.int32),
        path=text.get("path"),
        extra={name: cells for name, cells in text.items() if name not in COLUMNS},
        notes=(f"{early} rows stood before an earlier one; all were sorted by start",) if early else (),
    )


def write_flows(
    flows: Flows, path: Path | str, *, columns: Mapping[str, Sequence[object]] | None = None
) -> None:
    """Write a flow table: the known columns, those that the flows brought along, and ``columns``.

    A name in ``columns`` that is there already takes its place (``path`` and ``sport`` as they were in the
    end).

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    table: dict[str, Sequence[object]] = {
        "id": flows.id,
        "src": flows.src,
        "dst": flows.dst,
        "size_bytes": flows.size_bytes.tolist(),
        "start_ns": flows.start_ns.tolist(),
        "sport": ["" if port == NO_PORT else port for port in flows.sport.tolist()],
        "dport": flows.dport.tolist(),
    }
    if flows.path is not None:
        table["path"] = flows.path
    table |= dict(flows.extra) | dict(columns or {})
    assert all(len(column) == len(flows) for column in table.values())
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    except OSError as error:
        raise ConfigError(Fault(str(path), f"cannot be written: {error.strerror or error}")) from None


def _check_ends(rows: Rows, nics: Collection[str] | None, faults: Faults) -> None:
    known = set(nics or ())
    ends = zip(rows.text["src"], rows.text["dst"], rows.line.tolist(), strict=True)
    for source, target, line in ends:
        if source == target != "":
            faults.add(f"{quoted(target)} is the source too; a flow needs two NICs", line=line, column="dst")
        if nics is None:
            continue
        for column, name in (("src", source), ("dst", target)):
            if name and name not in known and not faults.full:
                faults.add(nearest(name, nics, "NIC", "the fabric has"), line=line, column=column)
