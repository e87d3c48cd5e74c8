"""``ark path``: which path a flow takes, which source ports to use for a peer, and the map to all peers."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter

from ark import __version__
from ark.cli.flags import fabric_of, host_names
from ark.cli.flow_batch import Nics, Routed, protocol, read_batch
from ark.cli.output import note, print_json, print_table
from ark.cli.port_ranges import port_ranges
from ark.errors import ConfigError
from ark.fabric import Fabric, FiveTuple, Influence, Nic, PathMap, path_map, route
from ark.fabric.roce import DPORT, SPORTS, flow_label_of_sport

app: Final = cyclopts.App(
    name="path", help="Predict, pick and map the paths that source ports lead to.", version=__version__
)

Form = Literal["list", "mooncake", "flow-labels"]

FabricFile = Annotated[Path | None, Parameter(help="Fabric file (TOML). Default: the paper's, not yours.")]
Json = Annotated[bool, Parameter(help="Print one JSON object.")]
Dport = Annotated[int, Parameter(help="Destination port.")]
Proto = Annotated[str, Parameter(help="udp, tcp or a number.")]
DestQp = Annotated[int | None, Parameter(help="Destination queue pair, where the fabric hashes it.")]
Ports = Annotated[
    str, Parameter(help='Source ports that may be used: "roce", "all", or like 50000-50999,60000.')
]


PORTS_SHOWN: Final = 4
"""Ports of a path that a table shows; ``--json`` has all that are kept."""


@app.command
def predict(
    source: str | None = None,
    target: str | None = None,
    *,
    sport: Annotated[int | None, Parameter(help="Source port.")] = None,
    dport: Dport = DPORT,
    proto: Proto = "udp",
    dest_qp: DestQp = None,
    flow_label: Annotated[int, Parameter(help="IPv6 flow label, where the fabric hashes it.")] = 0,
    batch: Annotated[
        Path | None, Parameter(help="Table id,src,dst,sport,dport[,proto,dest_qp,flow_label] (CSV).")
    ] = None,
    fabric: FabricFile = None,
    json: Json = False,
) -> None:
    """Predict the path of a flow, or print a table of flows with their path and links added.

    Without --fabric all of it is about the paper's fabric.

    Parameters
    ----------
    source
        Name or address of the NIC that sends.
    target
        Name or address of the NIC that receives.
    """
    network = fabric_of(fabric)
    if batch is not None:
        if source is not None or sport is not None:
            raise ConfigError("give a flow (SOURCE TARGET --sport PORT) or --batch FILE, not both")
        _predict_batch(network, batch, json=json)
        return
    if source is None or target is None or sport is None:
        raise ConfigError("name a flow: ark path predict SOURCE TARGET --sport PORT, or --batch FILE")
    nics = Nics(network)
    ends = nics.find(source), nics.find(target)
    flow = FiveTuple(ends[0].address, ends[1].address, sport, dport, _protocol(proto), dest_qp, flow_label)
    found = Routed(*ends, flow, route(network, flow, *ends))
    if json:
        print_json({"fabric": network.name, "results": [_as_row(network, found)]})
    else:
        print(f"path {found.path.index}: {' > '.join(_nodes(network, found))}")


@app.command
def pick(
    source: str,
    target: str,
    *,
    ports: Ports = "roce",
    form: Annotated[
        Form,
        Parameter(
            name="--format",
            help="list: the ports; mooncake: MC_MLX5_QP_UDP_SPORTS=…; flow-labels: what sets these ports.",
        ),
    ] = "list",
    dport: Dport = DPORT,
    proto: Proto = "udp",
    dest_qp: DestQp = None,
    fabric: FabricFile = None,
    json: Json = False,
) -> int:
    """Pick the fewest source ports that reach every path to a peer: one a path, in the order of the paths.

    Without --fabric all of it is about the paper's fabric.

    Exit code 1 where there are none: the port does not decide the path, or no allowed one leads to some path.

    Parameters
    ----------
    source
        Name or address of the NIC that sends.
    target
        Name or address of the NIC that receives.
    """
    network = fabric_of(fabric)
    nics = Nics(network)
    found = path_map(
        network,
        nics.find(source),
        nics.find(target),
        dport=dport,
        proto=_protocol(proto),
        ports=port_ranges("--ports", ports),
        dest_qp=dest_qp,
        labelled=form == "flow-labels",
    )
    matters = found.influence in {Influence.PORT, Influence.ONE_PATH}
    picked = {path: found.ports(path)[0] for path in found.paths if matters and found.count(path)}
    if json:
        _print_picked(network, found, picked)
    elif picked:
        print(_formatted(picked.values(), form))
    if found.influence is not Influence.PORT:
        note(f"{found.source} to {found.target}: {found.reason}")
    elif found.missing:
        note(
            f"{found.source} to {found.target}: no allowed source port leads to "
            f"path {', '.join(map(str, found.missing))}"
        )
    return 0 if len(picked) == len(found.paths) else 1


@app.command(name="map")
def map_(
    source: str,
    *,
    to: Annotated[str | None, Parameter(help="Peers: hosts like h8-h15; all others if left out.")] = None,
    ports: Ports = "roce",
    dport: Dport = DPORT,
    proto: Proto = "udp",
    dest_qp: DestQp = None,
    fabric: FabricFile = None,
    json: Json = False,
) -> None:
    """Show which source ports of a NIC lead to which path, for each of its peers.

    Without --fabric all of it is about the paper's fabric.

    Parameters
    ----------
    source
        Name or address of the NIC that sends.
    """
    network = fabric_of(fabric)
    sender = Nics(network).find(source)
    allowed, number = port_ranges("--ports", ports), _protocol(proto)
    maps = [
        path_map(network, sender, peer, dport=dport, proto=number, ports=allowed, dest_qp=dest_qp)
        for peer in _peers(network, sender, to)
    ]
    if json:
        print_json(
            {
                "fabric": network.name,
                "source": sender.name,
                "peers": [{"peer": of.target, **_meaning(of)} for of in maps],
                "results": [row for of in maps for row in _map_rows(network, of)],
            }
        )
        return
    print_table(
        f"Source ports of {sender.name} by peer and path",
        ["peer", "path", "over", "ports", "the first"],
        [
            (row["peer"], row["path"], row["spine"] or "", row["count"], _first(of.ports(path)))
            for of in maps
            for path, row in zip(of.paths, _map_rows(network, of), strict=True)
        ],
    )
    for reason in dict.fromkeys(of.reason for of in maps if of.influence is not Influence.PORT):
        peers = [of.target for of in maps if of.reason == reason]
        note(f"{', '.join(peers)}: {reason}")


def _predict_batch(network: Fabric, file: Path, *, json: bool) -> None:
    table = read_batch(file, network)
    if json:
        rows = zip(table.columns["id"], table.routed, strict=True)
        results = [{"id": name} | _as_row(network, row) for name, row in rows]
        print_json({"fabric": network.name, "results": results})
    else:
        table.write(sys.stdout, network)


def _as_row(network: Fabric, found: Routed) -> dict[str, object]:
    flow = found.flow
    return {
        "src": found.source.name,
        "dst": found.target.name,
        "sport": flow.sport,
        "dport": flow.dport,
        "proto": flow.proto,
        "path": found.path.index,
        "spine": found.path.spine,
        "nodes": _nodes(network, found),
        "links": found.path.links,
    }


def _nodes(network: Fabric, found: Routed) -> list[str]:
    return [found.source.name, *(network.links[link].target for link in found.path.links)]


def _print_picked(network: Fabric, found: PathMap, picked: dict[int, int]) -> None:
    rows = [
        {
            "path": path,
            "spine": spine,
            "port": picked.get(path),
            "flow_label": flow_label_of_sport(picked[path]) if picked.get(path, 0) in SPORTS else None,
        }
        for path, spine in _spines(network, found)
    ]
    print_json(
        {
            "fabric": network.name,
            "source": found.source,
            "target": found.target,
            **_meaning(found),
            "results": rows,
        }
    )


def _map_rows(network: Fabric, found: PathMap) -> list[dict[str, object]]:
    return [
        {
            "peer": found.target,
            "path": path,
            "spine": spine,
            "count": found.count(path),
            "ports": found.ports(path),
        }
        for path, spine in _spines(network, found)
    ]


def _meaning(found: PathMap) -> dict[str, object]:
    return {"influence": found.influence, "reason": found.reason, "coverage": found.coverage}


def _spines(network: Fabric, found: PathMap) -> list[tuple[int, str | None]]:
    paths = network.paths(network.nic(found.source), network.nic(found.target))
    return [(path.index, path.spine) for path in paths]


def _formatted(ports: Iterable[int], form: Form) -> str:
    if form == "flow-labels":
        ports = map(flow_label_of_sport, ports)
    listed = ",".join(map(str, ports))
    return f"MC_MLX5_QP_UDP_SPORTS={listed}" if form == "mooncake" else listed


def _first(ports: tuple[int, ...]) -> str:
    return " ".join(map(str, ports[:PORTS_SHOWN])) + (" …" if len(ports) > PORTS_SHOWN else "")


def _peers(network: Fabric, sender: Nic, to: str | None) -> list[Nic]:
    names = host_names("--to", to, network)
    hosts = [host.name for host in network.hosts if host.name != sender.host] if names is None else names
    peers = [nic for name in hosts for nic in network.host(name).nics if nic != sender]
    if not peers:
        raise ConfigError(f"{sender.name} has no peer to map to")
    return peers


def _protocol(text: str) -> int:
    try:
        return protocol(text)
    except ConfigError as error:
        raise ConfigError(f"--proto: {error}") from None
