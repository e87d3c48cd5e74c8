"""``ark lab``: what it refuses, what it builds, and that nothing is left of it."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ark.cli.main import run
from ark.lab import directory
from ark.lab.namespaces import names_with

PATIENCE_S = 90.0
COMMAND = [sys.executable, "-m", "ark.cli.main", "lab"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces")


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(
        'kind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nrate = "100 Gbit/s"\n', "ascii"
    )
    return file


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < end:
        os.sched_yield()
    return holds()


def is_gone(name: str) -> bool:
    return not (directory.BASE / name).exists() and names_with(f"{name}-") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "--out: name a folder for the results"),
        (["run", "--out", "x", "--schemes", "ecmp,ideal"], 'the lab has no "ideal"'),
        (["run", "--out", "x", "--rate", "100"], '--rate: "100" has no unit'),
        (["run", "--out", "x", "--rate", "1 Tbit/s"], "--rate: 1 Tbit/s is not allowed"),
        (["run", "--out", "x", "--requests", "0"], "--requests: 0 is not allowed; give 1 to 10000"),
        (["run", "--out", "x", "--qps", "0"], "--qps: 0 is not allowed"),
        (["run", "--fault", "spine-up"], 'did you mean "spine-down"'),
        (["run", "--fault", "all", "--out", "x"], "leave --out and --seeds out"),
        (["run", "--out", "x", "--hash-seed", "0"], "--hash-seed: 0 is not allowed"),
        (["run", "--mover", "mooncake", "--out", "x"], "--out: --mover mooncake writes one after the other"),
        (["run", "--mover", "mooncake", "--learn"], "--learn: under --mover mooncake agents are told"),
        (["run", "--mover", "mooncake", "--schemes", "ark"], "--schemes: --mover mooncake writes one after"),
        (["run", "--fault", "all", "--schemes", "ark"], "--schemes: --fault runs under ark alone"),
        (["up", "--fabric", "nowhere.toml"], "nowhere.toml"),
        (["down", "--name", "a/b"], '--name: "a/b" is not allowed; give up to 20 letters and digits'),
    ],
)
def test_bad_flags_are_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_without_root_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(["lab", "run", "--out", str(tmp_path / "out")]) == 1
    assert "network namespaces need root; run it as: sudo ark" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_shell_needs_a_lab(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(directory, "BASE", tmp_path)
    assert run(["lab", "shell", "h0"]) == 1
    assert capsys.readouterr().err == 'ark: no lab called "up" is up; build one with: sudo ark lab up\n'


@needs_root
@pytest.mark.slow
def test_a_run_compares_and_leaves_its_files_only(
    tmp_path: Path, fabric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The short run that stands for `ark lab run` wherever root and namespaces are there."""
    out = tmp_path / "out"
    words = [
        "run",
        "--fabric",
        str(fabric),
        "--qps",
        "8",
        "--requests",
        "16",
        "--seeds",
        "1",
        "--json",
        "--learn",
    ]
    assert run(["lab", *words, "--schemes", "ecmp,ark", "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == "emulated"
    assert found["right"] is True
    assert [(row["scheme"], row["engine"]) for row in found["results"]] == [
        ("ecmp", "emulated"),
        ("ark", "emulated"),
        ("ecmp", "flow"),
        ("ark", "flow"),
    ]
    assert [row["transfers"] for row in found["checks"]] == [16, 16]
    with (out / "results.csv").open(encoding="utf-8") as file:
        assert [row["engine"] for row in csv.DictReader(file)] == ["emulated", "emulated", "flow", "flow"]
    page = (out / "report.html").read_text("utf-8")
    assert "Emulated by ARK" in page
    assert "the times are measured, and scatter" in page
    assert {file.name for file in out.iterdir()} == {
        "beside.png",
        "checks.csv",
        "config.json",
        "fig2_fct.png",
        "fig3_spines.png",
        "flows",
        "link_bytes.csv",
        "link_bytes.png",
        "report.html",
        "results.csv",
    }
    assert is_gone(directory.name_of_run())


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("how", ["down", "killed"])
def test_up_shell_and_the_end(fabric: Path, how: str) -> None:
    short = f"test{os.getpid()}{how}"
    name = directory.PREFIX + short
    lab = subprocess.Popen(
        [*COMMAND, "up", "--fabric", str(fabric), "--name", short],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert lab.stdout is not None
    try:
        shown = [lab.stdout.readline() for _ in range(5)]
        assert "A shell on a host" in shown[-1], lab.communicate()
        if how == "down":
            _others_see_it(fabric, short)
            ended = subprocess.run(
                [*COMMAND, "down", "--name", short], check=True, capture_output=True, text=True
            )
            assert ended.stdout == f"{name} is gone\n"
            assert is_gone(name)
            assert lab.wait(PATIENCE_S) == 0
        else:
            lab.send_signal(signal.SIGKILL)
            assert until(lambda: is_gone(name))
    finally:
        lab.kill()
        lab.communicate()
        assert until(lambda: is_gone(name))


def _others_see_it(fabric: Path, short: str) -> None:
    asked = subprocess.run(
        [
            *COMMAND,
            "shell",
            "--name",
            short,
            "h0",
            "python",  # that of this command, though no PATH says so
            "-m",
            "ark.cli.main",
            "status",
            "--json",
        ],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    summary = json.loads(asked.stdout)
    assert '"h0"' in asked.stdout
    assert summary
    wrong = subprocess.run(
        [*COMMAND, "shell", "--name", short, "h9"], check=False, capture_output=True, text=True
    )
    assert wrong.returncode == 2
    assert "host or switch" in wrong.stderr
    second = subprocess.run(
        [*COMMAND, "up", "--fabric", str(fabric), "--name", short],
        check=False,
        capture_output=True,
        text=True,
    )
    assert f"{directory.PREFIX}{short} is up already" in second.stderr
