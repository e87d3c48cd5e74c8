"""Lists of names with ranges, as people write them: ``h0-h7``."""

import re
from collections.abc import Container, Iterable
from typing import Final

from ark.errors import ConfigError
from ark.fabric.blueprint import HOSTS_MAX
from ark.units import quoted

_RANGE: Final = re.compile(r"(?P<prefix>.*?)(?P<first>[0-9]{1,9})-(?P<again>.*?)(?P<last>[0-9]{1,9})")


def expand(texts: Iterable[str], known: Container[str]) -> tuple[str, ...]:
    """The names that a list with ranges stands for, in order, each once.

    A text that is a known name stands for itself, even where it looks like a range; so does one that is no
    range. Whether the names exist is for the caller to check.

    Raises
    ------
    ConfigError
        If a range runs backwards or has ends of two kinds.
    """
    names: dict[str, None] = {}
    for text in texts:
        match = _RANGE.fullmatch(text)
        if text in known or match is None:
            names[text] = None
            continue
        first, last = int(match["first"]), int(match["last"])
        if match["again"] not in {match["prefix"], ""} or not first <= last < first + HOSTS_MAX:
            raise ConfigError(f'{quoted(text)} is no name and no range; a range is like "h0-h7"')
        names.update(dict.fromkeys(f"{match['prefix']}{number}" for number in range(first, last + 1)))
    return tuple(names)
