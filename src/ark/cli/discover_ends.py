"""What the commands of discovery share: the files around it, the ends of a pair, and how maps are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from ark.cli.flow_batch import protocol
from ark.cli.output import note, print_json, print_table
from ark.discover.learned import LearnedMap
from ark.discover.names import canonical, read_names
from ark.discover.numbering import (
    FabricNumbering,
    NameNumbering,
    Numbering,
    OrderNumbering,
    paths_by_switches,
    shown,
)
from ark.discover.paths_file import write_paths
from ark.errors import ConfigError
from ark.fabric import Fabric
from ark.fabric.load import load_fabric
from ark.units import quoted
from ark.workload.text_file import read_text

PORTS_SHOWN: Final = 4

FabricFile = Annotated[Path | None, Parameter(help="Fabric file (TOML): names, path numbers, hop counts.")]
NamesFile = Annotated[Path | None, Parameter(help="Table address,switch (CSV) that names what answers.")]
Out = Annotated[Path | None, Parameter(help="File to write the maps to, for agents and other commands.")]
Json = Annotated[bool, Parameter(help="Print one JSON object.")]


@dataclass(frozen=True, slots=True)
class End:
    """One end of a pair: its name, which is its address where no fabric names it, and its address."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the probes: the fabric, the names, and the numbering that follows from them."""

    fabric: Fabric | None
    names: Mapping[str, str]

    @classmethod
    def of(cls, fabric: Path | None, names: Path | None, *, has_names: bool = False) -> "Surroundings":
        """Read the files; answers have addresses, so that a fabric is of use only with names for them."""
        network = None
        if fabric is not None:
            network = load_fabric(read_text(fabric, what="a fabric file"), str(fabric))
        table: dict[str, str] = {}
        if names is not None:
            table = read_names(read_text(names, what="a table of names"), str(names))
        if network is not None and names is None and not has_names:
            raise ConfigError("--fabric needs --names FILE too: answers have addresses, the fabric has names")
        return cls(network, table)

    @property
    def numbering(self) -> Numbering:
        """How paths are numbered."""
        if self.fabric is not None:
            return FabricNumbering(self.fabric)
        return NameNumbering(self.names) if self.names else OrderNumbering()

    def end(self, text: str) -> End:
        """A peer by its name in the fabric, or by its address."""
        address = canonical(text)
        if self.fabric is None:
            if address is None:
                raise ConfigError(f"{quoted(text)} is no address; without --fabric FILE peers are addresses")
            return End(address, address)
        if address is None:
            nic = self.fabric.nic(text)
            return End(nic.name, canonical(nic.address) or nic.address)
        for nic in self.fabric.nics:
            if canonical(nic.address) == address:
                return End(nic.name, address)
        raise ConfigError(f"{self.fabric.name}: no NIC has the address {address}")

    def peers(self, texts: Sequence[str], source: str | None) -> list[End]:
        """The peers that are named; without any, all other NICs of the fabric."""
        if not texts and self.fabric is None:
            raise ConfigError("name the peers: ark discover ADDRESS …, or give --fabric FILE")
        if not texts and self.fabric is not None:
            if source is None:
                raise ConfigError("say which NIC of the fabric sends: --from NIC, or name the peers")
            sender = self.end(source)
            return [end for nic in self.fabric.nics if (end := self.end(nic.name)) != sender]
        return [self.end(text) for text in dict.fromkeys(texts)]

    def lengths(self, source: End, target: End) -> tuple[int | None, int | None]:
        """How many switches and how many paths are between two NICs, where the fabric tells."""
        if self.fabric is None:
            return None, None
        paths = paths_by_switches(self.fabric, source.name, target.name)
        lengths = {len(switches) for switches, _ in paths}
        return (lengths.pop() if len(lengths) == 1 else None), len(paths)


def show(maps: Sequence[LearnedMap], numbering: Numbering, *, out: Path | None, json: bool) -> None:
    """Write, print and explain maps."""
    if out is not None:
        write_paths(out, maps, numbering.kind)
    if json:
        print_json({"numbering": numbering.kind, "results": [_row(one) for one in maps]})
        return
    print_table(
        "Source ports by peer and path",
        ["from", "to", "path", "over", "ports", "the first"],
        [
            (one.source, one.target, path.path, shown(path.hops), len(path.ports), _first(path.ports))
            for one in maps
            for path in one.paths
        ],
    )
    for reason in dict.fromkeys(one.reason for one in maps if one.influence != "port"):
        note(f"{', '.join(one.target for one in maps if one.reason == reason)}: {reason}")
    if numbering.kind == "order":
        note("paths are numbered in the order of addresses, for this host only; give --names or --fabric")


def probed_protocol(text: str) -> int:
    """The number of a protocol that can be probed, by its name."""
    try:
        number = protocol(text)
    except ConfigError as error:
        raise ConfigError(f"--proto: {error}") from None
    if number not in {6, 17}:
        raise ConfigError(f"--proto: {quoted(text)} cannot be probed; give udp or tcp")
    return number


def _row(one: LearnedMap) -> dict[str, object]:
    return {
        "source": one.source,
        "target": one.target,
        "proto": one.proto,
        "dport": one.dport,
        "influence": one.influence,
        "reason": one.reason,
        "epoch": one.epoch,
        "method": one.method,
        "paths": [
            {"path": path.path, "hops": path.hops, "count": len(path.ports), "ports": path.ports}
            for path in one.paths
        ],
    }


def _first(ports: Sequence[int]) -> str:
    return " ".join(map(str, ports[:PORTS_SHOWN])) + (" …" if len(ports) > PORTS_SHOWN else "")
