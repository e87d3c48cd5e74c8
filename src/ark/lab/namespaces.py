"""Network namespaces by name: entering one, listing and removing those that carry a prefix."""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ark.errors import LabError

DIRECTORY: Final = Path("/run/netns")
"""Where iproute2 and pyroute2 keep the names of network namespaces."""

_CLONE_NEWNET: Final = 0x4000_0000


def names_with(prefix: str) -> list[str]:
    """The namespaces whose names start with ``prefix``, in order."""
    if not DIRECTORY.is_dir():
        return []
    return sorted(entry.name for entry in DIRECTORY.iterdir() if entry.name.startswith(prefix))


def remove_with(prefix: str) -> list[str]:
    """Remove all namespaces whose names start with ``prefix``, and say which they were."""
    found = names_with(prefix)
    if found:
        from pyroute2 import netns  # noqa: PLC0415 - takes most of a second to import

        for name in found:
            netns.remove(name)
    return found


def processes_with(prefix: str) -> list[int]:
    """The processes that live in a namespace whose name starts with ``prefix``; never the caller."""
    inodes = set()
    for name in names_with(prefix):
        with suppress(FileNotFoundError):
            inodes.add((DIRECTORY / name).stat().st_ino)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):  # it has ended meanwhile
                if (entry / "ns/net").stat().st_ino in inodes:
                    found.append(int(entry.name))
    return found


def end_with(prefix: str) -> list[int]:
    """Kill the processes that live in namespaces with a prefix, and say which they were."""
    found = processes_with(prefix)
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return found


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Put the calling thread into a namespace; sockets that it opens stay there afterwards.

    Raises
    ------
    LabError
        If there is no such namespace, or the right to enter it is missing.
    """
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            there = os.open(DIRECTORY / namespace, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LabError(f'no network namespace "{namespace}": {error.strerror}') from None
        try:
            _enter(there, namespace)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(back, "that the thread came from")
    finally:
        os.close(back)


def _enter(descriptor: int, what: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        why = os.strerror(ctypes.get_errno())
        raise LabError(f"cannot enter the network namespace {what}: {why}; the lab needs root")
