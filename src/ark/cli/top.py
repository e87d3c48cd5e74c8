"""``ark top``: spines, links and transfers of this host's agent, live in the terminal."""

import time
from collections import defaultdict
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ark.cli.status import TABLES, Row, Socket, cell, heading, rows_of
from ark.client import Client
from ark.errors import ConfigError
from ark.units import format_size, parse_time

app: Final = cyclopts.App(name="top")

BAR: Final = 30
"""Columns of the longest bar."""

ROWS_SHOWN: Final = 20


@app.default
def top(
    *,
    socket: Socket = None,
    every: Annotated[str, Parameter(help="Time between two looks.")] = "1s",
    count: Annotated[
        int, Parameter(help="Print so many looks, one below the other; 0 for a live screen.")
    ] = 0,
) -> None:
    """Show switches and transfers live; Ctrl-C ends it."""
    every_ns = parse_time(every)
    if every_ns < 50_000_000:
        raise ConfigError(f"--every {every}: allowed is 50ms and more")
    if count < 0:
        raise ConfigError(f"--count: {count} is not allowed; give 0 or more")
    client = Client(socket)
    try:
        if count:
            _print_looks(client, count, every_ns / 1e9)
            return
        with Live(auto_refresh=False, screen=True) as live:
            while True:
                live.update(view(client), refresh=True)
                time.sleep(every_ns / 1e9)
    finally:
        client.close()


def _print_looks(client: Client, count: int, every_s: float) -> None:
    console = Console(highlight=False)
    for look in range(count):
        if look:
            time.sleep(every_s)
        console.print(view(client))


def view(client: Client) -> RenderableType:
    """One look."""
    summary, links = client.status("summary"), rows_of(client.status("links"))
    transfers = rows_of(client.status("transfers"))
    head = (
        f"{summary['host']}  {summary['fabric']}  peers {summary['peers_heard']} of {summary['peers']}  "
        f"transfers {summary['transfers']}  reservations {summary['reservations']}"
    )
    return Group(Text(head, style="bold"), _links(links), _transfers(transfers))


def _links(links: list[Row]) -> Table:
    """Flows that enter each switch, as bars: the switches that most lead to first."""
    flows: defaultdict[str, float] = defaultdict(float)
    sizes: defaultdict[str, int] = defaultdict(int)
    for link in links:
        target = str(link["target"])
        flows[target] += float(str(link["flows"]))
        sizes[target] += int(str(link["size_bytes"]))
    most = max(flows.values(), default=0.0)
    table = Table(
        "into", "flows", "relative", "announced", title="Switches", title_justify="left", box=SIMPLE_HEAD
    )
    for name in sorted(flows)[: 2 * ROWS_SHOWN]:
        bar = "█" * round(BAR * flows[name] / most) if most else ""
        table.add_row(name, f"{flows[name]:g}", Text(bar, style="green"), format_size(sizes[name]))
    return table


def _transfers(transfers: list[Row]) -> Table:
    names = TABLES["transfers"]
    table = Table(
        *map(heading, names), title=f"Transfers ({len(transfers)})", title_justify="left", box=SIMPLE_HEAD
    )
    for row in transfers[-ROWS_SHOWN:]:
        table.add_row(*(Text(str(cell(row, name))) for name in names))
    return table
