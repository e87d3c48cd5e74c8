"""The faults of one input file, collected so that a person gets them all at once."""

from operator import itemgetter
from typing import Final

from ark.errors import ConfigError, Fault

FAULTS_MAX: Final = 1_000
"""Faults collected before reading stops; people read the first twenty, and a wrong file has one a line."""


class Faults:
    """Collects what is wrong with one file; ``check`` raises it all together."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[tuple[int, Fault]] = []

    def __len__(self) -> int:
        return len(self._found)

    @property
    def full(self) -> bool:
        """Whether enough was found that reading on helps nobody."""
        return len(self._found) >= FAULTS_MAX

    def add(self, what: str, *, line: int | None = None, column: str | None = None) -> None:
        """Note one fault, in the whole file, a line, or one column of a line."""
        if self.full:
            return
        where = self.file if line is None else f"{self.file}:{line}"
        fault = Fault(where if column is None else f"{where}: {column}", what)
        self._found.append((line or 0, fault))

    def check(self) -> None:
        """Go on only where nothing was found.

        Raises
        ------
        ConfigError
            With all faults, in the order of their lines.
        """
        if self._found:
            raise ConfigError(*(fault for _, fault in sorted(self._found, key=itemgetter(0))))


def one_line(error: Exception) -> str:
    """What a parser said, as one printable line; it may quote the file with all its control characters."""
    text = str(error)[:300]
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
