"""What has been learned, as the rest of ARK reads it: maps of pairs, and the file that holds them.

The file is JSON: ``format`` and ``version``, how paths are numbered, and a list of maps, one a pair of NICs,
destination port and protocol. ``docs/guides/discover.md`` describes it.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal, cast

import msgspec
from msgspec import Meta

from ark.discover.names import NAME_MAX, canonical
from ark.discover.numbering import Hops, Kind, Numbering
from ark.discover.search import Finding
from ark.errors import ConfigError
from ark.fabric import Influence, PathMap
from ark.fabric.fault_list import FaultList
from ark.fabric.pathmap import PORTS_KEPT
from ark.fabric.table_reader import read_table

FORMAT: Final = "ark-paths"
MAPS_MAX: Final = 100_000
"""Maps of one file: all pairs of a host with that many peers."""

IN_DOUBT: Final = "the learned ports are in doubt: the fabric seems to have changed, and is looked at again"

Port = Annotated[int, Meta(ge=0, le=0xFFFF)]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Method = Literal["probes", "calculator", "route-get", "model", "offsets"]
Decides = Literal["port", "one-path", "not-hashed", "sprayed"]
Validity = Literal["valid", "suspect", "stale"]
"""As ``ark.discover.watch.State``."""


class LearnedPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One path: its number, the switches on it ("" where one is not known), and ports that lead to it.

    A path that was lost since has no port.
    """

    path: Annotated[int, Meta(ge=0, le=1_000_000)]
    hops: tuple[Annotated[str, Meta(max_length=NAME_MAX)], ...]
    ports: tuple[Port, ...]


class LearnedMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which source ports of one pair lead to which path.

    Attributes
    ----------
    source, target, source_address, target_address
        The two NICs; names are addresses where there are no names.
    proto, dport, dest_qp
        What the map holds for, beside them.
    influence, reason
        Whether the port decides the path, and that in a sentence.
    paths
        Ascending by number.
    varying
        Positions of the switches that tell paths apart, from 1: what a verification asks.
    epoch
        Counts how often this map has been learned anew; users of an older epoch must look again.
    learned_s
        When, in whole seconds of Unix time.
    method
        How.
    state
        Whether it holds now, as a watch wrote it last.
    """

    source: Name
    target: Name
    source_address: Name
    target_address: Name
    proto: Annotated[int, Meta(ge=0, le=255)]
    dport: Port
    influence: Decides
    reason: Annotated[str, Meta(max_length=400)]
    paths: tuple[LearnedPath, ...]
    method: Method
    varying: tuple[Annotated[int, Meta(ge=1, le=255)], ...] = ()
    dest_qp: Annotated[int, Meta(ge=0, le=0xFF_FFFF)] = 0
    epoch: Annotated[int, Meta(ge=1, le=2**62)] = 1
    learned_s: Annotated[int, Meta(ge=0, le=2**62)] = 0
    state: Validity = "valid"

    def path_of(self, port: int) -> int | None:
        """The path that a port leads to, where that was learned."""
        return next((one.path for one in self.paths if port in one.ports), None)

    def path_map(self) -> PathMap:
        """The map as path policies and agents use it: at most ``PORTS_KEPT`` ports a path, and none while the
        map is in doubt."""
        if self.state != "valid":
            return PathMap(
                self.source,
                self.target,
                self.dport,
                self.proto,
                Influence.IN_DOUBT,
                IN_DOUBT,
                tuple(one.path for one in self.paths),
                (0,) * len(self.paths),
                ((),) * len(self.paths),
            )
        return PathMap(
            self.source,
            self.target,
            self.dport,
            self.proto,
            Influence(self.influence),
            self.reason,
            tuple(one.path for one in self.paths),
            tuple(len(one.ports) for one in self.paths),
            tuple(one.ports[:PORTS_KEPT] for one in self.paths),
        )


class LearnedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maps with the way in which their paths are numbered."""

    format: Literal["ark-paths"]
    version: Literal[1]
    numbering: Kind
    maps: tuple[LearnedMap, ...]


