"""Compiled kernels are kept, but never past an edit of anything that they call."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ark.sim.compilation import ANNOUNCEMENT, source_key

OUTER = """
from ark.sim.compilation import kernel
from inner import step

@kernel
def run(count):
    total = 0
    for number in range(count):
        total += step(number)
    return total

print(run(10))
"""
INNER = """
from ark.sim.compilation import kernel

@kernel
def step(number):
    return number {operation}
"""


def run(folder: Path, **environment: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "outer.py"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(folder / "cache")} | environment,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_an_edited_callee_is_compiled_again_and_anything_else_only_once(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(operation="+ 1"))
    first, said = run(tmp_path)
    assert first == "55"
    assert said.count(ANNOUNCEMENT) == 1
    assert run(tmp_path) == ("55", "")
    (tmp_path / "inner.py").write_text(INNER.format(operation="* 2"))
    second, said = run(tmp_path)
    assert second == "90"
    assert ANNOUNCEMENT in said
    assert run(tmp_path, NUMBA_DISABLE_JIT="1") == ("90", "")


@pytest.mark.slow
def test_without_a_place_to_keep_them_kernels_compile_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(operation="+ 1"))
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert run(tmp_path)[0] == "55"


def test_the_key_follows_every_file_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("A = 1")
    (tmp_path / "b.py").write_text("B = 1")
    key = source_key(tmp_path)
    assert source_key(tmp_path) == key
    (tmp_path / "b.py").write_text("B = 2")
    edited = source_key(tmp_path)
    (tmp_path / "c.py").write_text("")
    assert len({key, edited, source_key(tmp_path)}) == 3
