"""Learned paths that change while agents run and transfers are under way."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import Cohort, cohort

from ark.agent import load_config, paths_file
from ark.agent.logs import LOGGER
from ark.agent.metrics import AgentCollector
from ark.agent.ports import Learned
from ark.cli.main import run
from ark.client import Client
from ark.discover.learned import IN_DOUBT, LearnedMap, LearnedPath, Validity
from ark.discover.paths_file import write_paths

TB: Final = 10**12
POLICY: Final = '[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'


def learned(*lost: int, state: Validity = "valid", epoch: int = 1, target: str = "h2") -> LearnedMap:
    """A map whose ports tell path and epoch: port 50123 leads to path 2 in epoch 1."""
    paths = tuple(
        LearnedPath(
            path,
            ("leaf0", f"spine{path}", "leaf1"),
            () if path in lost else tuple(50_000 + 100 * epoch + 10 * path + k for k in range(4)),
        )
        for path in range(4)
    )
    address = {"h2": "10.0.0.3", "h3": "10.0.0.4"}[target]
    return LearnedMap(
        "h0", target, "10.0.0.1", address, 17, 4791, "port", "as probed", paths, "probes", (2,),
        epoch=epoch, state=state,
    )  # fmt: skip


class Live:
    """Two agents, the first of which follows a file, and what they log."""

    def __init__(self, made: Cohort, log: pytest.LogCaptureFixture) -> None:
        self.cohort = made
        self.log = log
        self.agent = made["h0"]
        self.file = made.folder / "paths.json"
        self.client: Client = made.client("h0")

    def write(self, *maps: LearnedMap) -> None:
        """Replace the file, and wait until the agent goes by it."""
        write_paths(self.file, maps, "fabric")
        wanted = [(one.epoch, one.state == "valid", one.path_map().kept) for one in maps]
        self.cohort.until(lambda: [(o.epoch, o.is_valid, o.map.kept) for o in self.known()] == wanted)

    def known(self) -> list[Learned]:
        return list(self.agent.book.learned.values())

    def metrics(self) -> dict[str, list[float]]:
        found = self.cohort.call(lambda: list(AgentCollector(self.agent).collect()))
        return {one.name: [s.value for s in one.samples] for one in found if "learned" in one.name}

    def said(self, event: str) -> list[dict[str, object]]:
        return [record.__dict__["fields"] for record in self.log.records if record.message == event]


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Live]:
    monkeypatch.setattr(paths_file, "LOOK_S", 0.005)
    monkeypatch.setattr(LOGGER, "propagate", True)
    caplog.set_level(logging.INFO, "ark.agent")
    write_cluster(tmp_path)
    write_paths(tmp_path / "paths.json", [learned()], "fabric")
    with cohort(tmp_path, 2, more=POLICY) as made:
        made.stop("h0")
        made.more = f'paths = "paths.json"\n{POLICY}'
        made.boot("h0")
        made.until_heard()
        yield Live(made, caplog)


def test_a_map_in_doubt_steers_nothing_until_it_is_valid_again(live: Live) -> None:
    client = live.client
    before = client.transfer("h2", TB, dport=4791)
    assert before.source_port is not None
    assert before.source_port // 100 == 501
    live.write(learned(state="suspect"))
    with client.transfer("h2", TB, dport=4791) as doubtful, client.lanes("h2", 4791) as lanes:
        assert (doubtful.path, doubtful.kind, doubtful.reason) == (None, "unmanaged", IN_DOUBT)
        assert (len(lanes), lanes.reason) == (0, IN_DOUBT)
        assert client.status()["learned"] == {"valid": 0, "in_doubt": 1, "epoch": 1}
    assert live.metrics() == {"ark_learned_maps": [0, 1], "ark_learned_epoch": [1]}
    live.write(learned(1, epoch=2))
    held = [client.transfer("h2", TB, dport=4791) for _ in range(8)]
    assert {transfer.path for transfer in held} == {0, 2, 3}
    assert {(transfer.source_port or 0) // 100 for transfer in held} == {502}
    assert client.status("maps")["results"] == [
        {
            "source": "h0", "target": "h2", "dport": 4791, "proto": 17,
            "valid": True, "epoch": 2, "influence": "port", "missing": [1],
        }
    ]  # fmt: skip
    live.write(learned(epoch=3))
    again = client.transfer("h2", TB, dport=4791)
    assert again.path == (1 if before.path != 1 else again.path)
    assert live.agent.service.unreachable == 0
    changes = live.said("learned paths changed")
    assert changes == [
        {"valid": 0, "in_doubt": 1, "epoch": 1},
        {"valid": 1, "in_doubt": 0, "epoch": 2},
        {"valid": 1, "in_doubt": 0, "epoch": 3},
    ]


def test_status_shows_what_is_lost(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.write(learned(1, epoch=2))
    assert run(["status", "--socket", str(live.cohort.folder / "h0.sock")]) == 0
    shown = capsys.readouterr().out
    assert "learned paths   1 maps valid, 0 in doubt, epoch 2" in shown
    assert "h0 > h2" in shown
    live.write(learned(epoch=3))
    run(["status", "--socket", str(live.cohort.folder / "h0.sock")])
    assert "h0 > h2" not in capsys.readouterr().out


def test_what_runs_stays_reserved_and_leaves_a_lost_path_at_its_segment_end(live: Live) -> None:
    with live.client.transfer("h2", TB, dport=4791) as transfer:
        path = transfer.path
        assert path is not None
        live.cohort.until(lambda: len(live.cohort.rows("h1")) == 1)
        live.write(learned(state="stale"))
        assert transfer.move(TB // 2) is False
        assert transfer.path == path
        live.write(learned(path, epoch=2))
        (row,) = live.cohort.call(lambda: list(live.cohort["h1"].controller.view.table))
        assert row.paths == (path,)
        assert transfer.move(TB // 4) is True
        assert transfer.path not in {None, path}
        assert transfer.source_port is not None
        assert transfer.source_port // 100 == 502
        live.cohort.until(live.cohort.agree)
    live.cohort.until(lambda: not live.cohort.rows("h1"))
    assert live.agent.service.unreachable == 0


def test_a_broken_file_is_said_once_and_the_last_good_one_stays(live: Live) -> None:
    live.file.write_text("{")
    live.cohort.until(lambda: live.said("learned paths not read"))
    (fault,) = live.said("learned paths not read")
    assert "is no JSON" in str(fault["faults"])
    with live.client.transfer("h2", TB, dport=4791) as transfer:
        assert transfer.source_port is not None
    live.file.unlink()
    live.cohort.until(lambda: len(live.said("learned paths not read")) == 2)
    assert "No such file" in str(live.said("learned paths not read")[1]["faults"])
    live.write(learned(epoch=2))
    assert len(live.said("learned paths not read")) == 2


def test_a_reload_reads_the_file_too_and_may_name_another(live: Live) -> None:
    other = live.file.with_name("other.json")
    write_paths(other, [learned(epoch=4), learned(target="h3", epoch=5)], "fabric")
    text = (live.cohort.folder / "h0.toml").read_text()
    path = live.cohort.folder / "h0.toml"
    path.write_text(text.replace("paths.json", "other.json"))
    config = load_config(path)
    live.cohort.call(lambda: live.agent.reload(config))
    assert [one.epoch for one in live.known()] == [4, 5]
    assert live.said("reloaded") == [{"changed": ["learned", "paths"]}]
    assert live.agent.config.paths == other
    live.file = other
    live.write(learned(epoch=6))
    with live.client.transfer("h3", TB, dport=4791) as transfer:  # not learned any more: by the hash
        assert transfer.path is not None
    path.write_text(text)
    (live.cohort.folder / "fabric.toml").write_text(
        (live.cohort.folder / "fabric.toml").read_text().replace("spines = 4", "spines = 5")
    )
    live.cohort.call(lambda: live.agent.reload(load_config(path)))
    assert [one.epoch for one in live.known()] == [6]
    assert live.said("needs a restart to change")[-1]["keys"] == ["fabric", "learned", "paths"]
