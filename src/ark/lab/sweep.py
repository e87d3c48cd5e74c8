"""``python -m ark.lab.sweep PREFIX``: wait until standard input ends, then remove what carries the prefix.

The lab starts it first and holds the other end of its input. However the lab ends, also by SIGKILL, the
kernel closes that end, and nothing is left behind. It has a session of its own, so that Ctrl-C spares it.
"""

import subprocess
import sys

from ark.lab.namespaces import remove_with


def started(prefix: str) -> "subprocess.Popen[bytes]":
    """A sweeper that removes the namespaces with ``prefix`` once its ``stdin`` is closed."""
    return subprocess.Popen(  # noqa: S603 - our own module; the prefix is no shell text
        [sys.executable, "-m", "ark.lab.sweep", prefix],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


if __name__ == "__main__":
    sys.stdin.buffer.read()
    remove_with(sys.argv[1])
