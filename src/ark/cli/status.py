"""``ark status``: what this host's agent knows, as tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.cli.output import note, print_json, print_table
from ark.client import Client
from ark.units import format_rate, format_size, format_time

app: Final = cyclopts.App(name="status")

Row = Mapping[str, object]

ROWS_SHOWN: Final = 40
"""Up to how many rows a table shows; ``--json`` has them all (to 10,000)."""

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "peers": ("host", "address", "live", "proven", "reservations"),
    "transfers": ("flow", "client", "between", "size_bytes", "kind", "paths", "source_ports", "age_s"),
    "reservations": ("host", "flow", "state", "between", "paths", "size_bytes"),
    "links": ("link", "between", "rate_bps", "flows", "size_bytes"),
    "maps": ("between", "dport", "valid", "epoch", "missing"),
}
"""The tables and those of their columns that fit into 80; ``--json`` has all."""

WHY: Final = ("ago_s", "input", "from", "rival", "event", "paths")

FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "bytes": format_size,
    "bps": format_rate,
    "s": format_time,
}

Socket = Annotated[str | None, Parameter(help="The agent's socket; by default $ARK_SOCKET or the usual one.")]


@app.default
def status(
    *,
    socket: Socket = None,
    why: Annotated[
        int | None, Parameter(help="Show what was decided for one flow of this host, and why.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object.", negative=())] = False,
) -> None:
    """Show what this host's agent knows: peers, transfers, reservations, links."""
    client = Client(socket)
    try:
        if why is not None:
            _show_why(why, client.status("why", why), as_json=json)
            return
        summary = client.status("summary")
        tables = {name: client.status(name) for name in TABLES}
    finally:
        client.close()
    if json:
        print_json({**summary, **{f"{name}_table": found["results"] for name, found in tables.items()}})
        return
    _print_summary(summary)
    for name in TABLES:
        rows = rows_of(tables[name])
        if name == "links":
            rows = [row for row in rows if row["flows"]]
        if name == "maps":
            rows = [row for row in rows if row["missing"] or not row["valid"]]
        if rows:
            _print(name, TABLES[name], rows, tables[name]["total"])


def rows_of(table: Row) -> list[Row]:
    """The rows of a table of the agent's."""
    results = table["results"]
    assert isinstance(results, list)
    return results


def cell(row: Row, name: str) -> object:
    """One column of a row, for people."""
    if name == "between":
        return f"{row['source']} > {row['target']}"
    if name == "state" and row["fallback"]:
        return f"{row['state']} (fallback)"
    return shown(name, row[name])


def shown(name: str, value: object) -> object:
    """A value for people, by the unit in its name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        suffix = name.rpartition("_")[2]
        return FORMATS[suffix](value) if suffix in FORMATS else f"{value:g}" if value % 1 else int(value)
    if isinstance(value, list):
        return ";".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(map(str, value.values()))
    return "–" if value is None else value


def heading(name: str) -> str:
    """A column's name for people: without its unit, which the values have."""
    for unit in FORMATS:
        name = name.removesuffix(f"_{unit}")
    return {"between": "from > to", "source_ports": "ports", "missing": "paths lost"}.get(
        name, name.replace("_", " ")
    )


def _print_summary(summary: Row) -> None:
    state = "another host uses our id: nothing is steered" if summary["cloned"] else "ok"
    dry = ", dry run" if summary["dry_run"] else ""
    print(f"{summary['host']}: {state}{dry}, up {shown('up_s', summary['up_s'])}")
    blind = ", too few: paths are chosen by hash" if summary["blind"] else ""
    print(f"  {'peers heard':<16}{summary['peers_heard']} of {summary['peers']}{blind}")
    for name in ("transfers", "reservations", "clients", "fabric", "policy", "address"):
        print(f"  {name:<16}{summary[name]}")
    learned = summary["learned"]
    assert isinstance(learned, Mapping)
    if learned["epoch"]:
        said = f"{learned['valid']} maps valid, {learned['in_doubt']} in doubt, epoch {learned['epoch']}"
        print(f"  {'learned paths':<16}{said}")
    for group in ("decisions", "replication", "network"):
        counters = summary[group]
        assert isinstance(counters, Mapping)
        print(f"  {group:<16}{', '.join(_counts(counters)) or 'nothing yet'}")
    warnings = summary["warnings"]
    assert isinstance(warnings, list)
    for warning in warnings:
        note(f"warning: {warning}")


def _counts(counters: Mapping[str, object]) -> Iterable[str]:
    """The counters that are not 0."""
    for name, value in counters.items():
        if isinstance(value, Mapping):
            yield from _counts({f"{name} {inner}": count for inner, count in value.items()})
        elif value:
            yield f"{value} {name.replace('_', ' ')}"


def _print(title: str, names: Sequence[str], rows: list[Row], total: object) -> None:
    print_table(
        title,
        [heading(name) for name in names],
        [tuple(cell(row, name) for name in names) for row in rows[:ROWS_SHOWN]],
        caption=f"{total} in all; --json has more" if len(rows) > ROWS_SHOWN else None,
    )


def _show_why(flow: int, table: Row, *, as_json: bool) -> None:
    rows = rows_of(table)
    if as_json:
        print_json({"flow": flow, **table})
    elif rows:
        _print(f"flow {flow}, oldest first", WHY, rows, table["total"])
    else:
        note(f"nothing is remembered of flow {flow}: it is not of this host, or too long ago")
