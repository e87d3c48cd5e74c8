"""``ark path`` as people call it."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ark.cli.main import run
from ark.fabric import FiveTuple, leaf_spine, paper_fabric, path_map, route
from ark.fabric.roce import sport_of_flow_label

ROOT = Path(__file__).resolve().parents[2]
NS3 = ROOT / "examples" / "ns3-reference.toml"


def output(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    assert run(["path", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def json_of(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    out, _ = output(capsys, *arguments, "--json", code=code)
    return json.loads(out)


def fabric_file(tmp_path: Path, hash_keys: str, more: str = "") -> Path:
    path = tmp_path / "fabric.toml"
    counts = 'kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = 2\n'
    path.write_text(f"{counts}{more}hash = {{ {hash_keys} }}\n", encoding="utf-8")
    return path


# predict


def test_predict_names_the_path_of_a_flow(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = output(capsys, "predict", "h0", "h8", "--sport", 50000)
    fabric = paper_fabric()
    source, target = fabric.nic("h0"), fabric.nic("h8")
    path = route(fabric, FiveTuple(source.address, target.address, 50000, 4791), source, target)
    assert out == f"path {path.index}: h0 > leaf0 > spine{path.index} > leaf1 > h8\n"
    assert err == ""


def test_predict_takes_addresses_for_names(capsys: pytest.CaptureFixture[str]) -> None:
    """First flow of m1_single in the ns-3 reference runs: it took node 18, its acknowledgements node 20."""
    of_ns3 = ("--fabric", NS3, "--proto", "udp")
    there = output(capsys, "predict", "11.0.0.1", "11.0.8.1", "--sport", 10003, "--dport", 100, *of_ns3)
    assert there[0] == "path 0: h0 > leaf0 > spine0 > leaf1 > h8\n"
    back = output(capsys, "predict", "h8", "h0", "--sport", 100, "--dport", 10003, *of_ns3)
    assert back[0] == "path 2: h8 > leaf1 > spine2 > leaf0 > h0\n"


def test_predict_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "predict", "h0", "h1", "--sport", 1, "--dport", 2, "--proto", "tcp")
    assert found["fabric"] == "leaf-spine 2x4x8"
    (row,) = found["results"]
    assert row["nodes"] == ["h0", "leaf0", "h1"]
    assert (row["path"], row["spine"], row["proto"], row["sport"], row["dport"]) == (0, None, 6, 1, 2)
    assert [paper_fabric().links[link].target for link in row["links"]] == ["leaf0", "h1"]


@pytest.mark.slow
def test_predict_hashes_queue_pairs_and_flow_labels(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fields = 'fields = ["src", "dst", "dest-qp", "flow-label"]'
    file = fabric_file(tmp_path, fields, 'addresses = "2001:db8::1"\n')
    base = ("predict", "h0", "h3", "--sport", 1, "--fabric", file)
    by_pair = {json_of(capsys, *base, "--dest-qp", n)["results"][0]["path"] for n in range(20)}
    by_label = {
        json_of(capsys, *base, "--dest-qp", 1, "--flow-label", n)["results"][0]["path"] for n in range(20)
    }
    assert len(by_pair) == len(by_label) == 4
    _, err = output(capsys, *base, code=2)
    assert err == "ark: leaf0: the hash reads the destination queue pair (BTH) of a packet; give dest_qp\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("predict",),
            "name a flow: ark path predict SOURCE TARGET --sport PORT, or --batch FILE",
        ),
        (
            ("predict", "h0", "h8"),
            "name a flow: ark path predict SOURCE TARGET --sport PORT, or --batch FILE",
        ),
        (
            ("predict", "h0", "h8", "--sport", 1, "--batch", "x.csv"),
            "give a flow (SOURCE TARGET --sport PORT) or --batch FILE, not both",
        ),
        (("predict", "h0", "h88", "--sport", 1), 'unknown NIC "h88"; did you mean "h8"?'),
        (("predict", "h0", "9.9.9.9", "--sport", 1), "no NIC of leaf-spine 2x4x8 has the address 9.9.9.9"),
        (
            ("predict", "h0", "h0", "--sport", 1),
            '"h0" is source and target at once; a path needs two NICs',
        ),
        (("predict", "h0", "h8", "--sport", 65536), "sport must be 0 to 65535, not 65536"),
        (
            ("predict", "h0", "h8", "--sport", 1, "--proto", "sctp"),
            '--proto: "sctp" is no protocol; write udp, tcp or a number from 0 to 255',
        ),
        (
            ("predict", "h0", "h8", "--sport", 1, "--proto", "256"),
            '--proto: "256" is no protocol; write udp, tcp or a number from 0 to 255',
        ),
        (("predict", "h0", "h8", "--sport", 1, "--fabric", "no.toml"), "no.toml: cannot be read: No such"),
        (
            ("pick", "h0", "h8", "--ports", "5-x"),
            '--ports: "5-x" is no port or range of ports; write "roce", "all", or a list like',
        ),
        (("pick", "h0", "h8", "--ports", "9-5"), '--ports: "9-5" is no port or range of ports'),
        (("pick", "h0", "h8", "--ports", "65536"), '--ports: "65536" is no port or range of ports'),
        (("pick", "h0", "h8", "--ports", ""), '--ports: "" is no port or range of ports'),
        (
            ("pick", "h0", "h8", "--ports", "all", "--format", "flow-labels"),
            "source ports must be 49152 to 65535, not 0",
        ),
        (("map", "h0", "--to", "h8-h99"), "--to: "),
        (("map", "h0", "--to", "h0"), "h0 has no peer to map to"),
    ],
)
def test_bad_flags_get_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...], message: str
) -> None:
    out, err = output(capsys, *arguments, code=2)
    assert out == ""
    assert err.startswith(f"ark: {message}")
    assert err.count("\n") == 1


# predict --batch


def test_a_table_comes_back_with_paths_and_links(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    table.write_text(
        "note,id,src,dst,sport,dport,proto,dest_qp,path\n"
        '"a, b",x,h0,h8,50000,4791,,,9\n'
        ",y,h1,10.0.0.10,50001,4791,tcp,7,9\n",
        encoding="utf-8",
    )
    out, _ = output(capsys, "predict", "--batch", table)
    fabric = paper_fabric()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == [
        "note",
        "id",
        "src",
        "dst",
        "sport",
        "dport",
        "proto",
        "dest_qp",
        "path",
        "links",
    ]
    assert [row["note"] for row in rows] == ["a, b", ""]
    assert [(row["proto"], row["dest_qp"]) for row in rows] == [("", ""), ("tcp", "7")]
    flows = (("h0", "h8", 50000, 17), ("h1", fabric.nics[9].name, 50001, 6))
    for row, (source, target, sport, proto) in zip(rows, flows, strict=True):
        ends = fabric.nic(source), fabric.nic(target)
        path = route(fabric, FiveTuple(ends[0].address, ends[1].address, sport, 4791, proto), *ends)
        assert row["path"] == str(path.index)
        spine = f"spine{path.index}"
        assert row["links"] == f"{source}>leaf0 leaf0>{spine} {spine}>leaf1 leaf1>{target}"


def test_a_table_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    table.write_text("id,src,dst,sport,dport\nx,h0,h8,5,6\ny,h1,h0,7,8\n", encoding="utf-8")
    rows = json_of(capsys, "predict", "--batch", table)["results"]
    assert [(row["id"], row["src"], row["dst"], row["sport"]) for row in rows] == [
        ("x", "h0", "h8", 5),
        ("y", "h1", "h0", 7),
    ]


def test_the_ns3_runs_come_back_with_their_spines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Their tables name nodes by number; host i of the reference fabric is h<i>."""
    source = ROOT / "tests" / "data" / "ns3" / "w200_q5__d9000.csv"
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table = tmp_path / "flows.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"src": f"h{row['src']}", "dst": f"h{row['dst']}"} for row in rows)
    out, _ = output(capsys, "predict", "--batch", table, "--fabric", NS3)
    found = list(csv.DictReader(io.StringIO(out)))
    assert len(found) == 200
    assert all(int(row["path"]) + 18 == int(row["spine"]) for row in found)


