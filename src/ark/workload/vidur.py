"""Latency from profiles in Vidur's format: random forests for the parts of a layer, summed as Vidur sums
them.

Within the profiled range the time of each part is what its forest says, made monotone. A forest says the same
for everything beyond its range, so there the part follows a polynomial fitted to the profile, scaled to go on
from the forest's last value. Needs scikit-learn (``ark[vidur]``).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ark.errors import ConfigError
from ark.workload.kv import kv_model
from ark.workload.vidur_profile import Points, read_profile

Floats = NDArray[np.float64]

TOKENS_STEP: Final = 8
KV_STEP: Final = 64
"""Vidur rounds the tokens of an iteration up to 8, and the cached tokens up to 64."""

_TREES: Final = 60
_DEPTH: Final = 32


class Regressor(Protocol):
    """What is used of scikit-learn's models."""

    def fit(self, features: Floats, values: Floats, sample_weight: Floats | None = None) -> object:
        """Learn values (float64[point]) from features (float64[point, feature])."""
        ...

    def predict(self, features: Floats) -> Floats:
        """Values at features: float64[point]."""
        ...


class Part:
    """Time of one part of a layer over (cached tokens, new tokens) or new tokens alone.

    Parameters
    ----------
    points : Points
        The profile of this part; the last feature is the size over which the time is made monotone.
    terms : callable
        Terms of the polynomial that carries on beyond the profile: features (float64[point, feature]) to
        float64[point, term]; the first term is the constant, and all grow with the size.
    """

    def __init__(self, points: Points, terms: Callable[[Floats], Floats]) -> None:
        self._forest = _regressor("forest")
        self._forest.fit(points.features, points.times_ms)
        self._terms = terms
        self._weights = _fit(terms(points.features), points.times_ms)
        self._sizes_max = points.features.max(axis=0)
        self._tables: dict[float, tuple[Floats, Floats]] = {}

    def time_ms(self, size: Floats, cached: float | None = None) -> Floats:
        """Milliseconds at each size, given the cached tokens if it depends on them: float64, same shape."""
        end = self._sizes_max[-1]
        cached_inside = None if cached is None else min(cached, self._sizes_max[0])
        sizes, times = self._table(cached_inside)
        inside = np.interp(np.minimum(size, end), sizes, times)
        if cached == cached_inside and not bool(np.any(size > end)):
            return np.asarray(inside)
        here = self._polynomial(size, cached)
        border = self._polynomial(np.minimum(size, end), cached_inside)
        return np.asarray(inside * np.divide(here, border, out=np.ones_like(here), where=border > 0))

    def _table(self, cached: float | None) -> tuple[Floats, Floats]:
        """Sizes and never falling times of the forest; made once for each amount of cached tokens."""
        key = -1.0 if cached is None else cached
        if key not in self._tables:
            step = TOKENS_STEP if self._sizes_max[-1] >= TOKENS_STEP else 1
            sizes = np.append(np.arange(step, self._sizes_max[-1], step), self._sizes_max[-1])
            times = self._forest.predict(_features(sizes, cached))
            self._tables[key] = (sizes, np.maximum.accumulate(times))
        return self._tables[key]

    def _polynomial(self, size: Floats, cached: float | None) -> Floats:
        flat = self._terms(_features(size.ravel(), cached)) @ self._weights
        return np.asarray(flat.reshape(size.shape))


