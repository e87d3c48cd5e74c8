"""What the tests compile: the library, plain and with sanitizers, and the programs around it."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ark.integrations.preload import LIBRARY, build

SOURCES = Path(build.__code__.co_filename).parent
PROGRAMS = Path(__file__).parent / "c"
SANITIZERS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
CFLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-O1", "-g1")

CC = shutil.which("cc") or shutil.which("gcc")


def compile_c(into: Path, sources: Sequence[str | Path], *flags: str) -> Path:
    """Compile and link C."""
    assert CC is not None
    command = [CC, *CFLAGS, "-o", str(into), *map(str, sources), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return into


def has_header(name: str) -> bool:
    """Whether the compiler finds a header."""
    assert CC is not None
    command = [CC, "-fsyntax-only", "-include", name, "-xc", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def library(folder: Path, *flags: str) -> Path:
    """The preload library, compiled into a folder of its own; processes of one test run share it."""
    with _alone(folder) as is_first:
        return build(folder, more=flags) if is_first else folder / LIBRARY.name


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Let one process at a time work on a folder; whether nobody has done that yet."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "done"
        yield not done.exists()
        done.touch()


def sanitizer_runtime() -> str | None:
    """AddressSanitizer's library, which has to be loaded before all others."""
    assert CC is not None
    found = subprocess.run([CC, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    path = Path(found.stdout.strip())
    return str(path.resolve()) if path.is_absolute() else None


def fakes(folder: Path) -> dict[str, str]:
    """Fakes of libibverbs and libmlx5 with symbol versions, and an engine linked with each kind of them.

    Like wheels that were "repaired", the engine ``bundled`` has the two libraries under names of its own.
    """
    with _alone(folder) as is_first:
        return _made_fakes(folder, is_first=is_first)


def _made_fakes(folder: Path, *, is_first: bool) -> dict[str, str]:
    found = {"program": str(folder / "program")}
    if is_first:
        compile_c(folder / "program", [PROGRAMS / "program.c"], "-ldl")
    names = {
        "system": ("libibverbs.so.1", "libmlx5.so.1"),
        "bundled": ("libibverbs-1a2b.so.1", "libmlx5-3c4d.so.1"),
    }
    for kind, (verbs, mlx5) in names.items():
        where = folder / kind
        found |= {kind: str(where / "engine.so"), f"{kind}-verbs": str(where / verbs)}
        if not is_first:
            continue
        where.mkdir()
        shared = ("-shared", "-fPIC")
        for name, fake in ((verbs, "fake_ibverbs"), (mlx5, "fake_mlx5")):
            script = f"-Wl,--version-script={PROGRAMS / f'{fake}.map'},-soname,{name}"
            compile_c(where / name, [PROGRAMS / f"{fake}.c"], *shared, script)
        linked = [where / verbs, where / mlx5]
        compile_c(where / "engine.so", [PROGRAMS / "engine.c", *linked], *shared, f"-Wl,-rpath,{where}")
    return found


def environment(library_path: Path, socket: Path, **more: str) -> dict[str, str]:
    """What ``ark run`` would set, with patience for a busy machine."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ARK_")}
    ours = {"LD_PRELOAD": str(library_path), "ARK_SOCKET": str(socket), "ARK_RUN_WAIT_MS": "5000"}
    return inherited | ours | more
