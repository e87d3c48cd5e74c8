"""The texts of what can be wrong with a fabric file, word for word."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.fabric import leaf_spine, load_fabric, to_toml
from ark.fabric.addresses import scheme_addresses
from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan
from ark.fabric.build import build
from ark.fabric.fault_list import FAULTS_MAX
from ark.fabric.hash_spec import HashSpec
from ark.fabric.load import TEXT_MAX
from ark.fabric.schema import KINDS, HostEntry, LinkChange, LinkEntry, SwitchEntry

LEAF_SPINE = 'kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\n'
LINKS = """\
kind = "links"
host = [{name = "a"}, {name = "b"}]
switch = [{name = "s"}, {name = "t"}]
"""
CABLES = 'link = [{between = ["a", "s"]}, {between = ["s", "t"]}, {between = ["t", "b"]}%s]\n'
FULL = LINKS + CABLES


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_fabric(text, "f.toml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ['kind: is missing; write one of "leaf-spine", "fat-tree", "dual-plane", "links"']),
        ("kind = 3", ['kind: write one of "leaf-spine", "fat-tree", "dual-plane", "links"']),
        ('kind = "leafspine"', ['kind: unknown kind "leafspine"; did you mean "leaf-spine"?']),
        (
            'kind = "x"',
            ['kind: unknown kind "x"; known are leaf-spine, fat-tree, dual-plane, links'],
        ),
        (" <html>", [" is an HTML or XML page, not TOML; was it downloaded from the wrong address?"]),
        ("a b", [" is no valid TOML: Expected '=' after a key in a key/value pair (at line 1, column 3)"]),
        ("a = " + "[" * 5000, [" is nested too deep for a fabric file"]),
        ("a = " + "1" * 5000, [" has a number of thousands of digits; write a smaller one"]),
        (
            'kind = "leaf-spine"\nspines = 1.5\nhosts_per_leaf = true\n',
            [
                "spines: 1.5 is no whole number",
                "hosts_per_leaf: true is no whole number",
                "leaves: is missing; it has no default",
            ],
        ),
        (
            LEAF_SPINE.replace("2", "10_000_000_000"),
            ["leaves: 10000000000 is out of bounds; allowed are 1 to 65,536"],
        ),
        (
            LEAF_SPINE.replace("8", "60000"),
            [
                " these counts make 120,000 hosts; at most 65,536 are allowed",
            ],
        ),
        (
            LEAF_SPINE.replace("4", "16000").replace("2", "600"),
            [
                " these counts make 16,600 switches; at most 16,384 are allowed",
                " these counts make 9,604,800 links; at most 500,000 are allowed",
            ],
        ),
        (
            LEAF_SPINE.replace("4", "8") + "parallel_links = 64\n",
            [" these counts make 32,768 paths; at most 16,384 are allowed"],
        ),
        (LEAF_SPINE.replace("4", "0"), ["spines: 0 is out of bounds; allowed are 1 to 65,536"]),
        (
            LEAF_SPINE + "nics_per_host = 3\nrail_optimised = true\n",
            ["leaves: 2 is no multiple of the 3 rails; each NIC of a host needs its leaf"],
        ),
        (
            LEAF_SPINE + 'rate = 100\ndelay = "1 parsec"\nfabric_rate = true\n',
            [
                'rate: "100" has no unit; write "100 Gbit/s"',
                (
                    'delay: "1 parsec" is not a time: unknown unit "parsec"; '
                    "known are ns, us, µs, μs, ms, s, min, h"
                ),
                "fabric_rate: true is no rate",
            ],
        ),
        (
            LEAF_SPINE + 'rate = "0 bit/s"\n',
            ['rate: "0 bit/s" is out of bounds; allowed is 1 bit/s to 1 Pbit/s'],
        ),
        (
            LEAF_SPINE + '[[link]]\nbetween = ["leaf0", "spine1"]\ndelay = "11 s"\nrate = "2 Pbit/s"\n',
            [
                'link[0].delay: "11 s" is out of bounds; allowed is 0 to 10 s',
                'link[0].rate: "2 Pbit/s" is out of bounds; allowed is 1 bit/s to 1 Pbit/s',
            ],
        ),
        (
            LEAF_SPINE + 'addresses = "10.0.0"\n',
            ['addresses: "10.0.0" is no first address for 16 NICs; write one like "10.0.0.1", or "ns3"'],
        ),
        (
            LEAF_SPINE + 'addresses = "255.255.255.250"\n',
            [
                ('addresses: "255.255.255.250" is no first address for 16 NICs; '
                'write one like "10.0.0.1", or "ns3"')
            ],
        ),
        (
            LEAF_SPINE + 'prefill = ["h0-h9"]\ndecode = ["h9", "h8-h15", "x1"]\n',
            [
                'decode: unknown host "x1"; the fabric has h0 … h15 (16)',
                'decode: "h8" and 1 more is prefill too; a host has one role',
            ],
        ),
        (
            LEAF_SPINE + 'prefill = ["h7-h0"]\ndecode = ["h8-x15"]\n',
            [
                'prefill: "h7-h0" is no name and no range; a range is like "h0-h7"',
                'decode: "h8-x15" is no name and no range; a range is like "h0-h7"',
            ],
        ),
        (
            LEAF_SPINE + "[hash]\nseed = -1\nbuckets = 0\n",
            [
                "hash.seed: -1 is out of bounds; allowed are 0 to 4,294,967,295",
                "hash.buckets: 0 is out of bounds; allowed are 1 to 65,535",
            ],
        ),
        (
            LEAF_SPINE + 'name = "red\\u001b[31m"\n',
            [r'name: "red\u001b[31m" has control characters; names and other texts have none'],
        ),
        (
            LEAF_SPINE + '[hash]\nfunction = "linux"\nseed = 0\nfields = "src"\n[host_hash]\nfields = []\n',
            [
                'hash.fields: "src" is no list; write it in [ ]',
                "hash: seed 0 means a random seed in Linux; give the value that fib_multipath_hash_seed has",
                "host_hash: fields must name at least one field, and each only once",
            ],
        ),
        (
            LEAF_SPINE + '[[switch]]\nname = "leaf0"\nhash = {weights = {spine0 = "1"}}\nup = 1\n'
            "lag_hash = {weights = 1}\n"
            "next_hop_order = 3\n",
            [
                'switch[0].hash.weights.spine0: "1" is no whole number',
                "switch[0].lag_hash.weights: 1 is no table; write its keys",
                "switch[0].up: 1 is neither true nor false",
                "switch[0].next_hop_order: 3 is not allowed; allowed are ascending, descending",
            ],
        ),
        (
            LEAF_SPINE + '[[switch]]\nname = "leaf0-leaf1"\nnext_hop_order = ["spine9"]\n'
            '[[switch]]\nname = "leaf1-leaf0"\n',
            [
                'switch[1].name: "leaf1-leaf0" is no name and no range; a range is like "h0-h7"',
                'switch[0].next_hop_order: unknown neighbour "spine9"; did you mean "spine3"?',
            ],
        ),
        (
            LEAF_SPINE + '[[host]]\nname = "h16"\n[[host]]\nname = "h1"\naddresses = ["10.0.0.1", "x"]\n'
            '[[host]]\nname = "h2"\naddresses = ["10.0.0.1"]\n[[host]]\nname = "h3"\naddresses = ["::1"]\n'
            '[[host]]\nname = "h4"\naddresses = ["a.b"]\n',
            [
                'host[0].name: unknown host "h16"; did you mean "h6"?',
                "host[1]: 2 addresses for 1 NICs; give one for each NIC",
                'host[2]: "h2" has the address 10.0.0.1 of "h0"; each NIC needs its own',
                'host[4]: "a.b" is no IPv4 or IPv6 address',
                " some addresses are IPv4 and some IPv6; a fabric has one family",
            ],
        ),
        (
            LEAF_SPINE + 'link = [{between = ["leaf0"]}, {between = "leaf0"}, {between = [1, "x"]}]\n',
            [
                "link[0].between: has 1 entries; write 2",
                'link[1].between: "leaf0" is no list; write it in [ ]',
                "link[2].between[0]: 1 is no text; write it in quotes",
            ],
        ),
        (
            LEAF_SPINE + 'link = [{between = ["leaf0", "spine0"], member = 1}, {between = ["h0", "h1"]}]\n',
            [
                "link[0].member: 1 is out of bounds; allowed are 0 to 0",
                'link[1].between: the fabric has no link between "h0" and "h1"',
            ],
        ),
        (
            LEAF_SPINE + 'hash = {weights = {spine4 = 2}}\n'
            '[[switch]]\nname = "leaf0"\nlag_hash = {weights = {x = 1}}\n',
            [
                'hash.weights: unknown switch "spine4"; did you mean "spine3"?',
                (
                    'switch[0].lag_hash.weights: unknown switch "x"; '
                    "the fabric has leaf0, leaf1, spine0, spine1, spine2, spine3"
                ),
            ],
        ),
        (LEAF_SPINE + "hash = 1\nlink = 2\nhost = [3]\n", None),
        (
            'kind = "fat-tree"\npods = 2\n',
            [
                "leaves_per_pod: is missing; write it, or k",
                "aggs_per_pod: is missing; write it, or k",
                "cores_per_agg: is missing; write it, or k",
                "hosts_per_leaf: is missing; write it, or k",
            ],
        ),
        (
            FULL % "".join(f', {{between = ["{a}", "{b}"]}}' for a, b in ("ab", "tt", "tc", "as")),
            [
                'link[3]: "a" and "b" are both NICs; one end must be a switch',
                'link[4]: a link needs two ends, not twice "t"',
                'link[5]: unknown end "c"; the fabric has s, t, a, b',
                'link[6]: "a" has two links to "s"; write one of the summed rate, or give two NICs',
            ],
        ),
        (
            FULL.replace('{name = "t"}', '{name = "t"}, {name = "t"}, {name = "a"}, {name = "x y"}') % "",
            [
                'switch[2]: the name "t" is used twice, first in switch[1]',
                'switch[3]: the name "a" is used twice, first in host[0]',
                'switch[4]: "x y" is no name; use letters, digits and _ . : - inside, at most 64 in all',
            ],
        ),
        (
            FULL.replace('{name = "b"}', '{name = "b"}, {name = "c", nics = 2}')
            % ', {between = ["c.0", "s"], lag = "l"}',
            [
                'link[3]: "c.0" is a NIC; a lag joins links between two switches only',
                'host[2]: "c.1" has no link; add one to a switch, or take it out',
            ],
        ),
        (
            FULL.replace('{name = "b"}', '{name = "b", nics = 9}') % "",
            ["host[1].nics: 9 is out of bounds; allowed are 1 to 8"],
        ),
        (
            FULL.replace('{name = "b"}', '{name = ""}, {nics = 1}') % "",
            [
                'host[1].name: "" has 0 characters; allowed are 1 to 64',
                "host[2].name: is missing; it has no default",
            ],
        ),
        (
            'kind = "links"\nhost = []\nswitch = []\nlink = []\n',
            [
                " a fabric has 1 to 65,536 hosts, not 0",
                " a fabric has 1 to 16,384 switches, not 0",
                " a fabric has 1 to 500,000 links, not 0",
            ],
        ),
    ],
)  # fmt: skip
def test_texts(text: str, expected: list[str] | None) -> None:
    expected = expected or [
        "hash: 1 is no table; write its keys",
        "link: 2 is no list; write it in [ ]",
        "host[0]: 3 is no table; write its keys",
    ]
    said = faults(text)
    assert sorted(said) == sorted(f"f.toml:{'' if what.startswith(' ') else ' '}{what}" for what in expected)


def test_a_text_of_absurd_length_is_not_parsed() -> None:
    assert faults("#" * (TEXT_MAX + 1)) == [
        "f.toml: has 67,108,865 characters; a fabric file has at most 67,108,864"
    ]


def test_reading_stops_after_so_many_faults() -> None:
    with pytest.raises(ConfigError) as caught:
        load_fabric(LEAF_SPINE + "".join(f"key{n} = 1\n" for n in range(10 * FAULTS_MAX)), "f.toml")
    assert len(caught.value.faults) == FAULTS_MAX


def test_faults_of_python_callers_name_what_they_gave() -> None:
    cables = [CablePlan(("a", "s"), 1, 1)]
    for call, message in (
        (lambda: leaf_spine(0, 4, 8), "leaves: 0 is out of bounds; allowed are 1 to 65,536"),
        (
            lambda: leaf_spine(1, 1, 1, nics_per_host=9),
            "nics_per_host: 9 is out of bounds; allowed are 1 to 8",
        ),
        (
            lambda: leaf_spine(1, 1, 1, parallel_links=0),
            "parallel_links: 0 is out of bounds; allowed are 1 to 64",
        ),
        (lambda: leaf_spine(2, 4, 8, down=("spine4",)), 'unknown switch "spine4"; did you mean "spine3"?'),
        (
            lambda: leaf_spine(2, 4, 8, down=(("h0", "leaf1"),)),
            'there is no link between "h0" and "leaf1" to be down',
        ),
        (
            lambda: build(Blueprint("x", [HostPlan("a", 9)], [SwitchPlan("s")], cables)),
            "a host has 1 to 8 NICs, not 9",
        ),
        (
            lambda: build(Blueprint("x", [HostPlan("a"), HostPlan("a")], [SwitchPlan("s")], cables)),
            'the name "a" is used twice',
        ),
        (lambda: leaf_spine(1, 0, 2).nic("b"), 'unknown NIC "b"; leaf-spine 1x0x2 has h0, h1'),
        (
            lambda: leaf_spine(1, 0, 2, nics_per_host=2).nic("h0"),
            'host "h0" has 2 NICs; write one of them, like "h0.0"',
        ),
        (lambda: leaf_spine(1, 0, 2).host("h2"), 'unknown host "h2"; leaf-spine 1x0x2 has h0, h1'),
        (lambda: leaf_spine(1, 0, 2, rate_bps=0), "a rate is 1 bit/s to 1 Pbit/s, not 0 bit/s"),
        (lambda: leaf_spine(1, 0, 2, delay_ns=-1), "a delay is 0 to 10 s, not -1 ns"),
        (lambda: leaf_spine(1, 0, 2).switch("spine0"), 'unknown switch "spine0"; leaf-spine 1x0x2 has leaf0'),
        (
            lambda: scheme_addresses("ns3", 65_537),
            'addresses: "ns3" has addresses for 65,536 NICs, not 65,537',
        ),
    ):  # fmt: skip
        with pytest.raises(ConfigError) as caught:
            call()
        assert str(caught.value) == message


def only_config_errors(text: str) -> None:
    try:
        load_fabric(text, "f.toml")
    except ConfigError as error:
        for line in str(error).splitlines():
            assert line.startswith(("f.toml", "... and"))
            assert len(line) < 700


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("utf-8", "replace"))))
@example("\x00")
@example("kind = '\\u0000'")
@example("k\u2028ind = 1")
def test_random_text_yields_config_errors_only(text: str) -> None:
    only_config_errors(text)


KEYS = st.sampled_from(
    [key for kind in KINDS.values() for key in kind.__struct_fields__]
    + [key for part in (LinkEntry, LinkChange, SwitchEntry, HostEntry) for key in part.__struct_fields__]
    + [*HashSpec.__struct_fields__, "kind"]
)
VALUES = st.recursive(
    st.one_of(
        st.sampled_from(
            ["leaf-spine", "fat-tree", "dual-plane", "links", "leaf0", "h0", "h0-h9", "1 Gbit/s", "1us"]
        ),
        st.text(max_size=5),
        st.integers(-3, 12),
        st.integers(),
        st.booleans(),
        st.floats(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


def toml_value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" for c in value if not 0xD800 <= ord(c) < 0xE000) + '"'
    return str(value).lower()


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(['kind = "fat-tree"\n', "", LEAF_SPINE, FULL % "", 'kind = "dual-plane"\n']),
    st.dictionaries(KEYS, VALUES, max_size=6),
)
def test_random_structures_yield_config_errors_only(start: str, table: dict[str, object]) -> None:
    present = set(re.findall(r"^(\w+) =", start, re.MULTILINE))
    lines = [f"{key} = {toml_value(value)}\n" for key, value in table.items() if key not in present]
    only_config_errors(start + "".join(lines))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_good_file_with_a_few_characters_changed_yields_config_errors_only(data: st.DataObject) -> None:
    text = list(to_toml(leaf_spine(2, 2, 1, parallel_links=2, parallel_as="lag", down=("spine0",))))
    for place in data.draw(st.lists(st.integers(0, len(text) - 1), max_size=4)):
        text[place] = data.draw(st.sampled_from(list('"[]{}=.,\n#0a-\\\x00é')))
    only_config_errors("".join(text))
