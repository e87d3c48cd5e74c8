"""The real engines on loopback, steered by a real agent: each transfer goes over the one connection chosen.

TCP, host memory, no GPU. Mooncake runs under ``ark run``: the ports are the agent's, for paths that exist in
the file of a fabric only.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import PATIENCE_S, Cohort, cohort
from tests.contracts.wheels import PYTHON, Wheel

from ark.integrations.preload import LIBRARY

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    folder = tmp_path_factory.mktemp("agents")
    write_cluster(folder, hosts_per_leaf=1, more='addresses = "127.0.0.1"\n')
    with cohort(folder, 2, more='[policy]\nhold = "0"\nmin_bytes = "100 kB"\n') as made:
        yield made


def unpacked(wheel: Wheel, folder: Path) -> Path:
    """The wheel, as pip would install it."""
    if PYTHON not in wheel.path.name:
        pytest.skip(f"{wheel.path.name} is for another Python")
    if shutil.which("ss") is None:
        pytest.skip("ss is missing: apt install iproute2")
    with zipfile.ZipFile(wheel.path) as packed:
        packed.extractall(folder)
    return folder


def steered(
    program: str, packages: Path, folder: Path, agents: Cohort, *, before: tuple[str, ...] = ()
) -> list[list[int | None]]:
    """Run a receiver, and a sender with ``before`` in front of its command; what the sender has seen."""
    (folder / "run.log").touch()
    environment = os.environ | {
        "PYTHONPATH": f"{packages}:{ROOT}",
        "ARK_SOCKET": str(agents.folder / "h0.sock"),
        "ARK_PEERS": "127.0.0.2=h1",
        "ARK_RUN_LOG": str(folder / "run.log"),
        "UCX_TLS": "tcp",
        "UCX_NET_DEVICES": "lo",
    }
    command = [sys.executable, "-m", f"tests.contracts.programs.{program}"]
    with subprocess.Popen(
        [*command, "receive", str(folder)], stdin=subprocess.PIPE, env=environment, cwd=ROOT
    ) as receiver:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not (folder / "ready").exists():
                assert receiver.poll() is None, "the receiver has ended"
                assert time.monotonic() < deadline
                time.sleep(0.05)
            sent = subprocess.run(
                [*before, *command, "send", str(folder)],
                stdout=subprocess.PIPE,
                env=environment,
                cwd=ROOT,
                timeout=120,
                check=True,
            )
            assert receiver.stdin is not None
            receiver.stdin.write(b"\n")
            receiver.stdin.flush()
            receiver.wait(PATIENCE_S)
        finally:
            receiver.kill()
    assert (folder / "received").read_bytes() == b"ARKARKARKARKARKA"
    seen: list[list[int | None]] = json.loads(sent.stdout.splitlines()[-1])
    return seen


def check(transfers: list[list[int | None]]) -> None:
    """Every transfer was steered, and one connection carried it: the one on the path that was chosen."""
    assert len(transfers) == 12
    assert None not in {path for transfer in transfers for path in transfer}
    assert all(chosen == taken for chosen, taken in transfers)
    assert len({chosen for chosen, _ in transfers}) > 1


def test_mooncake(mooncake: Wheel, agents: Cohort, tmp_path: Path) -> None:
    if not LIBRARY.exists():
        pytest.skip("the preload library is not built: python -m ark.integrations.preload")
    packages = unpacked(mooncake, tmp_path / "packages")
    ark, socket = str(Path(sys.executable).with_name("ark")), str(agents.folder / "h0.sock")
    before = (ark, "run", "--log", str(tmp_path / "run.log"), "--socket", socket, "--")
    check(steered("mooncake_program", packages, tmp_path, agents, before=before))


def test_nixl(nixl: Wheel, agents: Cohort, tmp_path: Path) -> None:
    check(steered("nixl_program", unpacked(nixl, tmp_path / "packages"), tmp_path, agents))
