import csv
import json
import os
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from ark.cli.main import run

FLOWS = """id,src,dst,size_bytes,start_ns,sport,dport,team
a,h0,h8,100000000,0,50000,4791,x
b,h1,h9,200000000,5,50001,4791,y
"""
REQUESTS = "arrived_s,prompt_tokens,output_tokens\n" + "".join(
    f"{i / 9},{2000 + 90 * i},5\n" for i in range(30)
)
TWO_LEAVES_APART = """
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[[switch]]
name = "spine0"
up = false
[[switch]]
name = "spine1"
up = false
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one good file of each kind and the usual wrong ones; it is the working folder."""
    monkeypatch.chdir(tmp_path)
    files = {
        "flows.csv": FLOWS,
        "requests.csv": REQUESTS,
        "page.html": "<!DOCTYPE html><html><body>404</body></html>\n",
        "empty.csv": "",
        "nan.csv": "id,src,dst,size_bytes,start_ns\na,h0,h8,nan,0\nb,h0,h8,-5,0\n",
        "unknown.csv": "id,src,dst,size_bytes,start_ns\na,h0,h99,5,0\n",
        "a-file": "mine",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "a-folder").mkdir()
    return tmp_path


TRACE = ["--trace", "requests.csv"]
OUT = ["--out", "out"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--trace", f"./{'n' * 300}", *OUT],
            f"ark: {'n' * 300}: cannot be read: File name too long",
        ),
        (OUT, "ark: --trace, --flows: neither is given; give the requests or the transfers to simulate"),
        (
            [*TRACE, "--flows", "flows.csv", *OUT],
            "ark: --trace, --flows: both are given; give the requests or the transfers to simulate",
        ),
        (
            ["--trace", "", *OUT],
            "ark: --trace: is empty; give a file, or one of paper, ",
        ),
        (
            [*TRACE, "--out", os.fsdecode(b"o\xff")],
            'ark: --out: "o\\udcff" is not valid UTF-8; give another name',
        ),
        (["--trace", "none.csv", *OUT], "ark: none.csv: cannot be read: No such file or directory"),
        (["--flows", "none.csv", *OUT], "ark: none.csv: cannot be read: No such file or directory"),
        (
            ["--trace", "mooncake-conversion", *OUT],
            'ark: --trace: no such file, and unknown workload "mooncake-conversion"; did you mean "mooncake',
        ),
        (["--trace", "a-folder", *OUT], "ark: a-folder: cannot be read: Is a directory"),
        ([*TRACE, "--schemes", "ecmp,arc", *OUT], 'ark: --schemes: "arc" is not known; did you mean "ark"?'),
        ([*TRACE, "--schemes", "konga", *OUT], 'ark: --schemes: "konga" is not known; did you mean "conga"?'),
        ([*TRACE, "--schemes", ",", *OUT], "ark: --schemes: none given"),
        ([*TRACE, "--engine", "packt", *OUT], 'ark: invalid value "packt" for --engine.'),
        ([*TRACE, "--ttft", "lifo", *OUT], 'ark: invalid value "lifo" for --ttft.'),
        ([*TRACE, "--qps", "nan", *OUT], "ark: --qps: nan is not allowed; give positive numbers"),
        ([*TRACE, "--qps", "-5", *OUT], "ark: --qps: -5 is not allowed; give positive numbers"),
        ([*TRACE, "--time-scale", "0", *OUT], "ark: --time-scale: 0 is not allowed; give a positive number"),
        ([*TRACE, "--time-scale", "nan", *OUT], "ark: --time-scale: nan is not allowed"),
        (
            [*TRACE, "--qps", "5", "--time-scale", "2", *OUT],
            "ark: --qps and --time-scale both set the rate; give one of them",
        ),
        ([*TRACE, "--seeds", "0", *OUT], "ark: --seeds: 0 is not allowed; give 1 to 100000"),
        ([*TRACE, "--requests", "-1", *OUT], "ark: --requests: -1 is not allowed"),
        ([*TRACE, "--lag", "5", *OUT], 'ark: --lag: "5" has no unit; write "5us"'),
        ([*TRACE, "--lag=-5us", *OUT], 'ark: --lag: "-5us" is not a time'),
        ([*TRACE, "--stripes", "0", *OUT], "ark: --stripes: 0 is out of bounds"),
        ([*TRACE, "--layers", "0", *OUT], "ark: --layers: 0 is out of bounds"),
        ([*TRACE, "--payload", "1", *OUT], "ark: --payload: 1 B is out of bounds"),
        ([*TRACE, "--scale", "-1", *OUT], "ark: --scale: -1 is not allowed"),
        ([*TRACE, "--prefill", "h0-h99", *OUT], 'ark: --prefill: unknown host "h16"'),
        (
            [*TRACE, "--prefill", "h0-h8", "--decode", "h8-h15", *OUT],
            "ark: --prefill, --decode: h8 stands in both; a host has one role",
        ),
        ([*TRACE, "--prefill", "h0-h15", *OUT], "ark: --decode: no host is left for it"),
        ([*TRACE, "--fabric", "page.html", *OUT], "ark: page.html"),
        (
            [*TRACE, "--fabric", "apart.toml", "--prefill", "h0", *OUT],
            "ark: --prefill, --decode: no path is up",
        ),
        (
            [*TRACE, "--model", "lama-3-8b", *OUT],
            'ark: unknown model "lama-3-8b"; did you mean "llama-3-8b"? ("ark models" lists all; ',
        ),
        ([*TRACE, "--models", "none.toml", *OUT], "ark: none.toml: cannot be read: No such file"),
        (
            [*TRACE, "--latency", "constat:5", *OUT],
            'ark: unknown latency model "constat:5"; presets are h100_llama3_8b_modern_fa3 … ',
        ),
        ([*TRACE, "--format", "azur", *OUT], 'ark: unknown trace format "azur"; did you mean "azure"?'),
        (["--trace", "paper", "--jitter", *OUT], "ark: --jitter: only a trace file has that; leave it out"),
        (
            ["--trace", "paper", "--arrivals", "weibull", *OUT],
            'ark: --arrivals: "weibull" is no arrival process; known are "poisson"',
        ),
        (["--trace", "paper", "--arrivals", "gamma:99", *OUT], "ark: --arrivals: gamma arrivals: cv 99 is"),
        ([*TRACE, "--arrivals", "poisson", *OUT], "ark: --arrivals: a file has arrival times of its own"),
        (
            ["--flows", "flows.csv", "--arrivals", "poisson", *OUT],
            "ark: --arrivals: a file has arrival times of its own",
        ),
        (
            ["--flows", "flows.csv", "--qps", "5", *OUT],
            "ark: --qps: a table of transfers has times of its own",
        ),
        (
            ["--flows", "flows.csv", "--jitter", *OUT],
            "ark: --jitter: only a trace file has that; leave it out",
        ),
        (["--flows", "nan.csv", *OUT], "ark: nan.csv:2: size_bytes"),
        (["--flows", "unknown.csv", *OUT], "ark: unknown.csv:2: dst"),
        (
            [*TRACE, "--out", "a-file"],
            'ark: --out: "a-file" can\'t be a folder to write to (Not a directory)',
        ),
        ([*TRACE, "--out", "a-file/out"], 'ark: --out: "a-file/out" can\'t be a folder to write to'),
        (
            [*TRACE, "--out", "x.csv"],
            'ark: --out: "x.csv" ends in .csv, which is for --flows with one scheme',
        ),
        (
            ["--flows", "flows.csv", "--schemes", "ark", "--out", "none/x.csv"],
            'ark: --out: "none/x.csv" can\'t be written; name a file in a folder that is there',
        ),
        (
            ["--flows", "flows.csv", "--schemes", "ark", "--out", "flows.csv"],
            "ark: --out: that is the file of --flows; name another one",
        ),
        ([*TRACE, "--bogus", *OUT], "ark: unknown option: --bogus."),
        (TRACE, 'ark: command "simulate" parameter --out requires an argument.'),
    ],
)
def test_bad_input_is_named_in_one_clear_line(
    here: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "apart.toml").write_text(TWO_LEAVES_APART)
    assert run(["simulate", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(said)
    assert "Traceback" not in shown.err
    assert not (here / "out").exists()


@pytest.mark.parametrize("flag", ["--trace", "--flows", "--fabric"])
@pytest.mark.parametrize("name", ["page.html", "empty.csv", "binary.csv"])
def test_wrong_files_are_refused_by_name(
    here: Path, flag: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "binary.csv").write_bytes(bytes(range(256)))
    extra = TRACE if flag == "--fabric" else []
    assert run(["simulate", flag, name, *extra, *OUT]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert name in lines[0]


@pytest.mark.slow
def test_a_trace_becomes_results_and_a_report(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "out").mkdir()
    (here / "out" / "mine.txt").write_text("mine")
    arguments = ["--schemes", "ecmp,ark", "--seeds", "2", "--prefill", "h0-h3", "--decode", "h8-h11", *OUT]
    assert run(["simulate", *TRACE, *arguments]) == 0
    shown = capsys.readouterr().out
    assert "Report: out/report.html" in shown
    assert "load 0." in shown  # without --qps the load of the trace's own times is said
    assert (here / "out" / "mine.txt").read_text() == "mine"
    with (here / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["scheme"], row["seed"], row["qps"]) for row in rows] == [
        ("ecmp", "0", ""), ("ecmp", "1", ""), ("ark", "0", ""), ("ark", "1", ""),
    ]  # fmt: skip
    with (here / "out" / "flows" / "ark_own-times_seed0.csv").open() as file:
        assert {row["src"] for row in csv.DictReader(file)} <= {"h0", "h1", "h2", "h3"}
    config = json.loads((here / "out" / "config.json").read_text())
    assert config["experiment"]["seeds"] == [0, 1]
    assert config["made_with"]["packages"]["numpy"]
    report = (here / "out" / "report.html").read_text()
    assert "ark simulate --trace requests.csv" in report
    assert "paper's claims" not in report


@pytest.mark.slow
def test_the_command_in_the_report_repeats_the_results(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [
        "--trace",
        "paper",
        "--requests",
        "20",
        "--qps",
        "9,4.5",
        "--schemes",
        "ark,ecmp",
        "--seeds",
        "1",
    ]
    (here / "mine.toml").write_text(
        '[[model]]\nname = "mine"\nlayers = [{ count = 32, kv_heads = 1, head_dim = 64 }]'
    )
    first += ["--arrivals", "gamma:2.5", "--model", "mine", "--models", "mine.toml"]
    assert run(["simulate", *first, "--lag", "50us", "--ttft", "fifo", *OUT, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["config"]["experiment"]["workload"]["arrivals"] == "gamma:2.5"
    assert told["config"]["experiment"]["kv_layers"] == [{"count": 32, "kv_heads": 1, "head_dim": 64}]
    report = (here / "out" / "report.html").read_text()
    assert "gamma:2.5 arrivals" in report
    assert "mine, 8 KiB of KV cache a token" in report
    command = report.partition('<pre class="command">')[2].partition("</pre>")[0].split()
    assert command[:2] == ["ark", "simulate"]
    assert run([*command[1:-1], "again", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == told["results"]


@pytest.mark.slow
def test_a_trace_whose_name_is_no_utf8_stands_escaped_in_the_report(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", TextIOWrapper(BytesIO(), "utf-8", "backslashreplace"))  # as main() does
    name = os.fsdecode(b"\xff.csv")
    (here / name).write_text(REQUESTS)
    assert run(["simulate", "--trace", name, "--schemes", "ecmp", "--seeds", "1", *OUT, "--json"]) == 0
    assert "on \\udcff.csv" in (here / "out" / "report.html").read_text("utf-8")
    assert "\\udcff.csv" in (here / "out" / "config.json").read_text("utf-8")


@pytest.mark.slow
def test_json_is_one_object_with_the_rows_of_results(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *TRACE, "--schemes", "ecmp,ark", "--seeds", "1", *OUT, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["out", "report", "answer", "warnings", "reductions", "results", "config"]
    with (here / "out" / "results.csv").open() as file:
        header = next(csv.reader(file))
    assert [list(row) for row in told["results"]] == [header, header]
    assert {row["metric"] for row in told["reductions"]} == {
        "fct_mean_s", "fct_p95_s", "ttft_mean_s", "ttft_p95_s",
    }  # fmt: skip


@pytest.mark.slow
def test_transfers_alone_have_no_ttft(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "out").mkdir()
    assert run(["simulate", "--flows", "flows.csv", "--schemes", "ecmp,ark,ideal", *OUT]) == 0
    assert "TTFT" not in capsys.readouterr().out.partition("These are transfers only")[0]
    assert not (here / "out" / "fig4_ttft.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_one_scheme_and_a_csv_give_just_the_table(
    here: Path, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--json"] if as_json else []
    assert run(["simulate", "--flows", "flows.csv", "--schemes", "ark", "--out", "x.csv", *flags]) == 0
    with (here / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["team"] for row in rows] == ["x", "y"]
    assert all(int(row["fct_ns"]) > 0 and row["path"] and row["spine"].startswith("spine") for row in rows)
    assert sorted(path.name for path in here.iterdir() if path.name.startswith("x")) == ["x.csv"]
    shown = capsys.readouterr().out
    assert (json.loads(shown)["out"] == "x.csv") if as_json else shown.startswith("2 transfers under ark")
