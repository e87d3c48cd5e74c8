import json
from pathlib import Path

import pytest

from ark.cli.main import run
from ark.workload import kv_models, latency_names

MINE = """
[[model]]
name = "mine"
layers = [{ count = 10, kv_heads = 1, head_dim = 100 }]
"""


def test_the_models_and_their_sizes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if line.split()[:1] == ["llama-3-8b"]]
    assert line.split()[1:5] == ["131", "kB", "2.1", "GB"]  # 128 KiB a token, times 16,000
    assert all(len(line) <= 80 for line in lines)


def test_models_of_a_file_stand_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    assert run(["models", "--models", str(tmp_path / "mine.toml"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["name"] for row in rows] == ["mine", *(model.name for model in kv_models())]
    assert rows[0]["bytes_per_token"] == 10 * 2 * 100 * 2
    assert rows[1]["aliases"]


def test_the_latencies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "--latencies", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["name"] for row in rows] == list(latency_names())
    # 2.728 + 0.040228 x 2000 + 7.8601e-7 x 2000^2 ms
    [default] = [row for row in rows if row["name"] == "ark_calibrated"]
    assert default["prefill_s"]["2000"] == pytest.approx(0.0863280, abs=1e-6)
    assert run(["models", "--latencies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:3] for line in lines if "ark_calibrated" in line] == [["86.3", "ms"]]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--models", "none.toml"], "ark: none.toml: cannot be read: No such file or directory\n"),
        (["--latencies", "--models", "x"], "ark: --models: the latency presets have no file; leave it out\n"),
        (["llama"], "ark: "),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(said)
    assert not shown.out


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 50_000])
def test_values_too_long_or_too_deep_are_one_clear_line(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"model = {value}\n")
    assert run(["models", "--models", str(file)]) == 2
    said = capsys.readouterr().err
    assert said == f"ark: {file}: has a value nested too deep or a number too long\n"
