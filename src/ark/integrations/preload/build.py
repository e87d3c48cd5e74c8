"""Compile the preload library beside its sources. Run by the package's build, and by hand::

    python -m ark.integrations.preload

Two libraries come out. ``libark_run.so`` has all the code. ``libark_ibverbs.so`` has none: it needs the first
and the system's ``libibverbs.so.1``, in this order, and stands for libibverbs where a program opens that by
name and asks the handle for its functions, as NCCL does. Imports nothing of ARK: the build runs it by itself.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

HERE: Final = Path(__file__).resolve().parent
LIBRARY: Final = HERE / "libark_run.so"
VERBS_LIBRARY: Final = HERE / "libark_ibverbs.so"
WARNINGS: Final = (
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Wshadow",
    "-Wstrict-prototypes",
)
FLAGS: Final = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-pthread")


class NotBuiltError(Exception):
    """Why there is no library; one line."""


def compiler() -> str:
    """The C compiler: that of the environment variable ``CC``, or the first of cc, gcc and clang.

    Raises
    ------
    NotBuiltError
        If there is none, or this is not Linux.
    """
    if not sys.platform.startswith("linux"):
        raise NotBuiltError(f"the preload library is for Linux; this is {sys.platform}")
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name
    raise NotBuiltError("no C compiler was found; on Debian or Ubuntu run: apt-get install gcc libc6-dev")


def build(folder: Path = HERE, *, more: Sequence[str] = ()) -> Path:
    """Compile both libraries into a folder, and say where the first is; ``more`` are further flags.

    Raises
    ------
    NotBuiltError
        If that fails.
    """
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    exports = f"-Wl,--version-script={HERE / 'exports.map'}"
    made = folder / LIBRARY.name
    _link(made, *FLAGS, *WARNINGS, *more, exports, "-Wl,-z,relro,-z,now", *sources, "-ldl")
    with TemporaryDirectory() as scratch:
        # The name is all that is needed of libibverbs, which the building machine need not have.
        stand_in = Path(scratch, "libibverbs.so.1")
        _link(stand_in, "-x", "c", os.devnull)
        _link(
            folder / VERBS_LIBRARY.name,
            "-Wl,--no-as-needed",
            "-Wl,-rpath,$ORIGIN",
            f"-L{folder}",
            f"-l:{made.name}",
            str(stand_in),
        )
    return made


def _link(into: Path, *arguments: str) -> None:
    """Make a shared library, and put it in place at once: a program may be loading it."""
    making = into.with_name(f".{into.name}.{os.getpid()}")
    command = [*compiler().split(), "-shared", f"-Wl,-soname,{into.name}", "-o", str(making), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        making.unlink(missing_ok=True)
        raise NotBuiltError(f"{command[0]} failed: {first.strip()}")
    making.replace(into)
