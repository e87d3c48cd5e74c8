"""Read plain data (as TOML gives it) into a msgspec struct, and say everything that is wrong with it at once.

``msgspec.convert`` stops at the first fault and speaks of JSON; this reader walks the same types, names each
fault by its place in the file, and goes on with the rest.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from ark.errors import ConfigError
from ark.fabric.blueprint import DELAY_MAX_NS, RATE_MAX_BPS
from ark.fabric.fault_list import FaultList
from ark.fabric.nearest import nearest
from ark.units import parse_rate, parse_time, quoted

UNIT: Final = "unit"
"""Key in ``msgspec.Meta.extra`` that says in which unit a text is: ``rate`` or ``time``."""


class _Unit(NamedTuple):
    parse: Callable[[str], int]
    least: int
    most: int
    allowed: str


_UNITS: Final[Mapping[str, _Unit]] = {
    "rate": _Unit(parse_rate, 1, RATE_MAX_BPS, "1 bit/s to 1 Pbit/s"),
    "time": _Unit(parse_time, 0, DELAY_MAX_NS, "0 to 10 s"),
}

_INVALID: Final = object()
"""In place of a value that had a fault."""

_Table = TypeVar("_Table", bound=msgspec.Struct)


def read_table(value: object, kind: type[_Table], faults: FaultList) -> _Table | None:
    """A struct made of plain data; faults found on the way are added to ``faults``.

    Returns
    -------
    struct
        With defaults in place of faulty keys that may be left out, so that the caller can go on looking for
        faults; or nothing where a key that is needed, or an entry of a list, is faulty.
    """
    reader = _Reader(faults)
    table = reader.read(inspect.type_info(kind), value, "")
    return table if isinstance(table, kind) and reader.complete else None


class _Reader:
    def __init__(self, faults: FaultList) -> None:
        self.faults = faults
        self.complete = True

    def read(self, kind: inspect.Type, value: object, where: str) -> object:
        unit = None
        while isinstance(kind, inspect.Metadata):
            unit = (kind.extra or {}).get(UNIT, unit)
            kind = kind.type
        if isinstance(kind, inspect.UnionType):
            return self._union(kind, value, where)
        if isinstance(kind, inspect.StructType):
            return self._struct(kind, value, where)
        if isinstance(kind, inspect.VarTupleType | inspect.TupleType):
            return self._tuple(kind, value, where)
        if isinstance(kind, inspect.DictType):
            return self._dict(kind, value, where)
        if unit is not None:
            return self._quantity(unit, value, where)
        return self._plain(kind, value, where)

    def _plain(self, kind: inspect.Type, value: object, where: str) -> object:
        problem = _problem(kind, value)
        if problem is None:
            return value
        if isinstance(kind, inspect.IntType) and "." not in where:
            # A count of the whole file: without it nothing that follows can be judged.
            self.complete = False
        return self._fault(where, problem)

    def _fault(self, where: str, what: str) -> object:
        self.faults.add(where, what)
        return _INVALID

    def _union(self, kind: inspect.UnionType, value: object, where: str) -> object:
        """The one member that fits the form of the value (a list or not); TOML has no null."""
        members = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
        fitting = [member for member in members if _is_sequence(member) == isinstance(value, list)]
        return self.read((fitting or members)[0], value, where)

    def _struct(self, kind: inspect.StructType, value: object, where: str) -> object:
        if not isinstance(value, dict):
            return self._fault(where, f"{_shown(value)} is no table; write its keys")
        fields = {field.encode_name: field for field in kind.fields}
        for key in value:
            if key not in fields:
                self.faults.add(
                    _inside(where, key), nearest(key, fields, "key", "known are", listed=len(fields))
                )
        values = {
            key: self.read(fields[key].type, item, _inside(where, key))
            for key, item in value.items()
            if key in fields
        }
        values = {key: item for key, item in values.items() if item is not _INVALID}
        needed = [key for key, field in fields.items() if field.required]
        for key in needed:
            if key not in value:
                self.faults.add(_inside(where, key), "is missing; it has no default")
        if not all(key in values for key in needed):
            return _INVALID
        try:
            return kind.cls(**values)
        except ValueError as error:  # the struct's own rules about keys that contradict each other
            return self._fault(where, str(error))

    def _tuple(self, kind: inspect.VarTupleType | inspect.TupleType, value: object, where: str) -> object:
        if not isinstance(value, list):
            return self._fault(where, f"{_shown(value)} is no list; write it in [ ]")
        if isinstance(kind, inspect.TupleType):
            types = kind.item_types
            if len(types) != len(value):
                return self._fault(where, f"has {len(value)} entries; write {len(types)}")
        else:
            types = (kind.item_type,) * len(value)
        items = [
            self.read(item_type, item, f"{where}[{index}]")
            for index, (item_type, item) in enumerate(zip(types, value, strict=True))
        ]
        if any(item is _INVALID for item in items):
            self.complete = False
            return _INVALID
        return tuple(items)

    def _dict(self, kind: inspect.DictType, value: object, where: str) -> object:
        if not isinstance(value, dict):
            return self._fault(where, f"{_shown(value)} is no table; write its keys")
        items = {key: self.read(kind.value_type, item, _inside(where, key)) for key, item in value.items()}
        return _INVALID if any(item is _INVALID for item in items.values()) else items

    def _quantity(self, unit: str, value: object, where: str) -> object:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return self._fault(where, f"{_shown(value)} is no {unit}")
        try:
            found = _UNITS[unit].parse(str(value))
        except ConfigError as error:
            return self._fault(where, str(error))
        if not _UNITS[unit].least <= found <= _UNITS[unit].most:
            return self._fault(where, f"{_shown(value)} is out of bounds; allowed is {_UNITS[unit].allowed}")
        return str(value)


def _is_sequence(kind: inspect.Type) -> bool:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return isinstance(kind, inspect.VarTupleType | inspect.TupleType)


def _inside(where: str, key: str) -> str:
    """The place of a key in a table; a key that is no plain word is quoted, so that it stays on one line."""
    shown = key if key.replace("_", "").replace("-", "").isalnum() and len(key) <= 60 else quoted(key)
    return f"{where}.{shown}" if where else shown


def _shown(value: object) -> str:
    """A value as the file has it, cut to what fits a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    return str(value)[:60]


