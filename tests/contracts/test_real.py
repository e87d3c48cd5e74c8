"""The real engines on loopback, steered by a real agent: each transfer goes over the one connection chosen.

TCP, host memory, no GPU. Mooncake runs under ``ark run``: the ports are the agent's, for paths that exist in
the file of a fabric only.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import PATIENCE_S, Cohort, cohort
from tests.contracts.processes import ROOT, Sender, run, sender, unpacked
from tests.contracts.wheels import Wheel

from ark.integrations.preload import LIBRARY


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    folder = tmp_path_factory.mktemp("agents")
    write_cluster(folder, hosts_per_leaf=1, more='addresses = "127.0.0.1"\n')
    with cohort(folder, 2, more='[policy]\nhold = "0"\nmin_bytes = "100 kB"\n') as made:
        yield made


def environment(agents: Cohort, packages: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{packages}:{ROOT}",
        "ARK_SOCKET": str(agents.folder / "h0.sock"),
        "SENDER": "127.0.0.1",
        "RECEIVER": "127.0.0.2",
        "UCX_TLS": "tcp",
        "UCX_NET_DEVICES": "lo",
    }


def check(running: Sender, agents: Cohort) -> None:
    """Every transfer was steered, and one connection carried it: the one on the path that was chosen.

    With the agent gone, transfers go on without a preference; with a new one they are steered again.
    """
    transfers = [running.transfer() for _ in range(12)]
    assert all(one.chosen is not None for one in transfers)
    assert [one.taken for one in transfers] == [one.chosen for one in transfers]
    assert len(set(transfers)) > 1
    agents.stop("h0")
    alone = [running.transfer() for _ in range(4)]
    assert {one.chosen for one in alone} == {None}
    assert sorted(str(one.taken) for one in alone) == ["0", "1", "2", "3"]
    agents.boot("h0")
    agents.until_heard()
    deadline = time.monotonic() + PATIENCE_S
    while (again := running.transfer()).chosen is None:
        assert time.monotonic() < deadline
    assert again.taken == again.chosen


def test_mooncake(mooncake: Wheel, agents: Cohort, tmp_path: Path) -> None:
    if not LIBRARY.exists():
        pytest.skip("the preload library is not built: python -m ark.integrations.preload")
    settings = environment(agents, unpacked(mooncake, tmp_path / "packages"))
    with sender("mooncake_program", tmp_path, settings, sending=run(tmp_path)) as running:
        check(running, agents)


def test_nixl(nixl: Wheel, agents: Cohort, tmp_path: Path) -> None:
    settings = environment(agents, unpacked(nixl, tmp_path / "packages"))
    with sender("nixl_program", tmp_path, settings) as running:
        check(running, agents)
