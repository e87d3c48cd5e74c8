"""Files of discovery: names, calculators' tables and learned maps, right and wrong."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.cli.main import run
from ark.discover.calculator import read_calculator
from ark.discover.learned import LearnedMap, LearnedPath, read_learned, write_learned
from ark.discover.names import read_names
from ark.discover.numbering import FabricNumbering, NameNumbering, OrderNumbering
from ark.discover.probe import Flow
from ark.discover.route_get import questions, read_answers
from ark.errors import ConfigError
from ark.fabric import Influence, fat_tree, leaf_spine

ONE = LearnedMap(
    "h0",
    "h8",
    "10.0.0.1",
    "10.0.0.9",
    17,
    4791,
    "port",
    "the source port decides the path",
    (
        LearnedPath(0, ("leaf0", "spine0", "leaf1"), tuple(range(50_000, 50_040))),
        LearnedPath(2, ("leaf0", "spine2", ""), (50_100,)),
    ),
    "probes",
    (2,),
)


def with_no_names(text: str, file_name: str) -> object:
    return read_calculator(text, file_name, names={})


def path_with(number: int, *ports: int) -> dict[str, object]:
    return {"path": number, "hops": [], "ports": ports}


def faults(reader: object, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        reader(text, "file")  # type: ignore[operator]
    return str(caught.value)


def test_a_map_survives_its_file() -> None:
    text = write_learned([ONE], "fabric")
    whole = read_learned(text, "paths.json")
    assert whole.maps == (ONE,)
    assert whole.numbering == "fabric"
    assert json.loads(text)["format"] == "ark-paths"


def test_a_map_is_used_like_one_from_a_model() -> None:
    found = ONE.path_map()
    assert found.influence is Influence.PORT
    assert found.paths == (0, 2)
    assert found.ports(0) == tuple(range(50_000, 50_016))
    assert found.count(0) == 40
    assert found.ports(1) == ()
    assert found.coverage == 1.0
    assert found.smallest_set() == (50_000, 50_100)


def test_a_file_without_states_is_valid_and_a_map_in_doubt_gives_no_ports() -> None:
    whole = json.loads(write_learned([ONE], "fabric"))
    assert whole["maps"][0].pop("state") == "valid"
    assert read_learned(json.dumps(whole), "old.json").maps == (ONE,)
    whole["maps"][0]["state"] = "stale"
    (stale,) = read_learned(json.dumps(whole), "paths.json").maps
    found = stale.path_map()
    assert found.influence is Influence.IN_DOUBT
    assert (found.paths, found.counts, found.kept) == ((0, 2), (0, 0), ((), ()))
    assert "in doubt" in found.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "file: version: 2 is not allowed; allowed are 1"),
        ({"maps": 3}, "file: maps: 3 is no list; write it in [ ]"),
        ({"extra": 1}, 'file: extra: unknown key "extra"; known are format, version, numbering, maps'),
    ],
)
def test_wrong_files_are_named(change: dict[str, object], message: str) -> None:
    value = json.loads(write_learned([ONE], "fabric")) | change
    assert faults(read_learned, json.dumps(value)) == message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("dport", 70_000, "file: maps[0].dport: 70000 is out of bounds; allowed are 0 to 65,535"),
        ("dport", -1, "file: maps[0].dport: -1 is out of bounds; allowed are 0 to 65,535"),
        ("proto", float("nan"), "file: maps[0].proto: nan is no whole number"),
        ("source_address", "h0", "file: maps[0].source_address: is no IPv4 or IPv6 address"),
        ("influence", "often", "is not allowed; allowed are"),
        ("state", "fine", "file: maps[0].state: "),
        (
            "paths",
            [{"path": 0, "hops": [], "ports": [1, 2]}, {"path": 1, "hops": [], "ports": [2]}],
            "two paths",
        ),
        (
            "paths",
            [{"path": 1, "hops": [], "ports": []}, {"path": 0, "hops": [], "ports": []}],
            "must ascend",
        ),
    ],
)
def test_wrong_maps_are_named(key: str, value: object, message: str) -> None:
    whole = json.loads(write_learned([ONE], "fabric"))
    whole["maps"][0][key] = value
    assert message in faults(read_learned, json.dumps(whole))


def test_one_pair_twice_is_named() -> None:
    text = write_learned([ONE, ONE], "fabric")
    assert faults(read_learned, text) == "file: maps[1]: is the second map from h0 to h8"


@pytest.mark.slow
@given(st.text(max_size=300))
def test_no_text_makes_a_reader_fail_otherwise(text: str) -> None:
    for reader in (read_learned, read_names):
        with pytest.raises(ConfigError):
            reader(text, "file")
    with pytest.raises(ConfigError):
        read_calculator(text, "file", names={})


@pytest.mark.slow
@given(st.lists(st.lists(st.text(max_size=12), min_size=5, max_size=5), max_size=6))
def test_no_table_makes_a_reader_fail_otherwise(rows: list[list[str]]) -> None:
    body = "\n".join(",".join(row) for row in rows)
    for reader, columns in ((read_names, "address,switch"), (with_no_names, "src,dst,sport,dport,next_hop")):
        with suppress(ConfigError):
            reader(f"{columns}\n{body}", "file")


def test_names_are_in_shortest_form_and_their_faults_come_together() -> None:
    text = "switch,address,rack\nspine0,10.255.0.1,a\nspine0,fd00:0::1,b\n"
    assert read_names(text, "names.csv") == {"10.255.0.1": "spine0", "fd00::1": "spine0"}
    wrong = "address,switch\n10.0.0.300,spine0\n10.0.0.1,\n10.0.0.2,a\n10.0.0.2,b\nx\n"
    assert faults(read_names, wrong) == "file:6: has 1 cells, the first line 2"
    assert faults(read_names, wrong.replace("\nx", "")).splitlines() == [
        'file:2: address: "10.0.0.300" is no IPv4 or IPv6 address',
        'file:3: switch: "" is no name; write 1 to 100 characters',
        'file:5: address: 10.0.0.2 is of "a" already',
    ]


def test_a_calculator_of_one_switch() -> None:
    text = "src,dst,sport,dport,next_hop\n" + "".join(
        f"10.0.0.1,10.0.0.9,{port},4791,swp{port % 4}\n" for port in range(50_000, 50_008)
    )
    (finding,) = read_calculator(text, "file", names={})
    assert finding.influence is Influence.PORT
    assert finding.switches(50_002) == (None, "swp2")


def test_a_calculator_of_several_switches_in_a_row() -> None:
    head = "src,dst,proto,sport,dport,switch,next_hop\n"
    lines = [
        f"10.0.0.1,10.0.0.9,udp,{port},4791,{switch},{following}\n"
        for port in range(50_000, 50_004)
        for switch, following in (("agg0", f"core{port % 2}"), ("leaf0", "agg0"))
    ]
    (finding,) = read_calculator(head + "".join(lines), "file", names={})
    assert finding.switches(50_001) == ("leaf0", "agg0", "core1")
    assert finding.varying == (3,)


def test_faults_of_a_calculator_come_together() -> None:
    text = (
        "src,dst,sport,dport,next_hop,switch,proto\n"
        "10.0.0.1,10.0.0.9,50000,4791,spine0,leaf0,udp\n"
        "10.0.0.1,10.0.0.9,50000,4791,spine1,leaf0,udp\n"
        "10.0.0.1,nowhere,-1,1e3,spine1,leaf0,sctp\n"
        "10.0.0.1,fd00::1,1,1,,leaf0,tcp\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_calculator(text, "file", names={})
    assert str(caught.value).splitlines() == [
        'file:3: next_hop: "spine1", but line 2 says "spine0" of this packet',
        'file:4: dst: "nowhere" is no IPv4 or IPv6 address',
        'file:4: sport: "-1" is no port; write 0 to 65535',
        'file:4: dport: "1e3" is no port; write 0 to 65535',
        'file:4: proto: unknown protocol "sctp"; known are udp, tcp',
        "file:5: next_hop: is empty; write the neighbour's name or address",
    ]


def test_switches_that_do_not_join_are_named() -> None:
    text = (
        "src,dst,sport,dport,switch,next_hop\n"
        "10.0.0.1,10.0.0.9,1,4791,leaf0,agg0\n"
        "10.0.0.1,10.0.0.9,1,4791,agg1,core0\n"
    )
    with pytest.raises(ConfigError, match=r"file:2: switch: the 2 switches asked .* not one after the other"):
        read_calculator(text, "file", names={})


def test_route_get_that_answers_too_little_is_refused() -> None:
    flow = Flow("10.0.0.1", "10.0.0.9", 6, 0, 443)
    assert questions(flow, [7], interface="swp1") == (
        "route get 10.0.0.9 from 10.0.0.1 iif swp1 ipproto tcp sport 7 dport 443\n"
    )
    with pytest.raises(ConfigError, match="--iif"):
        questions(flow, [7], interface="a b")
    with pytest.raises(ConfigError, match="answered 0 of 1 questions"):
        read_answers("RTNETLINK answers: Invalid", flow, [7], switch=None, names={})


def test_paths_are_numbered_as_the_fabric_numbers_them() -> None:
    numbering = FabricNumbering(leaf_spine(2, 4, 1))
    found = [("leaf0", "spine3", "leaf1"), ("leaf0", "spine1", None), (None, "spine0")]
    assert list(numbering.numbers("h0", "h1", found).values()) == [3, 1, 0]
    with pytest.raises(ConfigError, match=r"h0 to h1: leaf0 > 9.9.9.9 > leaf1 is no path of the fabric"):
        numbering.numbers("h0", "h1", [("leaf0", "9.9.9.9", "leaf1")])
    three = FabricNumbering(fat_tree(4))
    with pytest.raises(ConfigError, match="may be any of the paths"):
        three.numbers("h0", "h15", [("leaf0", "agg0", None, None, None)])


def test_paths_are_numbered_by_the_table_of_names_or_by_order() -> None:
    names = NameNumbering({"10.255.0.9": "s0", "10.255.0.1": "s1"})
    found = [("10.0.0.254", "s1", "x"), ("10.0.0.254", "s0", "x")]
    assert [names.numbers("a", "b", found)[hops] for hops in found] == [1, 0]
    assert [names.numbers("a", "b", found[:1])[hops] for hops in found[:1]] == [1]
    assert [OrderNumbering().numbers("a", "b", found)[hops] for hops in found] == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["discover"], "ark: name the peers: ark discover ADDRESS …, or give --fabric FILE"),
        (["discover", "spine"], 'ark: "spine" is no address; without --fabric FILE peers are addresses'),
        (["discover", "10.0.0.1", "--proto", "icmp"], "ark: --proto:"),
        (["discover", "10.0.0.1", "--per-path", "-3"], 'ark: --per-path: "-3" is no whole number'),
        (["discover", "10.0.0.1", "--ports", "9-1"], "ark: --ports:"),
        (["discover", "10.0.0.1", "--switches", "99"], "ark: --switches: 99 is not allowed; give 1 to 15"),
        (["discover", "10.0.0.1", "--dscp", "64"], "ark: --dscp: 64 is not allowed; give 0 to 63"),
        (["discover", "fd00::1", "--from", "10.0.0.1"], "ark: 10.0.0.1 and fd00::1 are not both"),
        (["discover", "infer", "nowhere.json"], "ark: nowhere.json: cannot be read"),
        (["discover", "import", "nowhere.csv"], "ark: nowhere.csv: cannot be read"),
    ],
)
def test_wrong_flags_are_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(message)
    assert printed.err.count("\n") == 1
