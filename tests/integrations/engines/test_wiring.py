"""Sessions, versions, the log of ``ark run``: what adapters read, also where it is garbage."""

import logging
import os
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.engines.watching import RunLog, Watched

from ark.errors import ConfigError
from ark.integrations import versions
from ark.integrations.plugins import wanted
from ark.integrations.sessions import PeerNames, host_of, peers_from
from ark.integrations.steering import Steering
from ark.integrations.versions import complaint, fits, stay_away
from ark.integrations.wiring import ConnectionLog, Opened, lanes_to_make, opened_by


@pytest.mark.parametrize(
    ("session", "host"),
    [
        ("10.0.0.8:15403", "10.0.0.8"),
        ("10.0.0.8", "10.0.0.8"),
        ("tcp://10.0.0.8:5600", "10.0.0.8"),
        ("http://10.0.0.8:8998", "10.0.0.8"),
        ("[fd00::8]:5600", "fd00::8"),
        ("tcp://[fd00::8]:5600", "fd00::8"),
        ("fd00::8", "fd00::8"),
        ("FD00:0::8", "fd00::8"),
        ("::ffff:10.0.0.8", "10.0.0.8"),
        ("[::FFFF:10.0.0.8]:5600", "10.0.0.8"),
        ("decode-3.local:5600", "decode-3.local"),
        ("10.0.0.8:15403:npu_3", "10.0.0.8"),
        ("", None),
        (":5600", None),
        ("a\nb:1", None),
        ("x" * 300, None),
    ],
)
def test_the_host_of_a_session(session: str, host: str | None) -> None:
    assert host_of(session) == host


@pytest.mark.slow
@given(st.text())
def test_any_text_as_a_session(text: str) -> None:
    host = host_of(text)
    assert host is None or 1 <= len(host) <= 255


def test_peers_by_their_names_in_the_fabric() -> None:
    peers = peers_from({"ARK_PEERS": " 10.1.0.8=h8, FD00:0::9=h9 ,"})
    assert [
        peers.target(one) for one in ("10.1.0.8:1", "::ffff:10.1.0.8", "[fd00::9]:1", "10.1.0.7:1", "")
    ] == [
        "h8",
        "h8",
        "h9",
        "10.1.0.7",
        None,
    ]
    assert PeerNames().target("10.1.0.8:1") == "10.1.0.8"


@pytest.mark.parametrize("text", ["10.1.0.8", "=h8", "10.1.0.8=", "10.1.0.8=" + "x" * 256])
def test_peers_that_say_nothing(text: str) -> None:
    with pytest.raises(ConfigError, match=r"ARK_PEERS: .* write address=name"):
        peers_from({"ARK_PEERS": text})


