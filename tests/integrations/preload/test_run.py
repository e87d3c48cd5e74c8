"""``ark run``: the program takes over, with its own exit code and signals; what is wrong is one line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integrations.preload import compiled
from tests.integrations.preload.fake_agent import agent

from ark.cli import run as run_module
from ark.cli.main import run
from ark.integrations.preload import LIBRARY, VERBS_LIBRARY, NotBuiltError, build

ARK = (sys.executable, "-m", "ark.cli.main", "run")


def started(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    command: Sequence[str] = (*ARK, *arguments)
    env = {name: value for name, value in os.environ.items() if not name.startswith("ARK_")} | more
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.mark.slow
def test_the_program_takes_over() -> None:
    done = started("--size", "1 GiB", "--wait", "50ms", "--", "sh", "-c", "env; exit 7", ARK_SOCKET="a.sock")
    assert done.returncode == 7
    lines = done.stdout.splitlines()
    assert f"ARK_SOCKET={Path('a.sock').absolute()}" in lines
    assert "ARK_RUN_SIZE=1073741824" in lines
    assert "ARK_RUN_WAIT_MS=50" in lines
    if LIBRARY.exists():
        assert f"LD_PRELOAD={LIBRARY}" in lines
        assert done.stderr == ""


@pytest.mark.slow
def test_what_was_preloaded_before_stays() -> None:
    if not LIBRARY.exists():
        pytest.skip("the library is not built")
    done = started("--", "sh", "-c", 'echo "$LD_PRELOAD"', LD_PRELOAD="libc.so.6")
    assert done.stdout == f"{LIBRARY}:libc.so.6\n"


@pytest.mark.parametrize("folder", ["a folder", "a:b"])
def test_a_library_that_the_loader_cannot_find_is_said_and_not_preloaded(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loader would complain in every process, and steer nothing."""
    library = tmp_path / folder / "libark_run.so"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setattr(run_module, "LIBRARY", library)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    started_with: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execvpe", lambda _file, _arguments, env: started_with.append(env))
    assert run(["run", "--", "true"]) == 0
    assert "LD_PRELOAD" not in started_with[0]
    assert f'"{library.parent}", which LD_PRELOAD can\'t name' in capsys.readouterr().err


@pytest.mark.slow
def test_signals_reach_the_program() -> None:
    program = subprocess.Popen(
        [*ARK, "--", "sh", "-c", 'trap "exit 5" TERM; echo ready; while :; do read -r line; done'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGTERM)
    program.communicate()
    assert program.returncode == 5


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "ark: command: is missing; write: ark run -- COMMAND ...\n"),
        (["--", "no-such-program"], "ark: no-such-program: cannot be started: No such file or directory\n"),
        (["--size", "5", "--", "true"], 'ark: --size: "5" has no unit; write "5 GB"\n'),
        (["--size", "0 B", "--", "true"], 'ark: --size: "0 B": allowed are 1 B to 1 PiB\n'),
        (["--wait", "1us", "--", "true"], 'ark: --wait: "1us": allowed are 1ms to 10s\n'),
        (["--wait", "never", "--size", "much", "--", "true"], None),
        (
            ["--socket", "/" + "x" * 107, "--", "true"],
            f"ark: --socket: /{'x' * 107}: is longer than the 107 bytes",
        ),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", *arguments]) == 2
    said = capsys.readouterr().err
    if text is None:
        assert said.count("\n") == 2
        assert "--size" in said
        assert "--wait" in said
    else:
        assert text in said  # behind a word about a library that is not built, where that is so


def test_without_the_library_the_program_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran: list[object] = []

    def replace(name: str, command: Sequence[str], environment: dict[str, str]) -> None:
        ran.append((name, command, environment.get("LD_PRELOAD")))

    monkeypatch.setattr(run_module, "LIBRARY", tmp_path / "none.so")
    monkeypatch.setattr(os, "execvpe", replace)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert run(["run", "--", "program", "--flag"]) == 0
    assert ran == [("program", ("program", "--flag"), None)]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the preload library is not built" in said


def test_explain_says_what_is_steered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    socket = tmp_path / "a.sock"
    assert run(["run", "--explain", "--socket", str(socket)]) == 0
    shown = capsys.readouterr().out
    for word in (
        "connect()",
        "ibv_modify_qp()",
        "mlx5dv_devx_obj_modify()",
        "UCX_TCP_EP_BIND_SRC_ADDR",
        "MC_USE_TENT",
    ):
        assert word in shown
    assert f"NCCL_IBVERBS_LIB={VERBS_LIBRARY}" in shown
    assert "does not answer" in shown


def test_explain_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = tmp_path / "a.sock"
    monkeypatch.delenv("ARK_RUN", raising=False)
    with agent(socket, {}):
        assert run(["run", "--explain", "--json", "--socket", str(socket), "--wait", "1s"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agent"] == "answers as h0"
    assert found["environment"]["ARK_RUN_WAIT_MS"] == "1000"
    assert {row["program"] for row in found["escapes"]} >= {"NCCL", "UCX, TCP", "Mooncake, TCP"}
    socket.with_name("a.sock.off").touch()
    assert run(["run", "--explain", "--json", "--socket", str(socket)]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == f"off, by the file {socket}.off"
    monkeypatch.setenv("ARK_RUN", "off")
    assert run(["run", "--explain", "--json", "--socket", str(socket)]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "off, by ARK_RUN=off"


def test_a_build_that_fails_says_why_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NotBuiltError, match=r"no C compiler was found; .*apt-get install gcc"):
        build(tmp_path)


@pytest.mark.slow
def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if compiled.CC is None:
        pytest.skip("needs a C compiler")
    monkeypatch.setenv("CC", compiled.CC)
    with pytest.raises(NotBuiltError, match=r"failed: .*no-such-flag"):
        build(tmp_path, more=["-fno-such-flag"])
    assert list(tmp_path.iterdir()) == []
