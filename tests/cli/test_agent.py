"""``ark agent``, ``ark status`` and ``ark top`` as people and programs see them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster, write_config
from tests.agent.cohort import Cohort, cohort

from ark.cli.main import run

TB = 10**12


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    folder = tmp_path_factory.mktemp("three")
    write_cluster(folder)
    with cohort(folder, 3, more='[policy]\nhold = "0"\nmin_bytes = "1 MB"\n') as made:
        yield made


def test_a_good_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cluster(tmp_path)
    path = write_config(tmp_path, "h0", peers={"h1": "127.0.0.1:1"}, more="dry_run = true\n")
    assert run(["agent", "--check-config", "--config", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == [f"{path}: ok", "  host        h0"]
    assert "  line_rate   100 Gbit/s" in out
    assert err == "warning: dry run: transfers are decided and announced, none is steered\n"
    assert run(["agent", "--check-config", "--json", "--config", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["peers"], len(found["warnings"])) == (True, 1, 1)


def test_a_faulty_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "agent.toml"
    path.write_text("fabrics = 1")
    assert run(["agent", "--check-config", "--json", "--config", str(path)]) == 2
    out, err = capsys.readouterr()
    assert len(json.loads(out)["faults"]) == 3
    assert f'ark: {path}: fabrics: unknown key "fabrics"; did you mean "fabric"?' in err


def test_status(three: Cohort, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    socket = str(three.folder / "h0.sock")
    with three.client("h0").transfer("h2", TB, dport=4791) as transfer:
        assert run(["status", "--socket", socket]) == 0
        out = capsys.readouterr().out
        assert out.startswith("h0: ok, up ")
        assert "  peers heard     2 of 2" in out
        assert "1 arrivals, 1 reservations" in out
        assert [title for title in ("peers", "transfers", "reservations", "links") if f"\n{title} " in out]
        lines = [line.split() for line in out.splitlines()]
        for headings in (
            "host address live proven reservations",
            "flow client from > to size kind paths ports age",
            "host flow state from > to paths size",
            "link from > to rate flows size",
        ):
            assert headings.split() in lines  # none is cut or folded
        assert ["h0", "1", "active", "leaf0", ">", "leaf1", str(transfer.path), "1", "TB"] in lines
        assert max(map(len, out.splitlines())) <= 80
        assert run(["status", "--socket", socket, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (row,) = found["transfers_table"]
        assert row["paths"] == [transfer.path]
        assert run(["status", "--socket", socket, "--why", str(row["flow"])]) == 0
        assert "flow_arrived" in capsys.readouterr().out
    assert run(["status", "--socket", socket, "--why", "999", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"flow": 999, "total": 0, "results": []}
    assert run(["status", "--socket", socket, "--why", "999"]) == 0
    assert "nothing is remembered of flow 999" in capsys.readouterr().err


def test_status_says_when_choices_are_blind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cluster(tmp_path)
    with cohort(tmp_path, 1) as alone:
        alone.stop("h0")
        alone.peers |= {"h1": "127.0.0.1:9", "h2": "127.0.0.1:10"}  # nobody is there
        alone.boot("h0")
        assert run(["status", "--socket", str(tmp_path / "h0.sock")]) == 0
    assert "  peers heard     0 of 2, too few: paths are chosen by hash\n" in capsys.readouterr().out


def test_top(three: Cohort, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    socket = str(three.folder / "h1.sock")
    with three.client("h1").transfer("h2", TB, dport=4791):
        assert run(["top", "--socket", socket, "--count", "2", "--every", "50ms"]) == 0
    out = capsys.readouterr().out
    assert "peers 2 of 2  transfers 1" in out
    assert "█" in out
    assert out.count("Switches") == 2  # one look below the other
    assert ["into", "flows", "relative", "announced"] in [line.split() for line in out.splitlines()]
    assert out.endswith("\n")
    assert run(["top", "--socket", socket, "--every", "1us"]) == 2
    assert capsys.readouterr().err == "ark: --every 1us: allowed is 50ms and more\n"
    assert run(["top", "--socket", socket, "--count", "-1"]) == 2
    assert capsys.readouterr().err == "ark: --count: -1 is not allowed; give 0 or more\n"


@pytest.mark.parametrize("command", ["status", "top"])
def test_no_agent_is_one_clear_line(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--socket", str(tmp_path / "none.sock")]) == 1
    assert capsys.readouterr().err == f"ark: no agent answers at {tmp_path}/none.sock\n"
