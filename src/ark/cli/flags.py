"""Values of flags, read and checked with one clear line for whatever is wrong with them."""

import math
from pathlib import Path
from typing import Final

from ark.errors import ConfigError
from ark.fabric import Fabric, paper_fabric
from ark.fabric.load import load_fabric
from ark.fabric.name_ranges import expand
from ark.units import quoted
from ark.workload.text_file import read_text

SEEDS_MAX: Final = 100_000
"""More would take days, and their interval is far below what a fabric differs from its model."""

POINTS_MAX: Final = 1000

NUMBER_MAX: Final = 1e9
"""A billion requests a second are one a nanosecond; no rate, load or factor means anything above."""


def numbers(flag: str, text: str | None) -> tuple[float, ...]:
    """Positive numbers of a list such as ``1,5,10``, each once, in the order of the text.

    Raises
    ------
    ConfigError
        If one is no number, not positive, not finite, or stands twice.
    """
    found: dict[float, None] = {}
    for part in (text or "").split(","):
        try:
            value = float(part)
        except ValueError:
            raise ConfigError(
                f"{flag}: {quoted(part.strip())} is no number; write a list like 5,10,25"
            ) from None
        if not math.isfinite(value) or value <= 0:
            raise ConfigError(f"{flag}: {part.strip()} is not allowed; give positive numbers")
        if value > NUMBER_MAX:
            raise ConfigError(f"{flag}: {part.strip()} is not allowed; give numbers up to {NUMBER_MAX:g}")
        if value in found:
            raise ConfigError(f"{flag}: {part.strip()} stands twice")
        found[value] = None
    if len(found) > POINTS_MAX:
        raise ConfigError(f"{flag}: {len(found)} numbers; allowed are up to {POINTS_MAX}")
    return tuple(found)


def output(path: Path) -> Path:
    """The path of ``--out`` itself, which stands in the report and in JSON.

    Raises
    ------
    ConfigError
        If it is no valid UTF-8, which both are.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"--out: {quoted(str(path))} is not valid UTF-8; give another name") from None
    return path


def positive(flag: str, value: float) -> float:
    """A positive, finite number.

    Raises
    ------
    ConfigError
        If it is not.
    """
    if not math.isfinite(value) or value <= 0:
        raise ConfigError(f"{flag}: {value:g} is not allowed; give a positive number")
    if not 1 / NUMBER_MAX <= value <= NUMBER_MAX:
        raise ConfigError(f"{flag}: {value:g} is not allowed; give {1 / NUMBER_MAX:g} to {NUMBER_MAX:g}")
    return value


def count(flag: str, value: int, most: int) -> int:
    """A whole number from 1 to ``most``.

    Raises
    ------
    ConfigError
        If it is not.
    """
    if not 1 <= value <= most:
        raise ConfigError(f"{flag}: {value} is not allowed; give 1 to {most}")
    return value


def names(text: str) -> tuple[str, ...]:
    """The names of a list such as ``ecmp,ark``."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def host_names(flag: str, text: str | None, fabric: Fabric) -> tuple[str, ...] | None:
    """Hosts of a list with ranges such as ``h0-h7,h9``; None where the flag is not given.

    Raises
    ------
    ConfigError
        If there are none, or one is not in the fabric.
    """
    if text is None:
        return None
    known = {host.name for host in fabric.hosts}
    try:
        found = expand(names(text), known)
        for name in found:
            fabric.host(name)
    except ConfigError as error:
        raise ConfigError(f"{flag}: {error}") from None
    if not found:
        raise ConfigError(f"{flag}: no host is named; write a list like h0-h7")
    return found


def fabric_of(path: Path | None) -> Fabric:
    """The fabric of a file, or the paper's without one."""
    if path is None:
        return paper_fabric()
    return load_fabric(read_text(path, what="a fabric file"), str(path))
