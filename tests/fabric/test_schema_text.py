"""The printed schema, the JSON Schema and the reader agree, because all are made of the same structs."""

from typing import Any

import msgspec

from ark.fabric import schema
from ark.fabric.hash_spec import CrcParameters, HashSpec
from ark.fabric.schema_text import NEEDED, json_schema, sections


def test_every_key_of_every_table_is_printed_with_its_meaning() -> None:
    printed = {section.title: {key.name: key for key in section.keys} for section in sections()}
    common = {*printed["every kind"]}
    generated = common | {*printed["every kind but links"]}
    for kind, table in schema.KINDS.items():
        parent = common if table is schema.LinksFile else generated
        assert {*printed[f'kind = "{kind}"']} | parent == {*table.__struct_fields__}
    assert {*printed["[hash], [lag_hash], [host_hash]"]} == {*HashSpec.__struct_fields__}
    assert {*printed["[hash.crc]"]} == {*CrcParameters.__struct_fields__}
    assert {*printed["[[link]] in kind links"]} == {*schema.LinkEntry.__struct_fields__}
    for title, keys in printed.items():
        if title != "[hash.crc]":  # the terms of the Rocksoft model
            assert all(key.meaning for key in keys.values()), title


def test_forms_bounds_and_defaults_are_those_of_the_structs() -> None:
    keys = {(section.title, key.name): key for section in sections() for key in section.keys}
    leaves = keys['kind = "leaf-spine"', "leaves"]
    assert (leaves.form, leaves.default) == ("1 to 65536", NEEDED)
    rate = keys["every kind", "rate"]
    assert (rate.form, rate.default) == ("rate", "100 Gbit/s")
    between = keys["[[link]] in kind links", "between"]
    assert (between.form, between.default) == ("[text, text]", NEEDED)
    order = keys["[[switch]] in kind links", "next_hop_order"]
    assert (order.form, order.default) == ("ascending | descending or list of text", "")
    key = keys["[hash], [lag_hash], [host_hash]", "key"]
    assert (key.form, key.default) == ("text", "6d5a56da255b0ec24167...")
    weights = keys["[hash], [lag_hash], [host_hash]", "weights"]
    assert (weights.form, weights.default) == ("table of integer", "")
    rails = keys['kind = "dual-plane"', "rail_optimised"]
    assert (rails.form, rails.default) == ("true | false", "false")
    assert keys["every kind but links", "link"].form == "list of table"


def test_the_json_schema_has_each_kind_with_its_keys() -> None:
    document: Any = json_schema()
    references = {entry["$ref"].removeprefix("#/$defs/") for entry in document["oneOf"]}
    assert references == {table.__name__ for table in schema.KINDS.values()}
    for kind, table in schema.KINDS.items():
        definition = document["$defs"][table.__name__]
        assert definition["properties"]["kind"] == {"const": kind}
        assert {*definition["properties"]} == {"kind", *table.__struct_fields__}
        assert definition["additionalProperties"] is False
        needed = [field.name for field in msgspec.structs.fields(table) if field.required]
        assert definition["required"] == ["kind", *needed]
