"""``ark bench``: which rows it prints, and the arithmetic behind them by a clock that is made up."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import cohort

from ark.cli.main import run
from ark.client import Client
from ark.errors import AgentUnavailable
from ark.report import bench

NAMES = [
    "decision_k4",
    "decision_k1000",
    "path_map_pair",
    "path_map_all_peers",
    "flow_engine",
    "packet_engine",
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = bench.measure

    def less() -> Iterator[bench.Figure]:
        return measure(clock=count().__next__, rounds=1, flow_requests=20, packet_requests=2)

    monkeypatch.setattr(bench, "measure", less)


def test_best_of_rounds_by_the_clock_given() -> None:
    ticks = iter([0.0, 5.0, 10.0, 12.0, 20.0, 29.0])
    made: list[int] = []
    assert bench.best_s(lambda: lambda: made.append(1), rounds=3, clock=ticks.__next__) == 2.0
    assert len(made) == 3


def test_figures_by_a_clock_of_one_second_a_round() -> None:
    def clock() -> float:
        return next(ticks)

    ticks = count()
    few = bench.decision(4, rounds=2, clock=clock)
    assert (few.value, few.unit, few.count) == (1e6 / bench.DECISIONS, "us", bench.DECISIONS)
    all_peers = bench.maps(15, rounds=2, clock=clock)
    assert (all_peers.value, all_peers.unit, all_peers.count) == (1000.0, "ms", 15)
    assert all_peers.name == "path_map_all_peers"


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_without_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    socket = str(tmp_path / "none.sock")
    assert run(["bench", "--json", "--socket", socket]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["results"]
    assert [row["name"] for row in rows] == NAMES
    assert found["agent_unavailable"] == f"no agent answers at {socket}"
    for row in rows[4:]:
        assert row["value"] == row["count"] > 0  # the round took one second
    assert rows[4]["count"] == 20
    assert run(["bench", "--socket", socket]) == 0
    out = capsys.readouterr().out
    assert out.startswith("What ARK costs on this machine")
    assert "agent: not measured, no agent answers at" in out


@pytest.mark.slow
def test_with_an_agent(tmp_path: Path) -> None:
    write_cluster(tmp_path)
    with cohort(tmp_path, 3, more='[policy]\nhold = "0"\n'):
        client = Client(tmp_path / "h0.sock")
        median, p99 = bench.agent_pairs(client, pairs=20, clock=count().__next__)
        client.close()
    assert (median.name, median.value, median.count) == ("agent_median", 1e6, 20)
    assert (p99.name, p99.value) == ("agent_p99", 1e6)
    assert "to h2 (" in median.what  # only one path leads to h1, on the same leaf
    with pytest.raises(AgentUnavailable):
        bench.agent_pairs(Client(tmp_path / "none.sock"))


def test_quantiles() -> None:
    assert bench.quantile(range(100), 0.5) == 50
    assert bench.quantile(range(100), 0.99) == 99


def test_an_unknown_option_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--rounds", "3"]) == 2
    assert "--rounds" in capsys.readouterr().err