def test_parallel_links_are_told_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fabric = fabric_file(tmp_path, "", 'parallel_links = 2\nparallel_as = "ecmp"\n')
    table = tmp_path / "flows.csv"
    rows = "".join(f"{port},h0,h3,{port},4791\n" for port in range(60))
    table.write_text(f"id,src,dst,sport,dport\n{rows}", encoding="utf-8")
    out, _ = output(capsys, "predict", "--batch", table, "--fabric", fabric)
    found = list(csv.DictReader(io.StringIO(out)))
    ups = {row["links"].split()[1] for row in found}
    assert ups == {f"leaf0>spine{k}{member}" for k in range(4) for member in ("", "#1")}
    by_path: dict[str, set[str]] = {}
    for row in found:
        by_path.setdefault(row["path"], set()).add(row["links"])
    assert all(len(links) == 1 for links in by_path.values())


def test_bad_rows_are_named_by_line_and_column(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    table.write_text(
        "id,src,dst,sport,dport,proto\n"
        "a,h0,h8,1,2,udp\n"
        "a,h0,h88,1,2,udp\n"
        "c,h0,1.2.3.4,1,2,sctp\n"
        "d,h0,h0,1,2,udp\n"
        "e,,h88,70000,2,udp\n",
        encoding="utf-8",
    )
    out, err = output(capsys, "predict", "--batch", table, code=2)
    assert out == ""
    assert err.replace(str(table), "T") == (
        'ark: T:3: id: "a" stands on line 2 too; ids are unique\n'
        'T:3: dst: unknown NIC "h88"; did you mean "h8"?\n'
        "T:4: dst: no NIC of leaf-spine 2x4x8 has the address 1.2.3.4\n"
        'T:4: proto: "sctp" is no protocol; write udp, tcp or a number from 0 to 255\n'
        'T:5: "h0" is source and target at once; a path needs two NICs\n'
        'T:6: src: "" is not the name or address of a NIC\n'
        'T:6: sport: "70000" is out of range; allowed are 0 to 65535\n'
        'T:6: dst: unknown NIC "h88"; did you mean "h8"?\n'
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected a table of five-tuples"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"\x00\x01\x02", "is a binary file"),
        (b"id,src,dst,sport\n", "has no column dport"),
        (b"id,src,dst,sport,dport\n", "has a header and no rows"),
        (b"id,src,dst,sport,dport\nx,h0,h8,nan,1\n", 'sport: "nan" is not a whole number'),
        (b"id,src,dst,sport,dport\nx,h0,h8,-1,1\n", 'sport: "-1" is out of range'),
        (b"id,src,dst,sport,dport\nx,h0,h8,1,99999999999999999999\n", "dport: "),
        (b"id,src,dst,sport,dport,dest_qp\nx,h0,h8,1,2,-1\n", 'dest_qp: "-1" is out of range'),
        (b"id,src,dst,sport,dport\nx,h0,h8,1\n", "has 4 cells, the header 5"),
        (b"id,src,dst,sport,dport\nx,,h8,1,2\n", 'src: "" is not the name or address of a NIC'),
    ],
)
def test_files_that_are_no_table_get_a_clear_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, message: str
) -> None:
    table = tmp_path / "flows.csv"
    table.write_bytes(content)
    out, err = output(capsys, "predict", "--batch", table, code=2)
    assert out == ""
    assert err.startswith(f"ark: {table}")
    assert message in err
    assert "Traceback" not in err


