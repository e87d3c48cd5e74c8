"""Sizes, rates and times: their types, and the form in which people write and read them.

People write a number with a unit: ``16 GB``, ``1GiB``, ``400Gbps``, ``400 Gbit/s``, ``2us``. ``GB`` is 10⁹
bytes, ``GiB`` is 2³⁰ bytes, ``Gbit`` is 10⁹ bits. A bare number where a unit belongs is an error, because a
wrong guess would be off by a factor of eight or more. Imports only ``ark.errors``.
"""

import json
import math
import re
from decimal import Decimal
from typing import Final, NewType

from ark.errors import ConfigError

Bytes = NewType("Bytes", int)
BitsPerSecond = NewType("BitsPerSecond", int)
Nanoseconds = NewType("Nanoseconds", int)

NS_PER_S: Final = 1_000_000_000

_DECIMAL: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

_SIZES: Final = {f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY | {"K": 10**3}).items()}
_RATES: Final = {
    f"{prefix}{unit}": factor
    for prefix, factor in (_DECIMAL | {"K": 10**3}).items()
    for unit in ("bit/s", "bps", "b/s")
}
_TIMES_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}

_QUANTITY: Final = re.compile(r"\s*([0-9](?:[0-9_]*[0-9])?(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?)\s*(\S*)\s*")
_LARGEST: Final = 2**63 - 1


def parse_size(text: str) -> Bytes:
    """Whole bytes of a size such as ``16 GB`` or ``1GiB``.

    Raises
    ------
    ConfigError
        If the text is no number with a unit of size, or is no whole number of bytes below 2⁶³.
    """
    return Bytes(_parse(text, _SIZES, "a size", "16 GB"))


def parse_rate(text: str) -> BitsPerSecond:
    """Whole bits per second of a rate such as ``400 Gbit/s`` or ``400Gbps``.

    Raises
    ------
    ConfigError
        If the text is no number with a unit of rate, or is no whole number of bits per second below 2⁶³.
    """
    return BitsPerSecond(_parse(text, _RATES, "a rate", "400 Gbit/s"))


def parse_time(text: str) -> Nanoseconds:
    """Whole nanoseconds of a time such as ``2us`` or ``1.5 ms``; a bare ``0`` needs no unit.

    Raises
    ------
    ConfigError
        If the text is no number with a unit of time, or is no whole number of nanoseconds below 2⁶³.
    """
    if text.strip() == "0":
        return Nanoseconds(0)
    return Nanoseconds(_parse(text, _TIMES_NS, "a time", "2us"))


def quoted(text: str) -> str:
    """Foreign text as messages show it: in double quotes, escaped to one line, and cut at 60 characters."""
    return json.dumps(text if len(text) <= 60 else f"{text[:57]}...", ensure_ascii=True)


def _parse(text: str, factors: dict[str, int], kind: str, example: str) -> int:
    shown = quoted(text)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ConfigError(f'{shown} is not {kind}; write it like "{example}"')
    number, unit = match.groups()
    if not unit:
        suffix = example.lstrip("0123456789")
        raise ConfigError(f'{shown} has no unit; write "{number}{suffix}"')
    if unit not in factors:
        known = ", ".join(sorted(factors, key=lambda name: (factors[name], name)))
        raise ConfigError(f'{shown} is not {kind}: unknown unit "{unit}"; known are {known}')
    value = Decimal(number.replace("_", "")) * factors[unit]
    if value != value.to_integral_value():
        raise ConfigError(f"{shown} is finer than the smallest unit; write a coarser value")
    if value > _LARGEST:
        raise ConfigError(f'{shown} is too large; write it like "{example}"')
    return int(value)


def format_size(size_bytes: float) -> str:
    """A size for people, with three significant digits and a decimal unit: ``1.74 GB``."""
    return _format(size_bytes, _DECIMAL, "B")


def format_rate(rate_bps: float) -> str:
    """A rate for people, with three significant digits: ``400 Gbit/s``."""
    return _format(rate_bps, _DECIMAL, "bit/s")


def format_time(time_s: float) -> str:
    """A time in seconds for people, with three significant digits: ``128 ms``."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(time_s) >= 0.9995 * factor:
            return f"{_three_digits(time_s / factor)} {unit}"
    return f"{_three_digits(time_s / 1e-9)} ns"


def _format(value: float, factors: dict[str, int], unit: str) -> str:
    for prefix in reversed(factors):
        factor = factors[prefix]
        if abs(value) >= 0.9995 * factor or not prefix:
            return f"{_three_digits(value / factor)} {prefix}{unit}"
    raise AssertionError("the loop ends at the empty prefix")


def _three_digits(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value)) + 1e-4))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
