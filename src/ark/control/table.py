"""The live rows that one host knows, and whatever is kept incrementally from them.

Which version of a row is the newest has been settled before a row comes here (per stream, by seq and
tombstones); the table takes what it is given. Its ledgers (link loads, claims) follow every change, so they
are always a function of the rows, whatever the order in which those came.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from ark.control.geometry import PathSets
from ark.control.rows import Change, Row

ROWS_MAX: Final = 2**18
"""Rows of a table, about 100 MB. Full: further rows are refused and counted, ours go unmanaged."""


class Ledger(Protocol):
    """Something kept from the rows of a table."""

    def change(self, old: Row | None, new: Row | None) -> None:
        """Follow the change of one row."""

    def check(self, rows: Iterable[Row]) -> None:
        """Assert that it is what it would be if kept from ``rows`` anew."""


class Table:
    """Rows by owner and flow.

    Attributes
    ----------
    refused
        Rows not taken in because the table was full.
    misfits
        Rows not taken in because they name an attachment or a path that is not in this fabric.
    """

    __slots__ = ("_ledgers", "_paths", "_rows", "_undo", "misfits", "refused", "rows_max")

    def __init__(self, paths: PathSets, *ledgers: Ledger, rows_max: int = ROWS_MAX) -> None:
        self._paths = paths
        self._ledgers = ledgers
        self._rows: dict[tuple[int, int], Row] = {}
        self._undo: list[tuple[tuple[int, int], Row | None]] | None = None
        self.rows_max = rows_max
        self.refused = 0
        self.misfits = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    @property
    def full(self) -> bool:
        """Whether there is no room for another row."""
        return len(self._rows) >= self.rows_max

    def get(self, host: int, flow: int) -> Row | None:
        """The row of one transfer, if it is live."""
        return self._rows.get((host, flow))

    def put(self, row: Row) -> Change | None:
        """Take in a row, in place of the one that its transfer had; None if it is refused."""
        key = (row.host, row.flow)
        if not self._paths.fits(row):
            self.misfits += 1
            return None
        if key not in self._rows and self.full:
            self.refused += 1
            return None
        return self.write(key, row)

    def remove(self, host: int, flow: int) -> Change | None:
        """Take a row out; None if there is none."""
        key = (host, flow)
        return self.write(key, None) if key in self._rows else None

    def write(self, key: tuple[int, int], row: Row | None) -> Change:
        """Set or take out (None) a row that is known to fit."""
        old = self._rows.get(key)
        if row is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row
        for ledger in self._ledgers:
            ledger.change(old, row)
        if self._undo is not None:
            self._undo.append((key, old))
        return Change(old, row)

    def begin(self) -> None:
        """Remember what is changed from now on, so that ``rollback`` can undo it."""
        assert self._undo is None
        self._undo = []

    def rollback(self) -> None:
        """Undo everything since ``begin``."""
        undo, self._undo = self._undo, None
        assert undo is not None
        for key, row in reversed(undo):
            self.write(key, row)

    def check(self) -> None:
        """Assert that rows stand under their own keys and that the ledgers are those of the rows."""
        assert all(row.key == key and self._paths.fits(row) for key, row in self._rows.items())
        assert len(self._rows) <= self.rows_max
        for ledger in self._ledgers:
            ledger.check(self)
