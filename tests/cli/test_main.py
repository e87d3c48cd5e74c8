import os
import subprocess
import sys
from pathlib import Path

import pytest

from ark import __version__
from ark.cli import main as main_module
from ark.cli.main import COMMANDS, run
from ark.errors import ConfigError, LabError

HEAVY = ("numpy", "numba", "polars", "matplotlib", "jinja2", "scipy", "sklearn")


@pytest.mark.slow
@pytest.mark.parametrize("code", ["import ark", "from ark.cli.main import run; assert run(['--help']) == 0"])
def test_help_and_import_load_nothing_heavy(code: str) -> None:
    report = f"{code}\nimport sys\nprint('LOADED', *sorted(set({HEAVY!r}) & set(sys.modules)), 'END')"
    done = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    assert "LOADED END" in done.stdout


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"│ {name} " in shown for name in COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"Usage: ark {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["", "simulate", "path map", "fabric check", "discover watch", "lab", "lab up"]
)
def test_version(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["reproduc"], 'ark: unknown command "reproduc"; did you mean "reproduce"?\n'),
        (["zzz"], f'ark: unknown command "zzz"; there are {", ".join(COMMANDS)}\n'),
        (["--nonsense"], "ark: unknown option --nonsense; options stand behind a command, see: ark --help\n"),
        (
            ["run", "ls", "-l"],
            "ark: unknown option: -l; if it is one of the program's, write -- before the program\n",
        ),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ConfigError("one", "two"), 2, "ark: one\ntwo\n"),
        (LabError("ip is missing"), 1, "ark: ip is missing\n"),
        (FileNotFoundError(2, "No such file", "x.csv"), 1, "ark: x.csv: No such file\n"),
        (KeyboardInterrupt(), 130, "ark: interrupted\n"),
        (
            ModuleNotFoundError("No module named 'numba'", name="numba"),
            1,
            'ark: this needs numba, which is not installed; run: pip install "ark-kv[sim]"\n',
        ),
    ],
)
def test_errors_become_exit_codes_in_one_place(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(main_module, "app", fail)
    assert run(["fabric"]) == code
    assert capsys.readouterr() == ("", text)


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModuleNotFoundError(name="ark.nonsense")

    monkeypatch.setattr(main_module, "app", fail)
    with pytest.raises(ModuleNotFoundError):
        run(["fabric"])


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    # The shell's "| head -c 1": the pipe closes before the help is printed.
    command = f"{sys.executable} -c 'from ark.cli.main import main; main()' fabric schema | head -c 1"
    done = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.slow
def test_tables_are_utf8_under_any_locale_and_with_any_file_name(tmp_path: Path) -> None:
    table = tmp_path / os.fsdecode(b"\xff.csv")
    table.write_text("id,src,dst,sport,dport\n\N{EURO SIGN},h0,h8,5,6\n", encoding="utf-8")
    program = [sys.executable, "-c", "from ark.cli.main import main; main()"]
    command = [*program, "path", "predict", "--batch", str(table)]
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, check=True, capture_output=True, env=ascii_only)
    assert "\N{EURO SIGN},h0,h8,5,6," in done.stdout.decode("utf-8")
    command[-1] += ".not"
    done = subprocess.run(command, check=False, capture_output=True, env=ascii_only)
    assert done.returncode == 2
    assert done.stderr.endswith(b"\\udcff.csv.not: cannot be read: No such file or directory\n")