def learned_map(
    finding: Finding,
    *,
    source: str,
    target: str,
    numbering: Numbering,
    method: Method = "probes",
    epoch: int = 1,
    learned_s: int = 0,
) -> LearnedMap:
    """A finding with numbered paths.

    Raises
    ------
    ConfigError
        If the numbering knows no number for a path.
    """
    ports_of: dict[Hops, list[int]] = {}
    if finding.influence is not Influence.SPRAYED:
        for port in finding.ports:
            ports_of.setdefault(finding.switches(port), []).append(port)
    numbers = numbering.numbers(source, target, ports_of)
    paths = [
        LearnedPath(numbers[hops], tuple(hop or "" for hop in hops), tuple(sorted(ports)))
        for hops, ports in sorted(ports_of.items(), key=lambda item: numbers[item[0]])
    ]
    flow = finding.flow
    return LearnedMap(
        source,
        target,
        flow.src,
        flow.dst,
        flow.proto,
        flow.dport,
        cast("Decides", finding.influence.value),  # a search is never in doubt
        finding.reason,
        tuple(paths),
        method,
        finding.varying,
        flow.dest_qp,
        epoch,
        learned_s,
    )


def renewed(found: LearnedMap, before: LearnedMap) -> LearnedMap:
    """A map that was learned anew, with the paths that have no port any more, and with where to look.

    Where a single path is left no switch varies; those that did will again, once a lost path is back.
    """
    hops = {one.hops for one in found.paths}
    numbers = {one.path for one in found.paths}
    lost = [one for one in before.paths if one.hops not in hops and one.path not in numbers]
    paths = [*found.paths, *(msgspec.structs.replace(one, ports=()) for one in lost)]
    return msgspec.structs.replace(
        found,
        paths=tuple(sorted(paths, key=lambda one: one.path)),
        varying=found.varying or before.varying,
    )


def write_learned(maps: Iterable[LearnedMap], numbering: Kind) -> str:
    """The text of a file."""
    whole = msgspec.to_builtins(LearnedFile(FORMAT, 1, numbering, tuple(maps)))
    maps_text = ",\n".join(f"  {json.dumps(one)}" for one in whole.pop("maps"))  # one a line: diffs read well
    head = json.dumps(whole)[:-1]
    return f'{head}, "maps": [\n{maps_text}\n]}}\n'


def read_learned(text: str, file_name: str) -> LearnedFile:
    """The maps of a file.

    Raises
    ------
    ConfigError
        With all faults of the file, each with its place: no JSON, another format or version, what is out of
        bounds, one pair twice, one port on two paths, what is no address.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{file_name}: is no JSON: {str(error)[:100]}; write it with: ark discover --out"
        ) from None
    faults = FaultList()
    found = read_table(value, LearnedFile, faults)
    if found is not None:
        _check_maps(found.maps, faults)
    try:
        faults.raise_if_any()
    except ConfigError as error:
        raise ConfigError(*(f"{file_name}: {fault}" for fault in error.faults)) from None
    assert found is not None, "a file without faults was read"
    return found


def _check_maps(maps: Sequence[LearnedMap], faults: FaultList) -> None:
    if len(maps) > MAPS_MAX:
        faults.add("maps", f"has {len(maps):,} entries; allowed are {MAPS_MAX:,}")
        return
    seen: set[tuple[str, str, int, int]] = set()
    for place, one in enumerate(maps):
        where = f"maps[{place}]"
        key = (one.source, one.target, one.proto, one.dport)
        if key in seen:
            faults.add(where, f"is the second map from {one.source} to {one.target}")
        seen.add(key)
        for name in ("source_address", "target_address"):
            if canonical(getattr(one, name)) is None:
                faults.add(f"{where}.{name}", "is no IPv4 or IPv6 address")
        numbers = [path.path for path in one.paths]
        if numbers != sorted(set(numbers)):
            faults.add(f"{where}.paths", f"must ascend by number, each once, not {numbers[:20]}")
        ports = [port for path in one.paths for port in path.ports]
        if len(ports) != len(set(ports)) and one.influence == "port":
            faults.add(f"{where}.paths", "has a port on two paths")
