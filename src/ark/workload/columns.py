"""Kinds of columns in the tables that people bring: what a cell may hold, parsed a column at a time.

Each kind has a fast way for a whole column, which fails if any cell is odd, and a slow way for one cell,
which says what is wrong with it.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.units import quoted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PLAIN: Final = frozenset("0123456789+-.eE \t")
"""What plain numbers consist of: no "nan", "inf", "1_000" or digits of other scripts."""

_TIMESTAMP: Final = re.compile(
    r"(?:19[7-9]\d|20\d\d|21\d\d)-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)?", re.ASCII
)
_PORTS: Final = re.compile(r"\d{1,5}(?:[;>]\d{1,5})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from ``low`` to ``high``; ``4808.0`` is one. An empty cell is ``default``, if any.

    A default out of these bounds says that the cell was empty; nobody can write it.
    """

    low: int
    high: int
    default: int | None = None

    def column(self, cells: list[str]) -> Ints:
        """All cells at once: int64[row].

        Raises
        ------
        ValueError
            If any cell is not plainly such a number.
        """
        if not _PLAIN.issuperset("".join(cells)):
            raise ValueError("not plain numbers")
        written = [cell for cell in cells if cell] if self.default is not None else cells
        values = [int(cell) for cell in written]
        # Compared as Python integers, which do not overflow.
        if values and not self.low <= min(values) <= max(values) <= self.high:
            raise ValueError("out of range")
        if len(written) == len(cells):
            return np.array(values, dtype=np.int64)
        column = np.full(len(cells), self.default, dtype=np.int64)
        column[[cell != "" for cell in cells]] = values
        return column

    def cell(self, text: str) -> int:
        """One cell's value.

        Raises
        ------
        ValueError
            With a sentence for people.
        """
        stripped = text.strip()
        if not stripped and self.default is not None:
            return self.default
        value = self._value(stripped)
        if value is None:
            raise ValueError(f"{quoted(text)} is not a whole number; allowed are {self.low} to {self.high}")
        if not self.low <= value <= self.high:
            raise ValueError(f"{quoted(text)} is out of range; allowed are {self.low} to {self.high}")
        return value

    @staticmethod
    def _value(text: str) -> int | None:
        if not text or not _PLAIN.issuperset(text):
            return None
        try:
            return int(text)
        except ValueError:
            pass
        try:
            value = float(text)
        except ValueError:
            return None
        return int(value) if math.isfinite(value) and value.is_integer() else None


@dataclass(frozen=True, slots=True)
class Port(Whole):
    """A port number; of ports of stripes and moves (``49152;49160>49170``) the first."""

    low: int = 0
    high: int = 0xFFFF

    def cell(self, text: str) -> int:
        """One cell's value, the first port of several.

        Raises
        ------
        ValueError
            With a sentence for people.
        """
        if _PORTS.fullmatch(text.strip()):
            text = re.split("[;>]", text.strip())[0]
        return Whole.cell(self, text)


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number from ``low`` to ``high``."""

    low: float
    high: float

    def column(self, cells: list[str]) -> Floats:
        """All cells at once: float64[row].

        Raises
        ------
        ValueError
            If any cell is not plainly such a number.
        """
        if not _PLAIN.issuperset("".join(cells)):
            raise ValueError("not plain numbers")
        values = np.array([float(cell) for cell in cells])
        if not bool(np.all((values >= self.low) & (values <= self.high))):
            raise ValueError("out of range")
        return values

    def cell(self, text: str) -> float:
        """One cell's value.

        Raises
        ------
        ValueError
            With a sentence for people.
        """
        try:
            value = float(text) if text.strip() and _PLAIN.issuperset(text) else math.nan
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"{quoted(text)} is not a number; allowed are {self.low:g} to {self.high:g}")
        if not self.low <= value <= self.high:
            raise ValueError(f"{quoted(text)} is out of range; allowed are {self.low:g} to {self.high:g}")
        return value


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A date and time in UTC, ``2023-11-16 18:17:03.9799600``, as seconds since 1970."""

    def column(self, cells: list[str]) -> Floats:
        """All cells at once: float64[row], seconds.

        Raises
        ------
        ValueError
            If any cell is not such a time.
        """
        if not all(map(_TIMESTAMP.fullmatch, cells)):
            raise ValueError("not times")
        plain = [cell.removesuffix("Z").removesuffix("+00:00") for cell in cells]
        # Whole nanoseconds first: a float holds today's seconds only to a quarter of a microsecond.
        return np.array(plain, dtype="datetime64[ns]").astype(np.int64) / 1e9

    def cell(self, text: str) -> float:
        """One cell's value in seconds.

        Raises
        ------
        ValueError
            With a sentence for people.
        """
        try:
            return float(self.column([text.strip()])[0])
        except ValueError:
            raise ValueError(
                f"{quoted(text)} is not a time from 1970 to 2199; write it like 2023-11-16 18:17:03.979 (UTC)"
            ) from None


@dataclass(frozen=True, slots=True)
class Text:
    """Text of at most ``length`` characters; ``pattern``, where there is one, matches all of it."""

    length: int = 200
    pattern: str | None = None
    meaning: str = "text"

    def cell(self, text: str) -> str:
        """One cell's text, without blanks around it.

        Raises
        ------
        ValueError
            With a sentence for people.
        """
        stripped = text.strip()
        if len(stripped) > self.length:
            raise ValueError(f"{quoted(text)} is longer than {self.length} characters")
        if self.pattern is not None and not re.fullmatch(self.pattern, stripped, re.ASCII):
            raise ValueError(f"{quoted(text)} is not {self.meaning}")
        return stripped
