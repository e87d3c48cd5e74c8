"""``python -m ark.lab.sweep PREFIX [DIRECTORY]``: wait until standard input ends, then remove what is left.

That is: processes in namespaces whose names carry the prefix, those namespaces, and the directory. The lab
starts it first and holds the other end of its input. However the lab ends, also by SIGKILL, the kernel closes
that end, and nothing is left behind. It has a session of its own, so that Ctrl-C spares it.
"""

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from ark.lab.namespaces import end_with, remove_with


def started(prefix: str, directory: Path | None = None) -> "subprocess.Popen[bytes]":
    """A sweeper that removes what carries ``prefix``, and ``directory``, once its ``stdin`` is closed."""
    more = [] if directory is None else [str(directory)]
    return subprocess.Popen(  # noqa: S603 - our own module; the prefix is no shell text
        [sys.executable, "-m", "ark.lab.sweep", prefix, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def sweep(prefix: str, directory: Path | None = None) -> None:
    """Kill processes, and remove namespaces and the directory."""
    end_with(prefix)
    remove_with(prefix)
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            directory.parent.rmdir()  # unless another lab has its directory there


if __name__ == "__main__":
    sys.stdin.buffer.read()
    sweep(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
