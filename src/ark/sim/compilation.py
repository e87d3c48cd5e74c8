"""Compiles the kernels of the engines by Numba, once per machine and version of their source.

``@kernel`` compiles a function at its first call and keeps the machine code on disk. Numba's own cache does
not notice an edited callee or constant in another file and then runs old code, so the folder of the cache is
named by a hash of all sources in the kernel's package and of the versions of Numba, NumPy and Python. So a
kernel calls kernels of its own package only. With ``NUMBA_DISABLE_JIT=1`` the same source is run by the
interpreter: that is the reference which the compiled code must equal, event for event.

The cache is ``$NUMBA_CACHE_DIR``, else ``$XDG_CACHE_HOME/ark``, else ``~/.cache/ark``; where none can be
written the kernels are compiled anew by each process. The first compilation is announced on stderr.
"""

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import numba
import numpy as np
from numba.core import config, event

P = ParamSpec("P")
R = TypeVar("R")

_settings: Final = vars(config)
"""Numba's settings; its module ``config`` fills itself at run time, so no type checker knows the names."""

VERSIONS_KEPT: Final = 8
"""Older compiled versions of one package are deleted: a developer makes one with each edit."""

ANNOUNCEMENT: Final = (
    "ark: compiling the simulation kernel for this machine (under a minute; kept for later runs)"
)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of arrays and numbers: compiled, cached, without the global lock while it runs."""
    return _compiled(function, inlined=False)


def kernel_part(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that each event calls: as ``kernel``, and compiled into its callers.

    Numba's calls hand over results and errors by memory, which costs more than what a small function does.
    """
    return _compiled(function, inlined=True)


def _compiled(function: Callable[P, R], *, inlined: bool) -> Callable[P, R]:
    folder = _cache_folder(Path(function.__code__.co_filename).parent)
    _announcer.watch(function.__module__)
    before = _settings["CACHE_DIR"]
    # Numba settles the place of the cache while it decorates, so the setting is ours for that long only.
    _settings["CACHE_DIR"] = str(folder or "")
    try:
        compiled: Callable[P, R] = numba.njit(cache=folder is not None, nogil=True, forceinline=inlined)(
            function
        )
    finally:
        _settings["CACHE_DIR"] = before
    return compiled


def source_key(package: Path) -> str:
    """Name of the compiled version: a hash of every source file in ``package`` and of what compiles it."""
    digest = hashlib.blake2b(digest_size=10)
    for version in (numba.__version__, np.__version__, platform.python_version(), platform.machine()):
        digest.update(version.encode() + b"\0")
    for source in sorted(package.glob("*.py")):
        text = source.read_bytes()
        digest.update(f"{source.name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


@functools.cache
def _cache_folder(package: Path) -> Path | None:
    """The writable folder for the compiled version of ``package``, or None where there can be none."""
    versions = _user_cache() / package.name
    folder = versions / source_key(package)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    _delete_old(versions, keep=folder)
    return folder


def _user_cache() -> Path:
    if _settings["CACHE_DIR"]:
        return Path(_settings["CACHE_DIR"]) / "ark"
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not Path(base).is_absolute():  # the XDG specification: a relative path is invalid and ignored
        base = os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.expanduser raises where there is no home
    return Path(base) / "ark" / "kernels"


def _delete_old(versions: Path, *, keep: Path) -> None:
    """Delete all but the newest versions; another process that deletes the same ones is no error."""
    with contextlib.suppress(OSError):
        keep.touch()
        newest_first = sorted(versions.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in newest_first[VERSIONS_KEPT:]:
            shutil.rmtree(folder, ignore_errors=True)


class _Announcer(event.Listener):
    """Says once per process that one of our kernels is being compiled, because that takes seconds."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._said = False

    def watch(self, module: str) -> None:
        self._modules.add(module)

    def on_start(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        if not self._said and function.__module__ in self._modules:
            self._said = True
            sys.stderr.write(f"{ANNOUNCEMENT}\n")
            sys.stderr.flush()

    def on_end(self, event: event.Event) -> None:
        """Nothing to say."""


_announcer: Final = _Announcer()
event.register("numba:compile", _announcer)  # type: ignore[no-untyped-call]
