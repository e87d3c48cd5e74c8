"""The schema of the fabric file as people and programs read it, both made from the structs themselves."""

import inspect as python
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import inspect

from ark.fabric import schema
from ark.fabric.hash_spec import CrcParameters, HashSpec
from ark.fabric.table_reader import UNIT

NEEDED: Final = "(needed)"
"""What stands for the default of a key that has none."""


class Key(NamedTuple):
    """One key of a table: how it is written, its default, and what it means."""

    name: str
    form: str
    default: str
    meaning: str


class Section(NamedTuple):
    """The keys of one table, or of the top of a file."""

    title: str
    about: str
    keys: tuple[Key, ...]


def sections() -> Iterator[Section]:
    """All tables of the schema, the general ones first, each key once."""
    yield _section("every kind", schema.FabricFile)
    yield _section("every kind but links", schema.GeneratedFile, schema.FabricFile)
    for kind, table in schema.KINDS.items():
        parent = schema.FabricFile if table is schema.LinksFile else schema.GeneratedFile
        yield _section(f'kind = "{kind}"', table, parent)
    yield _section("[hash], [lag_hash], [host_hash]", HashSpec)
    yield _section("[hash.crc]", CrcParameters)
    for name, change, entry in (
        ("host", schema.HostChange, schema.HostEntry),
        ("switch", schema.SwitchChange, schema.SwitchEntry),
        ("link", schema.LinkChange, schema.LinkEntry),
    ):
        yield _section(f"[[{name}]] in generated kinds", change)
        yield _section(f"[[{name}]] in kind links", entry)


def json_schema() -> dict[str, object]:
    """JSON Schema of the file: one of the kinds, each with all its keys."""
    kinds, components = msgspec.json.schema_components(
        tuple(schema.KINDS.values()), ref_template="#/$defs/{name}"
    )
    for kind, table in schema.KINDS.items():
        properties = components[table.__name__]["properties"]
        components[table.__name__]["properties"] = {"kind": {"const": kind}, **properties}
        components[table.__name__]["required"] = ["kind", *components[table.__name__].get("required", [])]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ARK fabric file",
        "oneOf": list(kinds),
        "$defs": components,
    }


def _section(title: str, table: type[msgspec.Struct], parent: type[msgspec.Struct] | None = None) -> Section:
    known = set() if parent is None else {field.name for field in msgspec.structs.fields(parent)}
    kind = inspect.type_info(table)
    assert isinstance(kind, inspect.StructType), "a table is a struct"
    documented = _attributes(python.getdoc(table) or "")
    about = (python.getdoc(table) or "").partition("\n\n")[0]
    keys = tuple(_key(field, documented) for field in kind.fields if field.name not in known)
    return Section(title, " ".join(about.split()), keys)


def _key(field: inspect.Field, documented: dict[str, str]) -> Key:
    meaning = documented.get(field.name, "")
    if isinstance(field.type, inspect.Metadata):
        meaning = str((field.type.extra_json_schema or {}).get("description", meaning))
    return Key(field.encode_name, _form(field.type), _default(field), meaning)


def _attributes(doc: str) -> dict[str, str]:
    """What the section Attributes of a docstring in NumPy form says of each name."""
    listing = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    if listing is None:
        return {}
    entries = re.findall(r"^(\w+)\n((?: +.*\n?)+)", listing[1], re.MULTILINE)
    return {name: " ".join(text.replace("``", "").split()) for name, text in entries}


def _default(field: inspect.Field) -> str:
    if field.required:
        return NEEDED
    value = field.default
    if value is None or isinstance(value, msgspec.Struct) or value is msgspec.NODEFAULT:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value)
    text = str(value)
    return text if len(text) <= 24 else f"{text[:20]}..."


def _form(kind: inspect.Type) -> str:
    """How a value is written, in few words."""
    match kind:
        case inspect.Metadata(type=inner, extra=extra):
            form = str((extra or {}).get(UNIT) or _form(inner))
        case inspect.UnionType(types=types):
            members = [member for member in types if not isinstance(member, inspect.NoneType)]
            form = " or ".join(_form(member) for member in members)
        case inspect.VarTupleType(item_type=item):
            form = f"list of {_form(item)}"
        case inspect.TupleType(item_types=items):
            form = f"[{', '.join(_form(item) for item in items)}]"
        case inspect.DictType(value_type=value):
            form = f"table of {_form(value)}"
        case _:
            form = _plain_form(kind)
    return form


def _plain_form(kind: inspect.Type) -> str:
    match kind:
        case inspect.LiteralType(values=values):
            form = " | ".join(str(value) for value in values)
        case inspect.IntType(ge=None) | inspect.IntType(le=None):
            form = "integer"
        case inspect.IntType(ge=least, le=most):
            form = f"{least} to {most}"
        case inspect.StructType():
            form = "table"
        case inspect.BoolType():
            form = "true | false"
        case _:
            form = "text"
    return form
