"""Follow the file of learned paths: ``ark discover watch`` replaces it at each change of the fabric."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ark.agent.learned_paths import load_paths
from ark.agent.logs import log
from ark.agent.ports import Learned, Way
from ark.errors import ConfigError
from ark.fabric import Fabric

LOOK_S: Final = 1.0
"""Between two looks at whether the file is still the same."""


async def follow(
    path: Callable[[], Path | None], fabric: Fabric, take: Callable[[Mapping[Way, Learned]], None]
) -> None:
    """Read the file whenever it has changed, without end; what is wrong with it is logged once, and changes
    nothing.

    Parameters
    ----------
    path
        Which file, now; None for none.
    fabric
        That its maps must fit.
    take
        Takes what it says.
    """
    seen: object = None
    while True:
        await asyncio.sleep(LOOK_S)
        file = path()
        look = None if file is None else (file, _signature(file))
        if file is None or look == seen:
            continue
        seen = look
        try:
            learned = await asyncio.to_thread(load_paths, file, fabric)  # a large one takes its time
        except ConfigError as error:
            log(logging.ERROR, "learned paths not read", faults=str(error).splitlines())
            continue
        if file == path():
            take(learned)


def _signature(path: Path) -> tuple[int, ...]:
    """What changes with a file; empty without one."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
