"""A program that knows nothing of ARK, under ``ark run``: ``ib_write_bw`` of perftest, as it is packaged."""

import shutil
import subprocess
import sys
import time
from typing import Final

from tests.rdma.guest.agents import Agents
from tests.rdma.guest.capture import Capture
from tests.rdma.guest.ends import ACK_TIMEOUT, SETTLE_S
from tests.rdma.guest.network import HOSTS, SPINES, Host

from ark.integrations.preload import LIBRARY

PROGRAM: Final = "ib_write_bw"
TIMEOUT_S: Final = 60
PAUSE_S: Final = 1.0
"""Time for the server to listen."""

PORT: Final = 18_515


def unmodified(agents: Agents, gid_indexes: tuple[int, int]) -> dict[str, object]:
    """One queue pair a spine, and which spines their data crossed; or why that can't be had."""
    if not LIBRARY.exists():
        return {
            "missing": "the preload library, which needs a C compiler: python -m ark.integrations.preload"
        }
    if shutil.which(PROGRAM) is None:
        return {"missing": f"{PROGRAM}; run: apt-get install perftest"}
    log = agents.folder / "run.log"
    steered = [
        *(sys.executable, "-m", "ark.cli.main", "run"),
        *("--socket", str(agents.folder / f"{HOSTS[0].name}.sock"), "--wait", "10s", "--log", str(log), "--"),
    ]
    with Capture() as capture:
        server = _started([], HOSTS[1], gid_indexes[1], [])
        time.sleep(PAUSE_S)
        client = _started(steered, HOSTS[0], gid_indexes[0], ["127.0.0.1"])
        said = [_ended(one) for one in (client, server)]
        time.sleep(SETTLE_S)
    return {
        "codes": [code for code, _ in said],
        "said": [text[-1500:] for _, text in said],
        "log": log.read_text().splitlines(),
        "spines": capture.spines_by_port(HOSTS[0].address),
    }


def _started(before: list[str], host: Host, gid_index: int, more: list[str]) -> subprocess.Popen[str]:
    command = [
        *(PROGRAM, "--ib-dev", host.device, "--gid-index", str(gid_index), "--port", str(PORT)),
        *("--qp", str(SPINES), "--size", "16384", "--iters", "16", "--tx-depth", "8", "--CPU-freq"),
        *("--qp-timeout", str(ACK_TIMEOUT)),
    ]
    return subprocess.Popen(
        [*before, *command, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _ended(one: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said, _ = one.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        one.kill()
        said, _ = one.communicate()
    return one.returncode, said
