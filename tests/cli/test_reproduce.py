import csv
import json
from pathlib import Path

import pytest

from ark.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--qps", "5", "--load", "0.5"], "ark: --qps and --load say the same in two ways; give one of them"),
        (["--load", "-1"], "ark: --load: -1 is not allowed; give positive numbers"),
        (["--qps", "5,x"], 'ark: --qps: "x" is no number; write a list like 5,10,25'),
        (["--seeds", "0"], "ark: --seeds: 0 is not allowed; give 1 to 100000"),
        (["--seeds", "ten"], 'ark: invalid value for --seeds: unable to convert "ten" into int.'),
        (["--requests", "0"], "ark: --requests: 0 is not allowed"),
        (["--schemes", "ark,ark"], 'ark: --schemes: "ark" is given twice'),
        (["--engine", "flows"], 'ark: invalid value "flows" for --engine.'),
        (["--fabric", "none.toml"], "ark: none.toml: cannot be read: No such file or directory"),
        (["--payload", "0"], "ark: --payload: 0 B is out of bounds"),
        (["--scale", "nan"], "ark: --scale: nan is not allowed"),
        (["--release", "nobody"], 'ark: invalid value "nobody" for --release.'),
    ],
)
def test_bad_input_is_named_in_one_clear_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "--out", "out", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(said)
    assert len(shown.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_papers_experiment_in_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    small = ["--requests", "60", "--qps", "5,25", "--seeds", "1", "--schemes", "ark-paper,ecmp"]
    assert run(["reproduce", *small, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    names = {path.name for path in out.iterdir()}
    assert names == {
        "config.json", "fig2_fct.png", "fig3_spines.png", "fig4_ttft.png",
        "flows", "report.html", "results.csv", "table1.json",
    }  # fmt: skip
    assert told["table1"] == json.loads((out / "table1.json").read_text())
    assert {row["name"] for row in told["table1"]["rows"]} >= {"hash", "lookup", "initialize", "arrival_1000"}
    assert all(row["seconds"] > 0 for row in told["table1"]["rows"])
    assert any("QPS 25" in claim["claim"] for claim in told["claims"])
    assert told["warnings"][0] == (
        "This run has another number of requests: the paper's claims are not about it."
    )
    assert any("One seed" in warning for warning in told["warnings"])
    with (out / "results.csv").open() as file:
        assert [row["qps"] for row in csv.DictReader(file)] == ["5.0"] * 2 + ["25.0"] * 2


@pytest.mark.slow
def test_a_load_becomes_the_requests_per_second_that_offer_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--requests", "400", "--seeds", "2", "--schemes", "ecmp", "--load", "0.4"]
    assert run(["reproduce", *small, "--out", str(tmp_path), "--json"]) == 0
    loads = [row["load"] for row in json.loads(capsys.readouterr().out)["results"]]
    assert sum(loads) / 2 == pytest.approx(0.4, rel=0.1)
