"""The KV-cache model of a name: from the table of ``ark.kv``, or from a file of the user's."""

import tomllib
from pathlib import Path

import msgspec

from ark.errors import ConfigError, Fault
from ark.fabric.nearest import nearest
from ark.kv import DTYPE_BITS, KvModel, LayerGroup, ModelFile, by_name, kv_models, plain_name
from ark.units import quoted
from ark.workload.faults import one_line
from ark.workload.text_file import read_text

__all__ = ["DTYPE_BITS", "KvModel", "LayerGroup", "kv_model", "kv_models", "read_kv_models"]


def kv_model(name: str, *, dtype: str | None = None, file: Path | None = None) -> KvModel:
    """The model of that name or alias, from a file of the user's or from the table that comes with ARK.

    Parameters
    ----------
    name : str
        Upper and lower case are the same, and what stands before the last ``/`` is dropped, so that
        ``meta-llama/Llama-3.1-8B`` is found.
    dtype : str, optional
        Type of the cached numbers in place of the model's own, a key of ``DTYPE_BITS``.
    file : Path, optional
        Models of the user's (``read_kv_models``); they go before the table's.

    Raises
    ------
    ConfigError
        If no model has the name (the nearest one is named), the type is unknown, or the file has faults.
    """
    wanted = plain_name(name)
    known = by_name(kv_models())
    if file is not None:
        known |= by_name(read_kv_models(file))
    if wanted not in known:
        hint = nearest(wanted, known, "model", "the table has")
        raise ConfigError(f'{hint} ("ark models" lists all; --models takes a file of yours)')
    if dtype is None:
        return known[wanted]
    if dtype not in DTYPE_BITS:
        raise ConfigError(f"unknown KV data type {quoted(dtype)}; known are {', '.join(DTYPE_BITS)}")
    return msgspec.structs.replace(known[wanted], dtype=dtype)


def read_kv_models(path: Path) -> tuple[KvModel, ...]:
    """Models from a TOML file (``[[model]]`` tables) or a JSON file (``{"model": [...]}``) of the user's.

    Raises
    ------
    ConfigError
        If the file cannot be read, is neither, or breaks the schema of ``KvModel``.
    """
    text = read_text(path, what="a file of models")
    try:
        raw = msgspec.json.decode(text) if text.lstrip().startswith("{") else tomllib.loads(text)
        models = msgspec.convert(raw, ModelFile).model
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            Fault(str(path), f"{one_line(error)}; expected [[model]] with name and layers")
        ) from None
    except (RecursionError, ValueError):  # int() refuses thousands of digits
        raise ConfigError(Fault(str(path), "has a value nested too deep or a number too long")) from None
    names = [name for model in models for name in (model.name, *model.aliases)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(*(Fault(str(path), f"model {quoted(name)} stands there twice") for name in twice))
    return models
