"""Source ports of a flag: ``roce``, ``all``, or ports and ranges."""

import re
from collections.abc import Sequence
from typing import Final

from ark.errors import ConfigError
from ark.fabric import ALL_PORTS
from ark.fabric.roce import SPORTS
from ark.units import quoted

_RANGE: Final = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


def port_ranges(flag: str, text: str) -> Sequence[int]:
    """The ports of a list such as ``50000-50999,60000``, ascending, or those of a name.

    Raises
    ------
    ConfigError
        If a part is no port and no range of ports.
    """
    named = {"roce": SPORTS, "all": ALL_PORTS}.get(text)
    if named is not None:
        return named
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if not first <= last <= 0xFFFF:
            raise ConfigError(
                f"{flag}: {quoted(part.strip())} is no port or range of ports; "
                'write "roce", "all", or a list like 50000-50999,60000'
            )
        found.update(range(first, last + 1))
    return sorted(found)
