"""Five-tuples as people write them: alone, or in a table ``id,src,dst,sport,dport[,proto,…]``."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path as FilePath
from typing import Final, TextIO, TypeVar

from ark.errors import ConfigError
from ark.fabric import TCP, UDP, Fabric, FiveTuple, Nic, Path, route
from ark.units import quoted
from ark.workload.columns import Text, Whole
from ark.workload.faults import Faults
from ark.workload.table import Column, Rows, read_table

_Value = TypeVar("_Value")

_PROTOCOLS: Final = {"": UDP, "udp": UDP, "tcp": TCP}
_NO_QP: Final = -1
_REQUIRED: Final = ("id", "src", "dst", "sport", "dport")
_NAME: Final = Text(200, r"\S+", "the name or address of a NIC")
_SCHEMA: Final[dict[str, Column]] = {
    "id": Text(200, r".+", "a name"),
    "src": _NAME,
    "dst": _NAME,
    "sport": Whole(0, 0xFFFF),
    "dport": Whole(0, 0xFFFF),
    "proto": Text(20),
    "dest_qp": Whole(0, 0xFF_FFFF, default=_NO_QP),
    "flow_label": Whole(0, 0xF_FFFF, default=0),
}


class Nics:
    """The NICs of a fabric by name or address."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._by_address = {ip_address(nic.address): nic for nic in fabric.nics}

    def find(self, text: str) -> Nic:
        """The NIC of a name or address.

        Raises
        ------
        ConfigError
            If there is none; for a name, with the nearest known one.
        """
        try:
            address = ip_address(text)
        except ValueError:
            return self._fabric.nic(text)
        if address not in self._by_address:
            raise ConfigError(f"no NIC of {self._fabric.name} has the address {address}")
        return self._by_address[address]


def protocol(text: str) -> int:
    """The number of a protocol: ``udp``, ``tcp`` or 0 to 255; UDP where nothing is written.

    Raises
    ------
    ConfigError
        If it is none of these.
    """
    known = _PROTOCOLS.get(text.strip().lower())
    if known is not None:
        return known
    if not (text.isascii() and text.isdecimal() and len(text) <= 3 and int(text) <= 0xFF):
        raise ConfigError(f"{quoted(text)} is no protocol; write udp, tcp or a number from 0 to 255")
    return int(text)


@dataclass(frozen=True, slots=True)
class Routed:
    """One flow and the path that it takes."""

    source: Nic
    target: Nic
    flow: FiveTuple
    path: Path


@dataclass(frozen=True, slots=True)
class Batch:
    """A table as it was read, and what became of each of its rows."""

    columns: dict[str, Sequence[object]]
    routed: list[Routed]

    def write(self, file: TextIO, fabric: Fabric) -> None:
        """Write the table with ``path`` and ``links``, in place of such columns or after the others."""
        names = link_names(fabric)
        columns = dict(self.columns)
        columns["path"] = [row.path.index for row in self.routed]
        columns["links"] = [" ".join(names[k] for k in row.path.links) for row in self.routed]
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def link_names(fabric: Fabric) -> list[str]:
    """A name for each link: ``leaf0>spine1``, and ``leaf0>spine1#2`` for the third of parallel ones."""
    before: dict[str, int] = {}
    names = []
    for link in fabric.links:
        name = f"{link.source}>{link.target}"
        number = before.get(name, 0)
        before[name] = number + 1
        names.append(f"{name}#{number}" if number else name)
    return names


def read_batch(path: FilePath, fabric: Fabric) -> Batch:
    """Read a table and route all its flows.

    Raises
    ------
    ConfigError
        With every fault of every row, by line and column.
    """
    table = read_table(path, what="a table of five-tuples")
    table.require(*_REQUIRED)
    faults = Faults(table.file)
    rows = table.rows(_SCHEMA, keep_rest=True, faults=faults)
    rows.check_unique("id", faults)
    nics = Nics(fabric)
    routed = []
    for number in range(len(rows.line)):
        row = _Row(rows, number, faults)
        source, target = row.parsed("src", nics.find), row.parsed("dst", nics.find)
        proto = row.parsed("proto", protocol) if "proto" in rows.text else UDP
        if source is not None and target is not None and proto is not None:
            routed += row.routed(fabric, source, target, proto)
        if faults.full:
            break
    faults.check()
    return Batch({name: _cells(rows, name) for name in table.header}, routed)


class _Row:
    """One row of a table of five-tuples; what is wrong with it goes to the faults."""

    def __init__(self, rows: Rows, number: int, faults: Faults) -> None:
        self._rows = rows
        self._number = number
        self._line = int(rows.line[number])
        self._faults = faults

    def parsed(self, column: str, parse: Callable[[str], _Value]) -> _Value | None:
        """What a cell means; after a fault, nothing."""
        text = self._rows.text[column][self._number]
        if not text and column != "proto":
            return None  # its fault is noted
        try:
            return parse(text)
        except ConfigError as error:
            self._faults.add(str(error), line=self._line, column=column)
            return None

    def routed(self, fabric: Fabric, source: Nic, target: Nic, proto: int) -> list[Routed]:
        """The flow of the row with its path; after a fault, nothing."""
        dest_qp = self._whole("dest_qp", _NO_QP)
        flow = FiveTuple(
            source.address,
            target.address,
            self._whole("sport", 0),
            self._whole("dport", 0),
            proto,
            None if dest_qp == _NO_QP else dest_qp,
            self._whole("flow_label", 0),
        )
        try:
            return [Routed(source, target, flow, route(fabric, flow, source, target))]
        except ConfigError as error:
            self._faults.add(str(error), line=self._line)
            return []

    def _whole(self, column: str, default: int) -> int:
        cells = self._rows.whole.get(column)
        return default if cells is None else int(cells[self._number])


def _cells(rows: Rows, name: str) -> Sequence[object]:
    if name in rows.text:
        return rows.text[name]
    return ["" if cell == _NO_QP else cell for cell in rows.whole[name].tolist()]
