"""Flow tables: what is read and written, and the messages about what is wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload import read_flows, write_flows
from ark.workload.flows import NO_PORT

HEADER = "id,src,dst,size_bytes,start_ns\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "flows.csv"


def faults_of(text: str, file: Path, nics: list[str] | None = None) -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_flows(file, nics=nics)
    return [line.removeprefix(str(file)) for line in str(raised.value).split("\n")]


def test_the_least_that_a_flow_needs(file: Path) -> None:
    file.write_text(HEADER + "a,h0,h8,100,5\n", encoding="utf-8")
    flows = read_flows(file)
    assert (flows.id, flows.src, flows.dst) == (["a"], ["h0"], ["h8"])
    assert (flows.size_bytes.tolist(), flows.start_ns.tolist()) == ([100], [5])
    assert flows.sport.tolist() == [NO_PORT]
    assert flows.dport.tolist() == [4791]
    assert flows.path is None


def test_unknown_columns_are_kept_and_written_back(file: Path) -> None:
    text = (
        "note,id,src,dst,size_bytes,start_ns,sport,dport,path\n"
        '"x, y",a,h0,h8,100,5,50000,4791,2\n'
        " ,b,h1,h9,7,6,,,\n"
    )
    file.write_text(text, encoding="utf-8")
    flows = read_flows(file)
    assert flows.extra == {"note": ["x, y", " "]}
    assert flows.path == ["2", ""]
    write_flows(flows, file)
    again = read_flows(file)
    assert again.extra == flows.extra
    assert again.path == flows.path
    assert again.sport.tolist() == [50_000, NO_PORT]
    write_flows(flows, file, columns={"path": ["0;2>3", "1"], "fct_ns": [10, 20]})
    assert file.read_text(encoding="utf-8") == (
        "id,src,dst,size_bytes,start_ns,sport,dport,path,note,fct_ns\n"
        'a,h0,h8,100,5,50000,4791,0;2>3,"x, y",10\n'
        "b,h1,h9,7,6,,4791,1, ,20\n"
    )
    assert read_flows(file).path == ["0;2>3", "1"]


def test_the_first_port_of_stripes_is_taken(file: Path) -> None:
    file.write_text(
        HEADER.replace("\n", ",sport,path\n") + "a,h0,h8,1,0,50000;50001>50002,0;2>3\n", encoding="utf-8"
    )
    assert read_flows(file).sport.tolist() == [50_000]


@pytest.mark.parametrize("others", ["", "b,h0,h8,1,1,\n", "b,h0,h8,1,1,x\n"])
def test_no_port_can_be_written_as_a_number(others: str, file: Path) -> None:
    text = HEADER.replace("\n", ",sport\n") + "a,h0,h8,1,1,-1\n" + others
    first = faults_of(text, file)[0]
    assert first == ':2: sport: "-1" is out of range; allowed are 0 to 65535'


def test_empty_ports_stay_open_beside_written_ones(file: Path) -> None:
    file.write_text(HEADER.replace("\n", ",sport\n") + "a,h0,h8,1,1,\nb,h0,h8,1,2,7\nc,h0,h8,1,3,\n", "utf-8")
    assert read_flows(file).sport.tolist() == [NO_PORT, 7, NO_PORT]


def test_flows_are_sorted_by_start_and_that_is_said(file: Path) -> None:
    file.write_text(HEADER + "a,x,y,1,9\nb,x,y,2,3\nc,x,y,3,3\n", encoding="utf-8")
    flows = read_flows(file)
    assert flows.id == ["b", "c", "a"]
    assert flows.size_bytes.tolist() == [2, 3, 1]
    assert flows.notes == ("1 rows stood before an earlier one; all were sorted by start",)


def test_all_faults_come_at_once(file: Path) -> None:
    text = (
        HEADER
        + "a,h0,h8,nan,0\n"
        + "b,h0,h8,0,0\n"
        + "c,h0,h8,1e30,0\n"
        + "d,h0,h8,-5,0\n"
        + "e,h0,h8,1.5,0\n"
        + "f,h0,h8,,0\n"
        + "g,h0,h8,5,-1\n"
        + "h,h0,h8,5\n"
    )
    assert faults_of(text, file) == [
        ':2: size_bytes: "nan" is not a whole number; allowed are 1 to 1125899906842624',
        ':3: size_bytes: "0" is out of range; allowed are 1 to 1125899906842624',
        ':4: size_bytes: "1e30" is out of range; allowed are 1 to 1125899906842624',
        ':5: size_bytes: "-5" is out of range; allowed are 1 to 1125899906842624',
        ':6: size_bytes: "1.5" is not a whole number; allowed are 1 to 1125899906842624',
        ':7: size_bytes: "" is not a whole number; allowed are 1 to 1125899906842624',
        ':8: start_ns: "-1" is out of range; allowed are 0 to 1000000000000000000',
        ':9: "h,h0,h8,5" has 4 cells, the header 5',
    ]


def test_what_flows_may_not_be(file: Path) -> None:
    assert faults_of(HEADER + "a,h0,h8,1,0\na,h1,h9,1,0\nb,h1,h1,1,0\n", file, ["h0", "h1", "h8"]) == [
        ':3: id: "a" stands on line 2 too; ids are unique',
        ':3: dst: unknown NIC "h9"; the fabric has h0, h1, h8',
        ':4: dst: "h1" is the source too; a flow needs two NICs',
    ]
    assert faults_of(HEADER + "a,h1,h9,x,0\na,,,1,-1\n", file, ["h0", "h1", "h8"]) == [
        ':2: size_bytes: "x" is not a whole number; allowed are 1 to 1125899906842624',
        ':2: dst: unknown NIC "h9"; the fabric has h0, h1, h8',
        ':3: src: "" is not a name without blanks and commas',
        ':3: dst: "" is not a name without blanks and commas',
        ':3: start_ns: "-1" is out of range; allowed are 0 to 1000000000000000000',
        ':3: id: "a" stands on line 2 too; ids are unique',
    ]
    assert faults_of(HEADER + " ,h 0,,1,0\n", file) == [
        ':2: id: " " is not a name',
        ':2: src: "h 0" is not a name without blanks and commas',
        ':2: dst: "" is not a name without blanks and commas',
    ]
    assert faults_of(HEADER.replace("\n", ",sport,dport,path\n") + "a,b,c,1,0,70000,x,1;;2\n", file) == [
        ':2: sport: "70000" is out of range; allowed are 0 to 65535',
        ':2: dport: "x" is not a whole number; allowed are 0 to 65535',
        ':2: path: "1;;2" is not a path like "2" (or "0;2>3": ; between stripes, > a move)',
    ]


def test_many_faults_are_counted(file: Path) -> None:
    lines = faults_of(HEADER + "a,h0,h8,x,0\n" * 3000, file)
    assert len(lines) == 21
    assert lines[-1] == "... and 980 more"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": is empty; expected a table of flows"),
        ("\n \r\n", ": is empty; expected a table of flows"),
        (HEADER, ": has a header and no rows"),
        ("<!doctype html><html>", ": is a web page (it starts with <), not a table of flows"),
        ("id;src;dst\n1;2;3\n", ":1: columns are separated by semicolons; use commas"),
        ("id,src,id\n", ':1: column "id" stands there twice'),
        (
            "id,src,dst,size,start_ns\na,b,c,1,2\n",
            ':1: has no column size_bytes; the columns are "id,src,dst,size',
        ),
        (HEADER + 'a,"h0,h8,1,0\n', ':2: "a,\\"h0,h8,1,0" is no row of a table (unexpected end of data)'),
        (HEADER + "a" * 70_000 + ",b,c,1,0\n", ":2: line of 70008 characters; at most 65536 are allowed"),
    ],
)
def test_files_that_are_no_flow_tables(text: str, message: str, file: Path) -> None:
    assert faults_of(text, file)[0].startswith(message)


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=20)


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(
            st.integers(1, 2**50),
            st.integers(0, 10**18),
            st.none() | st.integers(0, 0xFFFF),
            cells,
            st.booleans(),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_what_is_written_is_read(
    rows: list[tuple[int, int, int | None, str, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "round.csv"
    rows.sort(key=lambda row: row[1])
    quote = '"'
    lines = [
        f"{index},s,d,{size},{start},{'' if port is None else port},"
        f"{quote}{note.replace(quote, quote * 2)}{quote},{'1' if pinned else ''}"
        for index, (size, start, port, note, pinned) in enumerate(rows)
    ]
    file.write_text("\n".join([HEADER.strip() + ",sport,note,path", *lines]), encoding="utf-8")
    flows = read_flows(file)
    write_flows(flows, file)
    again = read_flows(file)
    for one in (flows, again):
        assert one.size_bytes.tolist() == [row[0] for row in rows]
        assert one.start_ns.tolist() == [row[1] for row in rows]
        assert one.sport.tolist() == [NO_PORT if row[2] is None else row[2] for row in rows]
        assert one.extra["note"] == [row[3] for row in rows]
        assert one.path == ["1" if row[4] else "" for row in rows]


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, file: Path) -> None:
    file.write_text(HEADER + "a,h0,h8,100,5\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        write_flows(read_flows(file), tmp_path / "nowhere" / "x.csv")
