"""How many bytes of KV cache a prompt leaves behind: a table of current models, and the arithmetic.

A layer keeps, for each token, keys and values of its KV heads (2 x heads x head dim), or one compressed
latent (MLA). Layers with a sliding window keep only the last tokens; linear-attention layers keep one state
whatever the length. Sizes are those of the cache itself, as transferred: no padding to blocks, no metadata.

Light, so that a router or an inference engine may import it: NumPy is loaded only where arrays are asked for.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from ark.units import quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T", "int", "NDArray[np.int64]")

DTYPE_BITS: Final = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}
"""Bits of one cached number, by the name of its type."""

TOKEN_BYTES_MAX: Final = 1 << 30
STATE_VALUES_MAX: Final = 1 << 40
"""Largest cache a token and largest state a request: far above any model, and sums stay within 64 bits."""

_Count = Annotated[int, Meta(ge=1, le=1_000_000)]
_Width = Annotated[int, Meta(ge=1, le=1_000_000_000)]
_Text = Annotated[str, Meta(max_length=500)]
_Name = Annotated[str, Meta(min_length=1, max_length=80)]


class LayerGroup(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Layers of one kind: exactly one of (``kv_heads`` and ``head_dim``), ``latent`` or ``state`` says which.

    Attributes
    ----------
    count : int
        How many layers of the model are like this.
    kv_heads, head_dim : int
        Ordinary attention (MHA, GQA, MQA): 2 x kv_heads x head_dim numbers a token.
    value_dim : int
        Width of a value head, where it differs from ``head_dim``, the width of a key head.
    latent : int
        Numbers a token where keys and values are stored compressed (MLA: kv_lora_rank + qk_rope_head_dim).
    state : int
        Numbers a request, whatever its length (linear attention, Mamba).
    window : int
        Only the last ``window`` tokens are kept (sliding-window attention).
    dtype : str
        Type of these layers' numbers, a key of ``DTYPE_BITS``, where it is not the model's whatever that is
        set to.
    """

    count: _Count
    kv_heads: _Count | None = None
    head_dim: _Count | None = None
    value_dim: _Count | None = None
    latent: _Width | None = None
    state: _Width | None = None
    window: _Width | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        """Refuse a group of no kind or of two; msgspec names the place in the file.

        Raises
        ------
        ValueError
            If the fields do not say exactly one kind of layer.
        """
        kinds = [self.kv_heads is not None or self.head_dim is not None, self.latent is not None]
        kinds.append(self.state is not None)
        if sum(kinds) != 1 or (kinds[0] and (self.kv_heads is None or self.head_dim is None)):
            raise ValueError("give either kv_heads and head_dim, or latent, or state")
        if (self.value_dim is not None and not kinds[0]) or (self.window is not None and kinds[2]):
            raise ValueError("value_dim goes with head_dim only, and window not with state")
        check_dtype(self.dtype)

    @property
    def values_per_token(self) -> int:
        """Cached numbers a token and layer; 0 for a layer that keeps one state."""
        if self.latent is not None:
            return self.latent
        if self.kv_heads is None or self.head_dim is None:
            return 0
        return self.kv_heads * (self.head_dim + (self.value_dim or self.head_dim))

    def bits(self, tokens: T, dtype: str, smaller: Callable[[T, int], T]) -> T:
        """Bits that one layer keeps of ``tokens`` tokens in a model of that type: a number, or an array.

        ``smaller`` is ``min``, or what does the same with arrays.
        """
        kept = tokens if self.window is None else smaller(tokens, self.window)
        return (kept * self.values_per_token + (self.state or 0)) * DTYPE_BITS[self.dtype or dtype]


class KvModel(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the KV cache of one model consists of.

    Attributes
    ----------
    name : str
        The name that people give, lower case.
    layers : tuple of LayerGroup
    dtype : str
        Type of the cached numbers, a key of ``DTYPE_BITS``.
    aliases : tuple of str
        Other models and names with the same cache.
    source : str
        Where the numbers come from.
    verified : str
        What they were compared with, and empty where they were not.
    note : str
        What the plain formula leaves out.
    """

    name: _Name
    layers: Annotated[tuple[LayerGroup, ...], Meta(min_length=1, max_length=64)]
    dtype: str = "bf16"
    aliases: Annotated[tuple[_Name, ...], Meta(max_length=64)] = ()
    source: _Text = ""
    verified: _Text = ""
    note: _Text = ""

    def __post_init__(self) -> None:
        """Refuse an unknown type of numbers and absurd sizes; msgspec names the place in the file.

        Raises
        ------
        ValueError
            If ``dtype`` is no key of ``DTYPE_BITS``, or the cache is larger than any model's.
        """
        check_dtype(self.dtype)
        if self.bytes_per_token > TOKEN_BYTES_MAX:
            raise ValueError(
                f"{self.bytes_per_token:g} bytes a token are too many; at most {TOKEN_BYTES_MAX} are allowed"
            )
        if sum(group.count * (group.state or 0) for group in self.layers) > STATE_VALUES_MAX:
            raise ValueError(f"the states are too large; at most {STATE_VALUES_MAX} numbers are allowed")

    @property
    def bytes_per_token(self) -> float:
        """Bytes a token, while no window is full: 2 x layers x KV heads x head dim x bytes a number."""
        bits = (
            group.count * group.values_per_token * DTYPE_BITS[group.dtype or self.dtype]
            for group in self.layers
        )
        return sum(bits) / 8

    def prompt_bytes(self, tokens: int) -> int:
        """Whole bytes of the cache of one prompt of ``tokens`` tokens, rounded up."""
        return -(-sum(group.count * group.bits(tokens, self.dtype, min) for group in self.layers) // 8)

    def kv_bytes(self, tokens: "ArrayLike") -> "NDArray[np.int64]":
        """Whole bytes of the cache of prompts of ``tokens`` tokens, rounded up: int64, same shape."""
        import numpy as np  # noqa: PLC0415 - who asks for one prompt does not load it

        length = np.asarray(tokens, dtype=np.int64)
        bits = sum(
            (group.count * group.bits(length, self.dtype, np.minimum) for group in self.layers),
            np.zeros_like(length),
        )
        return np.asarray(-(-bits // 8))


class ModelFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of models, as it stands in a file."""

    model: Annotated[tuple[KvModel, ...], Meta(min_length=1, max_length=1000)]


@lru_cache(maxsize=1)
def kv_models() -> tuple[KvModel, ...]:
    """All models of the table that comes with ARK."""
    text = (files("ark") / "kv_models.json").read_text(encoding="utf-8")
    return msgspec.json.decode(text, type=ModelFile).model


def plain_name(name: str) -> str:
    """A model's name as ``by_name`` has it: in lower case, without the organisation in front."""
    return name.strip().lower().rpartition("/")[2]


def by_name(models: tuple[KvModel, ...]) -> dict[str, KvModel]:
    """Models by their names and aliases, in lower case."""
    return {name.lower(): model for model in models for name in (model.name, *model.aliases)}


def check_dtype(dtype: str | None) -> None:
    """Refuse a type of numbers that is not known.

    Raises
    ------
    ValueError
        If ``DTYPE_BITS`` has no such type.
    """
    if dtype is not None and dtype not in DTYPE_BITS:
        raise ValueError(f"dtype {quoted(dtype)} is not known; known are {', '.join(DTYPE_BITS)}")
