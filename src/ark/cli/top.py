"""``ark top``: spines, links and transfers of this host's agent, live in the terminal."""

import time
from collections import defaultdict
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ark.cli.status import Row, Socket, heading, rows_of, shown
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
    count: Annotated[int, Parameter(help="Looks before it ends; 0 for never.")] = 0,
) -> None:
    """Show switches, links and transfers live; Ctrl-C ends it."""
    every_ns = parse_time(every)
    if every_ns < 50_000_000:
        raise ConfigError(f"--every {every}: allowed is 50ms and more")
    client = Client(socket)
    try:
        with Live(auto_refresh=False, screen=count == 0) as live:
            looks = 0
            while not count or looks < count:
                if looks:
                    time.sleep(every_ns / 1e9)
                live.update(view(client), refresh=True)
                looks += 1
    finally:
        client.close()


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
    table = Table("into", "flows", "", "announced", title="Switches", title_justify="left")
    for name in sorted(flows)[: 2 * ROWS_SHOWN]:
        bar = "█" * round(BAR * flows[name] / most) if most else ""
        table.add_row(name, f"{flows[name]:g}", Text(bar, style="green"), format_size(sizes[name]))
    return table


def _transfers(transfers: list[Row]) -> Table:
    names = ("flow", "client", "target", "size_bytes", "kind", "paths", "source_ports", "age_s")
    table = Table(*map(heading, names), title=f"Transfers ({len(transfers)})", title_justify="left")
    for row in transfers[-ROWS_SHOWN:]:
        table.add_row(*(Text(str(shown(name, row[name]))) for name in names))
    return table
