"""How long prefill and the first decode step take, as polynomials of the prompt length.

The presets are fits to public per-layer tables (``data/ORIGIN.md`` says which); ``ark_calibrated`` is none:
it is fitted to the two means that the paper prints.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ark.errors import ConfigError
from ark.fabric.nearest import nearest
from ark.units import NS_PER_S, parse_time, quoted
from ark.workload.vidur import VidurLatency

Floats = NDArray[np.float64]

LATENCY_DEFAULT: Final = "ark_calibrated"


class LatencyModel(Protocol):
    """Time on one prefill GPU, and of the first decode step, as functions of the prompt length."""

    @property
    def name(self) -> str:
        """The name by which it was asked for."""
        ...

    @property
    def origin(self) -> str:
        """Where its numbers come from, for reports."""
        ...

    def prefill_s(self, tokens: ArrayLike) -> Floats:
        """Seconds to prefill prompts of ``tokens`` tokens: float64, same shape."""
        ...

    def decode1_s(self, tokens: ArrayLike) -> Floats:
        """Seconds of one decode step of one request at ``tokens`` of context: float64, same shape."""
        ...


@dataclass(frozen=True, slots=True)
class PolynomialLatency:
    """T_prefill(L) = a + b L + c L², T_decode1(L) = a + b L, with coefficients in milliseconds.

    A constant time is the case b = c = 0.
    """

    name: str
    origin: str
    prefill_ms: tuple[float, float, float]
    decode1_ms: tuple[float, float]

    def prefill_s(self, tokens: ArrayLike) -> Floats:
        """Seconds to prefill: float64, same shape."""
        length = np.asarray(tokens, dtype=np.float64)
        a, b, c = self.prefill_ms
        return np.asarray((a + length * (b + length * c)) / 1e3)

    def decode1_s(self, tokens: ArrayLike) -> Floats:
        """Seconds of the first decode step: float64, same shape."""
        length = np.asarray(tokens, dtype=np.float64)
        a, b = self.decode1_ms
        return np.asarray((a + length * b) / 1e3)


def latency_model(name: str) -> LatencyModel:
    """The latency model that a person names.

    A preset (``ark_calibrated``; ``h100_llama3_8b_modern_fa3``, with prefill in chunks as
    ``h100_llama3_8b_modern_fa3/chunk2048``; ``h200_sxm/meta-llama-3-70b/tp4/whole``; ``latency_names`` lists
    all), fixed times as ``constant:840ms:10ms`` (prefill, first decode step), or ``vidur:FOLDER``, a profile
    to learn from (``VidurLatency``).

    Raises
    ------
    ConfigError
        If there is no such preset (the nearest one is named), a time is none, or the profile has faults.
    """
    wanted = name.strip().lower()
    if wanted.startswith("constant:"):
        return _constant(wanted)
    if wanted.startswith("vidur:"):
        return VidurLatency(Path(name.strip()[len("vidur:") :]))
    presets = _presets()
    if wanted not in presets:
        hint = nearest(wanted, presets, "latency model", "presets are")
        raise ConfigError(
            f'{hint} ("ark models --latencies" lists all; fixed times are written "constant:840ms:10ms", '
            'profiles "vidur:FOLDER")'
        )
    return presets[wanted]


def latency_names() -> tuple[str, ...]:
    """Names of all presets, in the order of the table."""
    return tuple(_presets())


def fitting_preset(models: Iterable[str]) -> str | None:
    """The preset to suggest for a model of these names: on four H100 if there is such a one, unchunked.

    None where the table has no preset of the model.
    """
    wanted = {name.lower() for name in models}
    parts = {name: name.split("/") for name in _presets()}
    fits = [name for name, part in parts.items() if len(part) == len(_PREFERRED) + 1 and part[1] in wanted]

    def rank(name: str) -> list[int]:
        device, _, workers, chunk = parts[name]
        asked = zip((device, workers, chunk), _PREFERRED, strict=True)
        return [order.index(part) if part in order else len(order) for part, order in asked]

    return min(fits, key=rank, default=None)


_PREFERRED: Final = (("h100_sxm", "h100"), ("tp4",), ("whole", "chunk4096"))
"""GPU, workers and chunk of a preset that is suggested, the best first."""


def _constant(text: str) -> PolynomialLatency:
    parts = text.split(":")
    if len(parts) != 3:
        raise ConfigError(
            f"latency model {quoted(text)}: write the times of prefill and first decode step like "
            '"constant:840ms:10ms"'
        )
    prefill_s, decode1_s = (parse_time(part) / NS_PER_S for part in parts[1:])
    return PolynomialLatency(
        text, "fixed times given by the user", (prefill_s * 1e3, 0.0, 0.0), (decode1_s * 1e3, 0.0)
    )


@lru_cache(maxsize=1)
def _presets() -> dict[str, PolynomialLatency]:
    text = (files("ark.workload") / "data" / "latency_fits.csv").read_text(encoding="utf-8")
    return {
        row["name"]: PolynomialLatency(
            name=row["name"],
            origin=row["origin"],
            prefill_ms=(
                float(row["prefill_a_ms"]),
                float(row["prefill_b_ms_per_token"]),
                float(row["prefill_c_ms_per_token2"]),
            ),
            decode1_ms=(float(row["decode1_a_ms"]), float(row["decode1_b_ms_per_token"])),
        )
        for row in csv.DictReader(text.splitlines())
    }