def test_a_fault_in_the_peers_is_said_once_and_stops_nothing(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ARK_PEERS", "nonsense")
    steering = Steering(4, client=watched.client)
    assert [steering.begin("10.9.0.2:1", 1 << 20, (0, 1)).lane for _ in range(3)] == [0, 1, 0]
    assert len(caplog.records) == 1


def test_a_host_that_the_fabric_does_not_have(watched: Watched) -> None:
    steering = Steering(4, client=watched.client, peers=PeerNames())
    assert not steering.begin("10.77.0.1:1", 1 << 20, (0, 1, 2, 3)).steered


@pytest.mark.parametrize(
    ("engine", "version", "known"),
    [
        ("vllm", "0.33.0", True),
        ("vllm", "0.33.0+cu130", True),
        ("vllm", "0.33", True),
        ("vllm", "0.330.1", False),
        ("vllm", "0.34.0", False),
        ("vllm", "1.0.33.0", False),
        ("lmcache", "0.5.6.post1", True),
        ("lmcache", "0.5.60", False),
        ("nixl", None, False),
    ],
)
def test_versions(engine: str, version: str | None, known: bool) -> None:
    assert (complaint(engine, version) is None) is known


def test_what_is_said_about_a_version_that_is_not_known(caplog: pytest.LogCaptureFixture) -> None:
    assert stay_away([None, complaint("vllm", "0.34.0"), complaint("nixl", None)])
    assert [record.getMessage() for record in caplog.records] == [
        "ark: vllm 0.34.0 is not known to this ARK (known: 0.33); its transfers go on without ARK"
    ]
    assert caplog.records[0].levelno == logging.WARNING


def test_functions_that_have_changed() -> None:
    class Worker:
        def send(self, session: str) -> None: ...

    assert fits(Worker, "send", ("self", "session")) is None
    assert "takes self, session, not self, peer" in (fits(Worker, "send", ("self", "peer")) or "")
    assert "Worker.post is gone" in (fits(Worker, "post", ()) or "")


def test_an_engine_installed_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name != "nixl-cu13":
            raise metadata.PackageNotFoundError
        return "1.5.1"

    monkeypatch.setattr(metadata, "version", version)
    assert versions.installed("nixl") == "1.5.1"
    assert versions.installed("vllm") is None


@pytest.mark.parametrize(
    ("text", "wish"), [("sglang", True), (" LMCache, SGLang ", True), ("", False), ("vllm", False)]
)
def test_plug_ins_act_only_when_asked(text: str, wish: bool) -> None:
    assert wanted("sglang", {"ARK_STEER": text}) is wish


LINE = "pid=7 kind=tcp source=10.9.0.1 target=10.9.0.2 dport=15918 "


@pytest.mark.parametrize(
    ("line", "opened"),
    [
        (LINE + "path=3 port=51000", Opened("tcp", "10.9.0.2", 15918, 3)),
        (LINE + "not steered: no agent answers", Opened("tcp", "10.9.0.2", 15918, None)),
        (LINE + "not steered: path=3 is full", Opened("tcp", "10.9.0.2", 15918, None)),
        (LINE.replace("=7", "=8") + "path=3 port=51000", None),
        (LINE.replace("=15918", "="), None),
        (LINE.replace("=15918", "=x"), None),
        (LINE + "path=٣", Opened("tcp", "10.9.0.2", 15918, None)),
        ("", None),
    ],
)
def test_a_line_of_the_log(line: str, opened: Opened | None) -> None:
    assert opened_by(line, 7) == opened


@pytest.mark.slow
@given(st.text())
def test_any_line_of_the_log(line: str) -> None:
    opened_by(line, 7)
    opened_by(LINE + line, 7)


def test_connections_since_a_mark(run_log: RunLog) -> None:
    log = ConnectionLog("tcp")
    run_log.opened(0)
    mark = log.mark()
    assert log.path_since(mark, but_port=1) is None
    run_log.opened(9, dport=15403)
    run_log.opened(2)
    run_log.opened(1, kind="devx", dport=4791)
    assert log.path_since(mark, but_port=15403) == 2
    assert ConnectionLog("udp").path_since(mark, but_port=0) == 1
    run_log.opened(None)
    assert log.paths_since(mark, 2) == (2, None)
    assert log.paths_since(mark, 3) == ()
    run_log.opened(4, target="10.9.0.3")
    run_log.opened(5, target="10.9.0.3")
    assert log.paths_since(mark, 2) == ()


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    log = ConnectionLog("tcp", {"ARK_RUN_LOG": str(tmp_path / "none")})
    assert (log.mark(), log.since(0)) == (0, [])
    assert ConnectionLog("tcp", {}).since(0) == []
    (tmp_path / "bytes").write_bytes(os.urandom(4096))
    assert ConnectionLog("tcp", {"ARK_RUN_LOG": str(tmp_path / "bytes")}).since(0) == []


@pytest.mark.parametrize(("wish", "lanes"), [("", 4), ("2", 2), ("0", 1), ("99", 16), ("many", 4)])
def test_how_many_connections_to_make(watched: Watched, run_log: RunLog, wish: str, lanes: int) -> None:
    environment = {"ARK_RUN_LOG": str(run_log.file), "ARK_LANES": wish}
    assert lanes_to_make(dport=0, proto="tcp", client=watched.client, environment=environment) == lanes
    assert lanes_to_make(dport=0, proto="tcp", client=watched.client, environment={}) == 1


def test_whatever_the_client_says_a_transfer_begins(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(watched.client, "transfer", refuse)
    steering = Steering(2, client=watched.client)
    assert [steering.begin("10.9.0.2:1", 1 << 20, (0, 1)).lane for _ in range(2)] == [0, 1]
    assert "can't start new thread" in caplog.text