def test_a_table_full_of_faults_stops_at_a_bound(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "flows.csv"
    rows = "".join(f"{number},h0,h0,1,2\n" for number in range(3000))
    table.write_text(f"id,src,dst,sport,dport\n{rows}", encoding="utf-8")
    _, err = output(capsys, "predict", "--batch", table, code=2)
    assert err.endswith("... and 980 more\n")


# pick


def test_pick_gives_one_port_a_path_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = output(capsys, "pick", "h0", "h8")
    ports = [int(port) for port in out.split(",")]
    fabric = paper_fabric()
    source, target = fabric.nic("h0"), fabric.nic("h8")
    flows = [FiveTuple(source.address, target.address, port, 4791) for port in ports]
    assert [route(fabric, flow, source, target).index for flow in flows] == [0, 1, 2, 3]
    assert err == ""
    assert output(capsys, "pick", "h0", "h8", "--format", "mooncake")[0] == f"MC_MLX5_QP_UDP_SPORTS={out}"
    labels = output(capsys, "pick", "h0", "h8", "--format", "flow-labels")[0].split(",")
    assert [sport_of_flow_label(int(label)) for label in labels] == ports


def test_pick_as_json_names_what_each_port_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "pick", "h0", "h8", "--ports", "all")
    assert (found["influence"], found["coverage"]) == ("port", 1)
    assert [(row["path"], row["spine"]) for row in found["results"]] == [(k, f"spine{k}") for k in range(4)]
    assert all(row["port"] < 100 and row["flow_label"] is None for row in found["results"])
    roce = json_of(capsys, "pick", "h0", "h8")["results"]
    assert [sport_of_flow_label(row["flow_label"]) for row in roce] == [row["port"] for row in roce]


