"""``ark fabric``: check a fabric file, show what it means, or print its schema."""

from pathlib import Path
from textwrap import fill
from typing import Annotated, Final

import cyclopts
import msgspec
from cyclopts import Parameter

from ark import __version__
from ark.cli.flags import fabric_of
from ark.cli.output import note, print_json, print_table
from ark.errors import ConfigError
from ark.fabric import Fabric, to_toml
from ark.fabric import Path as FabricPath
from ark.fabric.schema_text import json_schema, sections
from ark.fabric.summary import Summary, lines, summarise

app: Final = cyclopts.App(
    name="fabric", help="Check a fabric file, show what it means, or print its schema.", version=__version__
)

Json = Annotated[bool, Parameter(help="Print one JSON object.")]

WIDTH: Final = 100
"""Columns of the printed schema."""

INTRODUCTION: Final = """\
A fabric file is TOML. Its key "kind" says which other keys it has. Each key is listed with its default,
then how it is written, then what it means. Rates and times are texts with a unit: "400 Gbit/s", "500ns"."""

PATHS_SHOWN: Final = 64
"""Up to how many paths a table shows; ``--json`` has them all."""


@app.command
def check(file: Path, *, json: Json = False) -> None:
    """Check a fabric file: its figures, or everything that is wrong with it (exit code 2).

    Parameters
    ----------
    file
        Fabric file (TOML).
    """
    try:
        summary = summarise(fabric_of(file))
    except ConfigError as error:
        if json:
            print_json({"ok": False, "faults": [str(fault) for fault in error.faults]})
        raise
    if json:
        print_json({"ok": True, **msgspec.to_builtins(summary)})
    else:
        _print_summary(summary)


@app.command
def show(
    file: Path | None = None,
    *,
    paths: Annotated[
        tuple[str, str] | None,
        Parameter(help="Show the equal-cost paths between two NICs, by number.", negative=()),
    ] = None,
    toml: Annotated[bool, Parameter(help="Print the fabric written out: every host, switch, link.")] = False,
    json: Json = False,
) -> None:
    """Show what a fabric file means: its hosts and switches, the paths of a pair, or all of it written out.

    Parameters
    ----------
    file
        Fabric file (TOML); without one, the fabric of the paper.
    """
    fabric = fabric_of(file)
    if toml:
        text = to_toml(fabric)
        print_json({"toml": text}) if json else print(text, end="")
    elif paths is not None:
        _show_paths(fabric, *paths, json=json)
    elif json:
        print_json(_as_json(fabric))
    else:
        _print_summary(summarise(fabric))
        _print_parts(fabric)


@app.command
def schema(*, json: Json = False) -> None:
    """Print the schema of the fabric file: every key, its form, bounds, default and meaning."""
    if json:
        print_json(json_schema())
        return
    print(INTRODUCTION)
    for section in sections():
        print()
        print(fill(f"{section.title}: {section.about}", WIDTH))
        for key in section.keys:
            print(f"  {key.name}{f' = {key.default}' if key.default else ''}")
            for text in filter(None, (key.form, key.meaning)):
                print(fill(text, WIDTH, initial_indent="      ", subsequent_indent="      "))


def _print_summary(summary: Summary) -> None:
    print(f"{summary.name}: ok")
    for what, much in lines(summary):
        print(f"  {what:<26}{much}")
    for warning in summary.warnings:
        note(f"warning: {warning}")


def _show_paths(fabric: Fabric, source: str, target: str, *, json: bool) -> None:
    found = fabric.paths(fabric.nic(source), fabric.nic(target))
    rows = [
        {
            "path": path.index,
            "spine": path.spine,
            "nodes": _nodes(fabric, path),
            "links": list(path.links),
            "rate_bps": min(fabric.links[link].rate_bps for link in path.links),
            "delay_ns": sum(fabric.links[link].delay_ns for link in path.links),
        }
        for path in found
    ]
    if json:
        print_json({"fabric": fabric.name, "source": source, "target": target, "results": rows})
        return
    print_table(
        f"{len(found)} paths from {source} to {target}",
        ["path", "over"],
        [(path.index, " > ".join(_nodes(fabric, path))) for path in found[:PATHS_SHOWN]],
        caption=f"and {len(found) - PATHS_SHOWN} more; --json has all" if len(found) > PATHS_SHOWN else None,
    )


def _nodes(fabric: Fabric, path: FabricPath) -> list[str]:
    """The NICs and switches on a path, in order."""
    return [fabric.links[path.links[0]].source, *(fabric.links[link].target for link in path.links)]


def _as_json(fabric: Fabric) -> dict[str, object]:
    return {
        **msgspec.to_builtins(summarise(fabric)),
        "prefill": fabric.prefill,
        "decode": fabric.decode,
        "results": [
            {
                "nic": nic.name,
                "host": nic.host,
                "address": nic.address,
                "switches": fabric.attachments[nic.attachment].switches,
            }
            for nic in fabric.nics
        ],
        "switches_by_name": {
            switch.name: {
                "kind": switch.kind,
                "node_id": switch.node_id,
                "up": switch.up,
                "hash": msgspec.to_builtins(switch.hash),
                "next_hop_order": switch.next_hop_order,
            }
            for switch in fabric.switches
        },
    }


def _print_parts(fabric: Fabric) -> None:
    roles = dict.fromkeys(fabric.prefill, "prefill") | dict.fromkeys(fabric.decode, "decode")
    print_table(
        "NICs",
        ["nic", "address", "on", "role"],
        [
            (
                nic.name,
                nic.address,
                " ".join(fabric.attachments[nic.attachment].switches),
                roles.get(nic.host, ""),
            )
            for nic in fabric.nics
        ],
    )
    print_table(
        "Switches",
        ["switch", "kind", "node id", "hash", "next hops", "up"],
        [
            (
                switch.name,
                switch.kind,
                switch.node_id,
                switch.hash.function,
                switch.next_hop_order if isinstance(switch.next_hop_order, str) else "listed",
                "yes" if switch.up else "no",
            )
            for switch in fabric.switches
        ],
    )