class VidurLatency:
    """Prefill and decode times of one model on one GPU type, learned from its profile.

    Parameters
    ----------
    folder : Path
        Holds ``mlp.csv`` and ``attention.csv``, and is named like the model (Vidur lays them out so).
    layers : int, optional
        Layers of the model; by default those of the model that the folder is named after.
    chunk_tokens : int, optional
        Prompt tokens an iteration (chunked prefill); by default a prompt is one iteration.

    Raises
    ------
    ConfigError
        If the profile has faults, the model's layers are not known, or scikit-learn is missing.

    Source
    ------
    Vidur, MLSys 2024: random forests over num_tokens, (kv_cache_size, chunk²) and kv_cache_size; time =
    layers x sum of the operations of one layer, tokens rounded up to 8 and cached tokens to 64. As in our
    fits, without CPU overhead, embedding and LM head, and for one worker.
    """

    def __init__(self, folder: Path, *, layers: int | None = None, chunk_tokens: int | None = None) -> None:
        if chunk_tokens is not None and chunk_tokens < TOKENS_STEP:
            raise ConfigError(f"{chunk_tokens} tokens a chunk are too few; give {TOKENS_STEP} or more")
        profile = read_profile(folder)
        if chunk_tokens is not None and not profile.prefill_attention.features[:, 0].any():
            raise ConfigError(
                f"{folder}: no prefill was profiled with tokens in the cache, so chunks have no time"
            )
        self.name = f"vidur:{folder}"
        self.origin = f"random forests trained on the profile in {folder.name}"
        self._layers = _layers(folder) if layers is None else layers
        self._chunk_tokens = chunk_tokens
        self._linear = Part(profile.linear, _line)
        self._save = Part(profile.kv_save, _line)
        # Vidur gives the forest the square of the chunk. Trees only ask which of two sizes is larger, so the
        # chunk itself makes the same trees; the polynomial has the square as a term.
        self._prefill = Part(profile.prefill_attention, _attention)
        self._decode = Part(profile.decode_attention, _line)

    def prefill_s(self, tokens: ArrayLike) -> Floats:
        """Seconds to prefill: float64, same shape."""
        length = np.asarray(tokens, dtype=np.float64)
        if self._chunk_tokens is None:
            return np.asarray(self._iteration_s(length, 0.0))
        total = np.zeros(length.shape)
        for done in range(0, int(length.max(initial=0.0)), self._chunk_tokens):
            now = np.clip(length - done, 0.0, self._chunk_tokens)
            total += np.where(now > 0, self._iteration_s(now, float(-(-done // KV_STEP) * KV_STEP)), 0.0)
        return total

    def decode1_s(self, tokens: ArrayLike) -> Floats:
        """Seconds of one decode step of one request: float64, same shape."""
        context = _rounded(np.asarray(tokens, dtype=np.float64), KV_STEP)
        one = np.full(context.shape, float(TOKENS_STEP))
        layer_ms = self._linear.time_ms(one) + self._save.time_ms(one) + self._decode.time_ms(context)
        return np.asarray(self._layers * layer_ms / 1e3)

    def _iteration_s(self, tokens: Floats, cached: float) -> Floats:
        rounded = _rounded(tokens, TOKENS_STEP)
        layer_ms = self._linear.time_ms(rounded) + self._save.time_ms(rounded)
        return np.asarray(self._layers * (layer_ms + self._prefill.time_ms(tokens, cached)) / 1e3)


def _layers(folder: Path) -> int:
    try:
        return sum(group.count for group in kv_model(folder.name).layers)
    except ConfigError:
        raise ConfigError(
            f"{folder}: no known model is called {folder.name}; name the folder after the model, "
            "or give its number of layers"
        ) from None


def _features(size: Floats, cached: float | None) -> Floats:
    return size[:, None] if cached is None else np.column_stack([np.full(len(size), cached), size])


def _line(features: Floats) -> Floats:
    size = features[:, -1]
    return np.column_stack([np.ones(len(size)), size])


def _attention(features: Floats) -> Floats:
    cached, size = features.T
    return np.column_stack([np.ones(len(size)), size, size**2, size * cached])


def _fit(terms: Floats, times_ms: Floats) -> Floats:
    """Weights, none negative, that fit the times with the least relative error: float64[term].

    A profile that does not rise at all is carried on in proportion to the size: never flat.
    """
    scale = np.maximum(terms.max(axis=0), 1.0)
    model = _regressor("line")
    known = times_ms > 0
    if not known.any():
        return np.zeros(terms.shape[1])
    model.fit(terms[known] / scale, times_ms[known], sample_weight=times_ms[known] ** -2)
    weights = model.predict(np.diag(1 / scale))
    if not bool(np.any(weights[1:] > 0)):
        weights = np.zeros_like(weights)
        weights[1] = 1.0
    return np.asarray(weights)


def _rounded(size: Floats, step: int) -> Floats:
    return np.asarray(np.ceil(size / step) * step)


def _regressor(kind: str) -> Regressor:
    try:
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - an extra that few need
        from sklearn.linear_model import LinearRegression  # noqa: PLC0415
    except ImportError:
        raise ConfigError(
            "latency from a Vidur profile needs scikit-learn; install it with: pip install 'ark-kv[vidur]'"
        ) from None
    if kind == "line":
        return cast("Regressor", LinearRegression(positive=True, fit_intercept=False))
    return cast("Regressor", RandomForestRegressor(_TREES, max_depth=_DEPTH, random_state=0))