def test_pick_says_which_paths_the_allowed_ports_miss(capsys: pytest.CaptureFixture[str]) -> None:
    fabric = paper_fabric()
    ends = fabric.nic("h0"), fabric.nic("h8")
    (one,) = path_map(fabric, *ends, ports=[50000]).smallest_set()
    reached = [path for path in range(4) if path_map(fabric, *ends, ports=[50000]).count(path)]
    missing = [path for path in range(4) if path not in reached]
    out, err = output(capsys, "pick", "h0", "h8", "--ports", "50000", code=1)
    assert out == f"{one}\n"
    assert err == f"h0 to h8: no allowed source port leads to path {', '.join(map(str, missing))}\n"
    found = json_of(capsys, "pick", "h0", "h8", "--ports", "50000, 50000-50000", code=1)
    assert found["coverage"] == 0.25
    assert [row["port"] for row in found["results"]] == [50000 if k in reached else None for k in range(4)]


def test_pick_of_one_path_takes_any_port(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = output(capsys, "pick", "h0", "h1")
    assert out == "49152\n"
    assert err == "h0 to h1: there is only one path, so the source port does not matter\n"


@pytest.mark.parametrize(
    ("hash_keys", "reason"),
    [
        ('function = "spray"', "leaf0 sprays the packets of a flow, so the source port does not matter"),
        ('fields = ["src", "dst"]', "no switch on the way hashes the source port, only dst, src"),
        ('fields = ["dest-qp"]', "no switch on the way hashes the source port, only dest-qp"),
    ],
)
def test_pick_gives_no_port_where_ports_do_not_matter(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, hash_keys: str, reason: str
) -> None:
    file = fabric_file(tmp_path, hash_keys)
    out, err = output(capsys, "pick", "h0", "h3", "--fabric", file, code=1)
    assert out == ""
    assert err == f"h0 to h3: {reason}\n"
    found = json_of(capsys, "pick", "h0", "h3", "--fabric", file, code=1)
    assert found["reason"] == reason
    assert all(row["port"] is None for row in found["results"])


# map


def test_map_shows_all_peers(capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "map", "h0")
    assert [peer["peer"] for peer in found["peers"]] == [f"h{number}" for number in range(1, 16)]
    assert [peer["influence"] for peer in found["peers"]] == ["one-path"] * 7 + ["port"] * 8
    assert len(found["results"]) == 7 + 8 * 4
    fabric = paper_fabric()
    of_h8 = path_map(fabric, fabric.nic("h0"), fabric.nic("h8"))
    rows = [row for row in found["results"] if row["peer"] == "h8"]
    assert [(row["path"], row["count"], tuple(row["ports"])) for row in rows] == list(
        zip(of_h8.paths, of_h8.counts, of_h8.kept, strict=True)
    )


def test_map_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = output(capsys, "map", "h0", "--to", "h1,h8", "--ports", "50000-50003")
    lines = [line.split() for line in out.splitlines() if line.split()[:1] in (["h1"], ["h8"])]
    assert lines[0] == ["h1", "0", "4", "50000", "50001", "50002", "50003"]
    assert [line[:3] for line in lines[1:]] == [["h8", str(k), f"spine{k}"] for k in range(4)]
    assert sum(int(line[3]) for line in lines[1:]) == 4
    assert err == "h1: there is only one path, so the source port does not matter\n"


def test_map_of_a_host_with_several_nics_leaves_its_own_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = fabric_file(tmp_path, "", "nics_per_host = 2\n")
    found = json_of(capsys, "map", "h0.1", "--fabric", file)
    assert {peer["peer"] for peer in found["peers"]} == {f"h{n}.{k}" for n in (1, 2, 3) for k in (0, 1)}
    fabric = leaf_spine(2, 4, 2, nics_per_host=2)
    assert len(found["results"]) == sum(
        len(fabric.paths(fabric.nic("h0.1"), nic)) for nic in fabric.nics if nic.host != "h0"
    )


@pytest.mark.slow
def test_help_loads_no_numpy() -> None:
    code = "import sys; from ark.cli.main import run; run(['--help']); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.parametrize("what", ["predict", "pick", "map"])
def test_the_examples_of_the_readme_name_a_fabric_and_work(
    what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(README.parent)
    [line] = [line for line in README.read_text("utf-8").splitlines() if f"bin/ark path {what} " in line]
    arguments = line.partition("  #")[0].split()[1:]
    assert arguments[-2:] == ["--fabric", "examples/paper.toml"]
    assert run(arguments) == 0
    assert capsys.readouterr().out
    assert run(["path", what, "--help"]) == 0
    assert "Without --fabric all of it is about the paper's fabric." in capsys.readouterr().out
