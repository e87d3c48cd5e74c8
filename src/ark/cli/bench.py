"""``ark bench``: what ARK costs on this machine."""

from dataclasses import asdict
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.cli.output import note, print_json, print_table
from ark.cli.status import Socket
from ark.client import Client
from ark.errors import AgentUnavailable

app: Final = cyclopts.App(name="bench")


@app.default
def bench(
    *,
    socket: Socket = None,
    json: Annotated[bool, Parameter(help="Print one JSON object.", negative=())] = False,
) -> None:
    """Measure what decisions, path maps, both engines and this host's agent cost on this machine.

    Where an agent answers, 2,000 transfers of 1 GB are reserved and released, one after the other; nothing is
    sent, but peers hear of those that last longer than the agent's hold.
    """
    from ark.report.bench import agent_pairs, measure  # noqa: PLC0415 - NumPy and Numba are not for --help
    from ark.report.microbench import machine  # noqa: PLC0415

    note("Measuring; this takes some seconds.")
    figures = list(measure())
    no_agent = None
    client = Client(socket)
    try:
        figures += agent_pairs(client)
    except AgentUnavailable as error:
        no_agent = str(error)
    finally:
        client.close()
    if json:
        rows = [asdict(figure) for figure in figures]
        print_json({"machine": machine(), "results": rows, "agent_unavailable": no_agent})
        return
    print_table(
        "What ARK costs on this machine",
        ("what", "value", "unit", "count"),
        [
            (
                figure.what,
                f"{figure.value:,.4g}" if figure.value < 1000 else f"{figure.value:,.0f}",
                figure.unit.replace("us", "µs"),
                figure.count,
            )
            for figure in figures
        ],
        caption=f"{machine()}; CPU time, best of {figures[0].rounds}; of the agent wall time",
    )
    if no_agent is not None:
        print(f"agent: not measured, {no_agent}")