def _problem(kind: inspect.Type, value: object) -> str | None:
    """What is wrong with a plain value, or nothing."""
    if isinstance(kind, inspect.LiteralType):
        return _literal_problem(kind, value)
    if isinstance(kind, inspect.BoolType):
        return None if isinstance(value, bool) else f"{_shown(value)} is neither true nor false"
    if isinstance(kind, inspect.IntType):
        return _integer_problem(kind, value)
    assert isinstance(kind, inspect.StrType), f"the schema has a type that the reader does not know: {kind}"
    return _text_problem(kind, value)


def _text_problem(kind: inspect.StrType, value: object) -> str | None:
    if not isinstance(value, str):
        return f"{_shown(value)} is no text; write it in quotes"
    if not value.isprintable():
        return f"{quoted(value)} has control characters; names and other texts have none"
    if (kind.min_length or 0) <= len(value) <= (kind.max_length or len(value)):
        return None
    return f"{quoted(value)} has {len(value)} characters; allowed are {kind.min_length} to {kind.max_length}"


def _integer_problem(kind: inspect.IntType, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{_shown(value)} is no whole number"
    least, most = kind.ge, kind.le
    if (least is not None and value < least) or (most is not None and value > most):
        return f"{_shown(value)} is out of bounds; allowed are {least:,} to {most:,}"
    return None


def _literal_problem(kind: inspect.LiteralType, value: object) -> str | None:
    if any(value == known and type(value) is type(known) for known in kind.values):
        return None
    allowed = [str(known) for known in kind.values]
    guess = nearest(str(value), allowed, "value", "").partition("; did you mean ")[2]
    listed = ", ".join(allowed)
    return f"{_shown(value)} is not allowed; allowed are {listed}" + (
        f"; did you mean {guess}" if guess else ""
    )
