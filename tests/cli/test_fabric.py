import json
from pathlib import Path

import pytest

from ark.cli.main import run
from ark.fabric import load_fabric, paper_fabric

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAPER = str(EXAMPLES / "paper.toml")


def test_check_prints_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "check", PAPER]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert (
        printed.out
        == f"""\
leaf-spine 2x4x8: ok
  hosts                     16 (8 prefill, 8 decode)
  NICs                      16
  switches                  2 leaf, 4 spine
  links                     24
  paths between far hosts   4 (from h0 to h15)
  diameter                  4 links
  oversubscription          2 to 1
  prefill capacity upwards  400 Gbit/s
  digest                    {paper_fabric().digest().hex()}
"""
    )


def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "check", PAPER, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert (found["hosts"], found["far_paths"], found["diameter_links"]) == (16, 4, 4)


def test_check_warns_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "one.toml"
    file.write_text('kind = "leaf-spine"\nleaves = 1\nspines = 0\nhosts_per_leaf = 2\n')
    assert run(["fabric", "check", str(file)]) == 0
    assert capsys.readouterr().err == (
        "warning: the leaves of the prefill hosts have no links upwards, so a load cannot be given\n"
    )


def test_faults_come_on_stderr_with_code_2_and_as_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('kind = "leaf-spine"\nleavs = 2\nspines = 4\nhosts_per_leaf = 8\nrate = "100"\n')
    faults = [
        f'{file}: leavs: unknown key "leavs"; did you mean "leaves"?',
        f'{file}: rate: "100" has no unit; write "100 Gbit/s"',
        f"{file}: leaves: is missing; it has no default",
    ]
    assert run(["fabric", "check", str(file)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "ark: " + "\n".join(faults) + "\n")
    assert run(["fabric", "check", str(file), "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == {"ok": False, "faults": faults}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html><body>404</body></html>", "is a web page"),
        (b"\x7fELF\x00\x01", "is a binary file"),
        (b"", "is empty"),
        (b"kind = 'links'\n\xff", "is not UTF-8 text"),
    ],
)
def test_what_is_no_fabric_file(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.toml"
    file.write_bytes(content)
    assert run(["fabric", "check", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "check", str(tmp_path / name)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_show_paths(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "show", "--paths", "h0", "h8"]) == 0
    out = capsys.readouterr().out
    for spine in range(4):
        assert f"h0 > leaf0 > spine{spine} > leaf1 > h8" in out
    assert run(["fabric", "show", PAPER, "--paths", "h0", "h8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["path"], row["spine"]) for row in found["results"]] == [(k, f"spine{k}") for k in range(4)]
    assert found["results"][2]["nodes"] == ["h0", "leaf0", "spine2", "leaf1", "h8"]
    assert (found["results"][0]["rate_bps"], found["results"][0]["delay_ns"]) == (10**11, 2000)


def test_show_paths_of_a_pair_that_has_very_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wide.toml"
    file.write_text('kind = "leaf-spine"\nleaves = 2\nspines = 100\nhosts_per_leaf = 1\n')
    assert run(["fabric", "show", str(file), "--paths", "h0", "h1"]) == 0
    out = capsys.readouterr().out
    assert "and 36 more" in out
    assert "spine63" in out
    assert "spine64" not in out


def test_show_paths_of_an_unknown_nic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "show", "--paths", "h0", "h88"]) == 2
    assert capsys.readouterr().err == 'ark: unknown NIC "h88"; did you mean "h8"?\n'


def test_show_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "show", str(EXAMPLES / "links.toml")]) == 0
    out = capsys.readouterr().out
    assert "192.0.2.131" in out
    assert "listed" in out
    assert run(["fabric", "show", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["nic"] for row in found["results"]] == [f"h{n}" for n in range(16)]
    assert found["switches_by_name"]["spine3"]["node_id"] == 21


def test_show_toml_can_be_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "show", "--toml"]) == 0
    text = capsys.readouterr().out
    assert load_fabric(text, "shown.toml").digest() == paper_fabric().digest()
    assert run(["fabric", "show", "--toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"toml": text}


def test_schema_names_every_kind_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fabric", "schema"]) == 0
    out = capsys.readouterr().out
    for kind in ("leaf-spine", "fat-tree", "dual-plane", "links"):
        assert f'kind = "{kind}"' in out
    assert max(map(len, out.splitlines())) <= 106
    assert run(["fabric", "schema", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["oneOf"]) == 4
