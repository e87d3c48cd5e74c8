"""The programs around a real engine, as processes: a receiver, and a sender that does one transfer a line."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.agent.cohort import PATIENCE_S
from tests.contracts.wheels import PYTHON, Wheel

ROOT = Path(__file__).parents[2]
ARK = str(Path(sys.executable).with_name("ark"))


class Transfer(NamedTuple):
    """One transfer: the path that the agent chose, and that of the connection which carried it."""

    chosen: int | None
    taken: int | None


class Sender:
    """A sender that waits for lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def transfer(self) -> Transfer:
        """Let it do one transfer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        while not (line := self._process.stdout.readline()).startswith("["):
            assert line, "the sender has ended"  # engines print lines of their own
        return Transfer(*json.loads(line))


def run(folder: Path) -> tuple[str, ...]:
    """``ark run`` in front of a command."""
    return ARK, "run", "--wait", "10s", "--log", str(folder / "run.log"), "--"


def unpacked(wheel: Wheel, folder: Path) -> Path:
    """The wheel, as pip would install it."""
    if PYTHON not in wheel.path.name:
        pytest.skip(f"{wheel.path.name} is for another Python")
    if shutil.which("ss") is None:
        pytest.skip("ss is missing: apt install iproute2")
    with zipfile.ZipFile(wheel.path) as packed:
        packed.extractall(folder)
    return folder


@contextlib.contextmanager
def sender(
    program: str,
    folder: Path,
    environment: dict[str, str],
    *,
    receiving: tuple[str, ...] = (),
    sending: tuple[str, ...] = (),
) -> Iterator[Sender]:
    """A receiver and a sender, with words in front of their commands; at the end the data is looked at."""
    (folder / "run.log").touch()
    both = os.environ | environment | {"ARK_RUN_LOG": str(folder / "run.log")}
    command = [sys.executable, "-m", f"tests.contracts.programs.{program}"]
    with subprocess.Popen(
        [*receiving, *command, "receive", str(folder)], stdin=subprocess.PIPE, env=both, cwd=ROOT
    ) as receiver:
        try:
            _until_ready(receiver, folder)
            with subprocess.Popen(
                [*sending, *command, "send", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=both,
                cwd=ROOT,
                text=True,
            ) as process:
                yield Sender(process)
            receiver.communicate(b"\n", PATIENCE_S)
        finally:
            receiver.kill()
    assert (folder / "received").read_bytes() == b"ARKARKARKARKARKA"


def _until_ready(receiver: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not (folder / "ready").exists():
        assert receiver.poll() is None, "the receiver has ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
