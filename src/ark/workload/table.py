"""CSV tables of other people's, read into typed columns, every fault named by line and column."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar, overload

import numpy as np

from ark.units import quoted
from ark.workload.columns import Floats, Ints, Number, Text, Timestamp, Whole
from ark.workload.faults import Faults, one_line
from ark.workload.text_file import read_text

ROWS_MAX: Final = 5_000_000
"""Most rows of one table; the largest public trace in common use has 3.9 million."""

LINE_CHARS_MAX: Final = 1 << 16
"""Longest line of a table; a row of ours has about 60 characters."""

_ROWS_A_BLOCK: Final = 1 << 16
_COLUMNS_MAX: Final = 1_000
_Value = TypeVar("_Value")

Column = Whole | Number | Timestamp | Text


@dataclass(frozen=True)
class Rows:
    """Typed columns of a table, by name, and the line on which each row stands."""

    line: Ints
    whole: dict[str, Ints] = field(default_factory=dict)
    number: dict[str, Floats] = field(default_factory=dict)
    text: dict[str, list[str]] = field(default_factory=dict)

    def check_unique(self, name: str, faults: Faults) -> None:
        """Add a fault for each cell of a text column that stands on an earlier line too.

        An empty cell has a fault of its own.
        """
        first: dict[str, int] = {}
        for cell, line in zip(self.text[name], self.line.tolist(), strict=True):
            if cell and first.setdefault(cell, line) != line:
                what = f"{quoted(cell)} stands on line {first[cell]} too; {name}s are unique"
                faults.add(what, line=line, column=name)


class Table:
    """A CSV file whose header has been read; ``rows`` parses the rest."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._lines = text.split("\n")
        self._header_at = next(index for index, line in enumerate(self._lines) if line.strip())
        self.header = _header(file, self._header_at + 1, self._lines[self._header_at])

    def require(self, *names: str) -> None:
        """Go on only if the header has all these columns.

        Raises
        ------
        ConfigError
            With every missing column.
        """
        faults = Faults(self.file)
        for name in names:
            if name not in self.header:
                have = quoted(",".join(self.header))
                faults.add(f"has no column {name}; the columns are {have}", line=self._header_at + 1)
        faults.check()

    def rows(
        self,
        schema: Mapping[str, Column],
        *,
        limit: int | None = None,
        keep_rest: bool = False,
        faults: Faults | None = None,
    ) -> Rows:
        """The rows, in the columns of the schema that the header has.

        Parameters
        ----------
        schema
            Columns by name; which of them must be there is for ``require`` to say.
        limit : int, optional
            Read no more than the first so many rows.
        keep_rest : bool
            Keep the columns that the schema does not name, as text.
        faults : Faults, optional
            Where faults go for a caller that looks for more of them and then checks it. A faulty cell is then
            0 or empty; no faulty row is left out but for ones of another width.

        Raises
        ------
        ConfigError
            With every fault of every row, or if there is no row, or too many.
        """
        found = Faults(self.file) if faults is None else faults
        parts: list[Rows] = []
        count = 0
        for lines, cells in self._blocks(found):
            left = (ROWS_MAX if limit is None else limit) - count
            if len(cells) > left and limit is None:
                found.add(f"has more than {ROWS_MAX} rows; take only the first ones")
            if cells[:left]:
                parts.append(self._typed(lines[:left], cells[:left], schema, found, keep_rest=keep_rest))
            count += len(cells[:left])
            if found.full or len(cells) >= left:
                break
        if not parts and not found:
            found.add("has a header and no rows")
        if faults is None or not parts:
            found.check()
        return _joined(parts)

    def _blocks(self, faults: Faults) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Rows of the right width with their line numbers, a block at a time; the others become faults."""
        for start in range(self._header_at + 1, len(self._lines), _ROWS_A_BLOCK):
            block = self._lines[start : start + _ROWS_A_BLOCK]
            numbers = [start + index + 1 for index, line in enumerate(block) if line.strip()]
            lines = [line for line in block if line.strip()]
            cells = _split(lines, len(self.header))
            if cells is None:
                pairs = [
                    (n, row)
                    for n, line in zip(numbers, lines, strict=True)
                    for row in self._row(n, line, faults)
                ]
                numbers, cells = [n for n, _ in pairs], [row for _, row in pairs]
            yield numbers, cells

    def _row(self, number: int, line: str, faults: Faults) -> Iterator[list[str]]:
        """The one row of a line, or a fault and none."""
        if len(line) > LINE_CHARS_MAX:
            faults.add(f"line of {len(line)} characters; at most {LINE_CHARS_MAX} are allowed", line=number)
            return
        try:
            row = next(csv.reader([line], strict=True))
        except csv.Error as error:
            faults.add(f"{quoted(line)} is no row of a table ({one_line(error)})", line=number)
            return
        if len(row) != len(self.header):
            faults.add(f"{quoted(line)} has {len(row)} cells, the header {len(self.header)}", line=number)
            return
        yield row

    def _typed(
        self,
        lines: list[int],
        cells: list[list[str]],
        schema: Mapping[str, Column],
        faults: Faults,
        *,
        keep_rest: bool,
    ) -> Rows:
        rows = Rows(np.array(lines, dtype=np.int64))
        for name, column in zip(self.header, zip(*cells, strict=True), strict=True):
            kind = schema.get(name)
            if isinstance(kind, Whole):
                found = _parsed(kind, list(column), lines, name, faults)
                rows.whole[name] = np.asarray(found, dtype=np.int64)
            elif isinstance(kind, Number | Timestamp):
                found_numbers = _parsed(kind, list(column), lines, name, faults)
                rows.number[name] = np.asarray(found_numbers, dtype=np.float64)
            elif isinstance(kind, Text):
                rows.text[name] = _cell_by_cell(kind.cell, "", list(column), lines, name, faults)
            elif keep_rest:
                rows.text[name] = list(column)
        return rows


def read_table(path: Path, *, what: str) -> Table:
    """A CSV file with its header read.

    Raises
    ------
    ConfigError
        As ``read_text``, or if the first line is no header of a table.
    """
    return Table(str(path), read_text(path, what=what))


def _header(file: str, number: int, line: str) -> tuple[str, ...]:
    faults = Faults(file)
    cells = _split([line], None)
    names = tuple(cell.strip() for cell in cells[0]) if cells else ()
    if not names or len(names) > _COLUMNS_MAX:
        faults.add(f"{quoted(line)} is no header of a table", line=number)
    if len(names) == 1:
        for mark, its_name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in line:
                faults.add(f"columns are separated by {its_name}; use commas", line=number)
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        faults.add(f"column {quoted(name)} stands there twice", line=number)
    faults.check()
    return names


def _split(lines: list[str], width: int | None) -> list[list[str]] | None:
    """The cells of each line, or None where any line is not plainly one row of that width."""
    if any(len(line) > LINE_CHARS_MAX for line in lines):
        return None
    try:
        cells = list(csv.reader(lines, strict=True))
    except csv.Error:
        return None
    if len(cells) != len(lines) or (width is not None and any(len(row) != width for row in cells)):
        return None
    return cells


@overload
def _parsed(
    kind: Whole, cells: list[str], lines: list[int], name: str, faults: Faults
) -> Ints | list[int]: ...
@overload
def _parsed(
    kind: Number | Timestamp, cells: list[str], lines: list[int], name: str, faults: Faults
) -> Floats | list[float]: ...
def _parsed(
    kind: Whole | Number | Timestamp, cells: list[str], lines: list[int], name: str, faults: Faults
) -> Ints | Floats | list[int] | list[float]:
    try:
        return kind.column(cells)
    except ValueError:
        if isinstance(kind, Whole):
            return _cell_by_cell(kind.cell, 0, cells, lines, name, faults)
        return _cell_by_cell(kind.cell, 0.0, cells, lines, name, faults)


def _cell_by_cell(
    parse: Callable[[str], _Value],
    placeholder: _Value,
    cells: list[str],
    lines: list[int],
    name: str,
    faults: Faults,
) -> list[_Value]:
    values = []
    for cell, line in zip(cells, lines, strict=True):
        try:
            values.append(parse(cell))
        except ValueError as error:
            faults.add(str(error), line=line, column=name)
            values.append(placeholder)  # the fault is raised before anybody uses it
    return values


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Rows(
        np.concatenate([part.line for part in parts]),
        {name: np.concatenate([part.whole[name] for part in parts]) for name in first.whole},
        {name: np.concatenate([part.number[name] for part in parts]) for name in first.number},
        {name: [cell for part in parts for cell in part.text[name]] for name in first.text},
    )
