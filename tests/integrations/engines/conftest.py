"""Real agents over their real sockets; the tests write the log of ``ark run``, as its library does."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import Cohort, cohort
from tests.integrations.engines.watching import RunLog, Watched

from ark.integrations import steering, wiring


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    """Four agents, two on each of two leaves with four spines, without a hold."""
    folder = tmp_path_factory.mktemp("four")
    write_cluster(folder)
    with cohort(folder, 4, more='[policy]\nhold = "0"\nmin_bytes = "100 kB"\n') as made:
        yield made


@pytest.fixture
def run_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLog:
    """An empty log of ``ark run``."""
    file = tmp_path / "run.log"
    file.touch()
    monkeypatch.setenv(wiring.LOG, str(file))
    monkeypatch.delenv("MC_TCP_LANES_PER_PEER", raising=False)
    return RunLog(file, os.getpid())


@pytest.fixture
def watched(four: Cohort, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """The agent of h0, as the process's own and looked at from outside; no test leaves a transfer behind."""
    client = four.client("h0")
    monkeypatch.setattr(steering, "default_client", lambda: client)
    monkeypatch.setattr(wiring, "default_client", lambda: client)
    monkeypatch.setenv("ARK_PEERS", "10.9.0.2=h2,10.9.0.3=h3")
    yield Watched(four, client)
    four.until(lambda: not four["h0"].service.transfers)
