"""Names for what answers: the switch that an address belongs to, from a table ``address,switch``."""

import csv
from ipaddress import ip_address
from typing import Final

from ark.errors import ConfigError
from ark.fabric.fault_list import FaultList
from ark.units import quoted

ROWS_MAX: Final = 1_000_000
NAME_MAX: Final = 100


def read_names(text: str, file_name: str) -> dict[str, str]:
    """The switch of each address, in the order of the file.

    Parameters
    ----------
    text
        CSV with the columns ``address`` and ``switch``; a switch may have many addresses. Others are ignored.
    file_name
        For messages.

    Raises
    ------
    ConfigError
        With all faults: columns that are missing, what is no address, an address of two switches, names that
        are empty or too long.
    """
    faults = FaultList()
    found: dict[str, str] = {}
    for line, row in rows_of(text, file_name, ("address", "switch")):
        where = f"{file_name}:{line}"
        address = canonical(row["address"])
        name = row["switch"]
        if address is None:
            faults.add(f"{where}: address", f"{quoted(row['address'])} is no IPv4 or IPv6 address")
        elif not 1 <= len(name) <= NAME_MAX or not name.isprintable():
            faults.add(f"{where}: switch", f"{quoted(name)} is no name; write 1 to {NAME_MAX} characters")
        elif found.setdefault(address, name) != name:
            faults.add(f"{where}: address", f"{address} is of {quoted(found[address])} already")
    faults.raise_if_any()
    if not found:
        raise ConfigError(f"{file_name}: has no addresses; write lines like 10.255.0.1,spine0")
    return found


def canonical(address: str) -> str | None:
    """An address in its shortest form; ``None`` for what is none."""
    try:
        return str(ip_address(address.strip()))
    except ValueError:
        return None


def rows_of(text: str, file_name: str, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV table with the numbers of their lines; cells without spaces around them.

    Raises
    ------
    ConfigError
        If it is no table with these columns, a row has too few or too many cells, or it is too long.
    """
    if "\0" in text:
        raise ConfigError(
            f"{file_name}: is binary, not a table; write CSV with the columns {','.join(columns)}"
        )
    reader = csv.reader(text.lstrip("\ufeff").splitlines())
    faults = FaultList()
    found = []
    header: list[str] = []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        for column in columns:
            if column not in header:
                faults.add(
                    f"{file_name}:1: {column}", f"is missing; the first line reads {','.join(columns)}"
                )
        faults.raise_if_any()
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                faults.add(
                    f"{file_name}:{reader.line_num}", f"has {len(cells)} cells, the first line {len(header)}"
                )
                continue
            found.append((reader.line_num, dict(zip(header, map(str.strip, cells), strict=True))))
            if len(found) > ROWS_MAX:
                raise ConfigError(f"{file_name}: has more than {ROWS_MAX:,} rows")
    except csv.Error as error:
        faults.add(f"{file_name}:{reader.line_num}", f"is no CSV: {error}")
    faults.raise_if_any()
    return found
