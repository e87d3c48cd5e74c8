"""Several Mooncake engines as one: which of them takes a transfer, and what the agent knows meanwhile."""

import os
import subprocess
import sys
from typing import Any

import pytest
from tests.integrations.engines.standins import mooncake_engine
from tests.integrations.engines.watching import Reserved, RunLog, Watched, in_thread, join

from ark.client import Client, Lane
from ark.client.held import Laned
from ark.client.session import Assignment, Session
from ark.integrations import mooncake, mooncake_lanes
from ark.integrations.mooncake import SteeredEngine, udp_sports
from ark.integrations.mooncake_lanes import why_one
from ark.integrations.sessions import PeerNames
from ark.integrations.steering import Steering

SESSION = "10.9.0.2:15403"
MB = 1_000_000


class Made:
    """A steered engine whose lanes 0, 1, 2, 3 take the paths 2, 3, 0, 1, and the stand-ins in it."""

    def __init__(self, run_log: RunLog, **network: Any) -> None:
        self.type = mooncake_engine.fresh()
        self.network = self.type.network
        self.network.buffers = {SESSION: 4096, "10.9.0.3:15403": 4096}
        self.network.connecting = lambda number, _: run_log.opened((number + 2) % 4)
        for name, value in network.items():
            setattr(self.network, name, value)
        self.engine = SteeredEngine(self.type)
        assert self.engine.initialize("10.9.0.1", "P2PHANDSHAKE", "tcp", "") == 0
        self.engine.register_memory(65_536, 10 * MB)

    def write(self, size_bytes: int = MB, session: str = SESSION) -> int:
        return self.engine.batch_transfer_sync_write(
            session, [65_536, 70_000], [1, 2], [size_bytes - 1000, 1000]
        )


@pytest.fixture
def made(watched: Watched, run_log: RunLog) -> Made:
    return Made(run_log)


def lane_of(path: int) -> int:
    return (path + 2) % 4


def test_a_blocking_write_is_reserved_while_it_lasts(made: Made, watched: Watched) -> None:
    made.network.gate.clear()
    thread = in_thread(made.write)
    made.network.arrived.acquire()
    (reserved,) = watched.transfers()
    assert (reserved.target, reserved.size_bytes) == ("h2", MB)
    assert made.network.writes[0].engine == lane_of(reserved.paths[0])
    assert made.network.writes[0].lengths == (MB - 1000, 1000)
    made.network.gate.set()
    join(thread)
    assert watched.settled() == []


def test_threads_spread_over_all_paths(made: Made, watched: Watched) -> None:
    made.network.gate.clear()
    threads = [in_thread(made.write) for _ in range(4)]
    for _ in threads:
        made.network.arrived.acquire()
    reserved = watched.transfers()
    assert sorted(one.paths for one in reserved) == [(0,), (1,), (2,), (3,)]
    assert sorted(write.engine for write in made.network.writes) == [0, 1, 2, 3]
    made.network.gate.set()
    for thread in threads:
        join(thread)


def test_peers_are_connected_once_one_engine_after_the_other(made: Made) -> None:
    for session in (SESSION, "10.9.0.3:15403", SESSION):
        assert made.write(session=session) == 0
    assert made.network.reads == [(k, session) for session in (SESSION, "10.9.0.3:15403") for k in range(4)]


def test_a_failed_write_is_released(made: Made, watched: Watched) -> None:
    made.network.result = -1
    assert made.write() == -1
    made.network.raises = RuntimeError("link down")
    with pytest.raises(RuntimeError, match="link down"):
        made.write()
    assert watched.settled() == []


def test_asynchronous_writes_are_reserved_until_their_end_is_seen(made: Made, watched: Watched) -> None:
    batch = made.engine.batch_transfer_async_write(SESSION, [65_536], [1], [2 * MB])
    engine = made.network.writes[0].engine
    assert watched.transfers() == [Reserved("h2", 2 * MB, ((engine + 2) % 4,))]
    assert made.engine.transfer_check_status(batch) == 0
    assert len(watched.settled()) == 1
    for one in made.engine._engines._engines:
        one.pending = dict.fromkeys(one.pending, 1)
    assert made.engine.transfer_check_status(batch) == 1
    assert watched.settled() == []
    batches = [made.engine.transfer_submit_write(SESSION, 65_536, 1, MB) for _ in range(3)]
    assert len(watched.transfers()) == 3
    made.network.result = -1
    assert made.engine.get_batch_transfer_status(batches) == -1
    assert watched.settled() == []


def test_small_writes_and_unknown_peers_are_not_steered(made: Made) -> None:
    made.network.buffers["10.9.9.9:1"] = 4096
    assert made.write(size_bytes=2000) == 0
    assert made.write(session="10.9.9.9:1") == 0
    assert made.engine.steering is not None
    assert (made.engine.steering.counts.steered, made.engine.steering.counts.unsteered) == (0, 2)


def test_a_peer_that_does_not_answer_gets_the_engine_s_own_error(made: Made) -> None:
    made.network.result = -1
    assert made.write(session="10.9.0.7:1") == -1
    assert made.network.writes[-1].engine == 0


def test_engines_that_fail_are_left_out(watched: Watched, run_log: RunLog) -> None:
    made = Made(run_log, fails_to_start=frozenset({2}))
    assert made.engine.lanes == 2
    assert made.write() == 0
    made = Made(run_log, fails_to_connect=frozenset({3}))
    assert made.write() == 0
    assert made.network.reads[-1] == (3, SESSION)
    assert {made.write() for _ in range(8)} == {0}
    assert 3 not in {write.engine for write in made.network.writes}


def test_memory_is_the_same_in_all_engines(made: Made) -> None:
    made.engine.batch_register_memory([1, 2], [10, 20])
    assert [{1, 2} <= set(one.memory) for one in made.engine._engines._engines] == [True] * 4
    assert made.engine.batch_unregister_memory([1, 2]) == 0
    assert made.engine.unregister_memory(65_536) == 0
    assert [{1, 2, 65_536} & set(one.memory) for one in made.engine._engines._engines] == [set()] * 4
    assert made.engine.unregister_memory(77) == -1


def test_other_methods_are_the_first_engine_s(made: Made) -> None:
    assert made.engine.get_rpc_port() == 15_000
    assert made.engine.get_engine() == 0
    assert made.engine.send_probe(SESSION) == 0


def test_a_restart_of_the_agent_in_mid_transfer(made: Made, watched: Watched) -> None:
    made.network.gate.clear()
    thread = in_thread(made.write)
    made.network.arrived.acquire()
    (before,) = watched.transfers()
    watched.four.stop("h0")
    watched.four.boot("h0")
    watched.four.until(lambda: watched.four["h0"].service.transfers)
    assert watched.transfers() == [before]
    made.network.gate.set()
    join(thread)
    watched.four.until(lambda: not watched.four["h0"].service.transfers)
    watched.four.until_heard()
    assert made.write() == 0
    assert made.engine.steering is not None
    assert made.engine.steering.counts.steered == 2


def test_without_an_agent_writes_take_the_lanes_in_turn(run_log: RunLog, tmp_path: Any) -> None:
    engine_type = mooncake_engine.fresh()
    engine_type.network.buffers = {SESSION: 4096}
    engine_type.network.connecting = lambda number, _: run_log.opened(number)
    client = Client(tmp_path / "nobody.sock")
    engine = SteeredEngine(engine_type, Steering(4, proto="tcp", dport=0, client=client, peers=PeerNames()))
    engine.initialize("10.9.0.1", "P2PHANDSHAKE", "tcp", "")
    assert [engine.transfer_sync_write(SESSION, 65_536, 1, MB) for _ in range(8)] == [0] * 8
    assert [write.engine for write in engine_type.network.writes] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert engine.steering is not None
    assert engine.steering.counts.unsteered_bytes == 8 * MB


def test_without_the_log_of_ark_run_there_is_one_engine(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARK_RUN_LOG", raising=False)
    engine_type = mooncake_engine.fresh()
    engine = SteeredEngine(engine_type)
    assert engine.initialize("10.9.0.1", "P2PHANDSHAKE", "tcp", "") == 0
    assert engine.transfer_sync_write(SESSION, 65_536, 1, MB) == 0
    assert engine.lanes == 1
    assert engine_type.network.reads == []
    assert engine.steering is not None
    assert engine.steering.counts.unsteered == 1


def test_a_batch_that_can_t_be_submitted_is_released(
    made: Made, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise RuntimeError("queue full")

    monkeypatch.setattr(made.type, "_submit", refuse)
    with pytest.raises(RuntimeError, match="queue full"):
        made.engine.transfer_submit_write(SESSION, 65_536, 1, MB)
    assert watched.settled() == []


def test_batches_whose_end_nobody_asks_for_are_bounded(
    made: Made, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mooncake, "BATCHES_MAX", 2)
    batches = [made.engine.transfer_submit_write(SESSION, 65_536, 1, MB) for _ in range(5)]
    assert len(watched.settled()) == 2
    made.engine.get_batch_transfer_status(batches[-2:])
    assert watched.settled() == []


def test_a_number_used_again_ends_the_batch_that_had_it(
    made: Made, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made.type, "_submit", lambda *_: 4711)
    for _ in range(3):
        assert made.engine.transfer_submit_write(SESSION, 65_536, 1, MB) == 4711
    assert len(watched.settled()) == 1
    made.engine._over(4711)


def test_a_failed_submission_is_forgotten_when_it_is_asked_for(made: Made, watched: Watched) -> None:
    batch = made.engine.transfer_submit_write(SESSION, 65_536, 1, MB)
    for one in made.engine._engines._engines:
        one.pending = dict.fromkeys(one.pending, -1)
    assert made.engine.transfer_check_status(batch) == -1
    assert watched.settled() == []


def test_an_engine_that_can_t_register_memory_is_used_no_more(
    made: Made, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = made.type.register_memory
    monkeypatch.setattr(
        made.type,
        "register_memory",
        lambda self, *arguments: -1 if self.number == 2 else register(self, *arguments),
    )
    assert made.engine.register_memory(1 << 30, 10) == 0
    assert made.engine.lanes == 2
    assert {made.write() for _ in range(6)} == {0}
    assert {write.engine for write in made.network.writes} <= {0, 1}


def test_peers_that_are_remembered_are_bounded(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mooncake_lanes, "SESSIONS_MAX", 1)
    for session in (SESSION, "10.9.0.3:15403", SESSION):
        made.write(session=session)
    assert len(made.network.reads) == 12


def test_why_there_is_one_engine_is_said(
    watched: Watched, run_log: RunLog, caplog: pytest.LogCaptureFixture
) -> None:
    engine = SteeredEngine(mooncake_engine.fresh())
    engine.initialize("10.9.0.1", "P2PHANDSHAKE", "rdma", "mlx5_0")
    assert engine.lanes == 1
    assert "counted, not steered: set MC_NUM_QP_PER_EP=1" in caplog.text


def test_an_engine_that_was_never_initialized(run_log: RunLog) -> None:
    engine = SteeredEngine(mooncake_engine.fresh())
    assert engine.transfer_sync_write(SESSION, 65_536, 1, MB) == 0


@pytest.mark.parametrize(
    ("arguments", "environment", "part"),
    [
        (("tcp", "", "10.0.0.1", "P2PHANDSHAKE"), {}, None),
        (
            ("tcp", "", "10.0.0.1", "P2PHANDSHAKE"),
            {"MC_TCP_LANES_PER_PEER": "4"},
            "unset MC_TCP_LANES_PER_PEER",
        ),
        (("tcp", "", "10.0.0.1", "etcd://m:2379"), {}, "P2PHANDSHAKE"),
        (("tcp", "", "10.0.0.1:12345", "P2PHANDSHAKE"), {}, "has a port"),
        (("rdma", "mlx5_0", "fd00::1", "P2PHANDSHAKE"), {"MC_NUM_QP_PER_EP": "1"}, None),
        (("rdma", "mlx5_0", "10.0.0.1", "P2PHANDSHAKE"), {}, "MC_NUM_QP_PER_EP=1"),
        (("rdma", "mlx5_0,mlx5_1", "10.0.0.1", "P2PHANDSHAKE"), {"MC_NUM_QP_PER_EP": "1"}, "one NIC"),
        (("ascend", "", "10.0.0.1", "P2PHANDSHAKE"), {}, "its protocol is ascend"),
    ],
)
def test_why_an_engine_stays_one(arguments: Any, environment: dict[str, str], part: str | None) -> None:
    protocol, device, hostname, server = arguments
    reason = why_one(protocol, device, hostname, server, environment)
    assert reason is None if part is None else part in (reason or "")


def test_the_list_of_ports() -> None:
    lanes = (Lane(0, 49153), Lane(1, 0), Lane(2, 50001))
    held: Any = Laned(Session(), 1, Assignment(lanes, "lanes", "", "", ""))
    assert udp_sports(held) == "49153,50001"


@pytest.mark.slow
def test_the_inference_process_loads_only_light_things() -> None:
    modules = ["mooncake", "nixl", "sglang", "lmcache", "plugins"]
    code = (
        f"import sys\nfor name in {modules!r}: __import__('ark.integrations.' + name)\n"
        "heavy = {'numpy', 'numba', 'polars', 'asyncio', 'rich', 'cyclopts', 'ark.control', 'ark.fabric'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


def test_a_copy_that_was_not_built_has_no_methods() -> None:
    with pytest.raises(AttributeError):
        SteeredEngine.__new__(SteeredEngine).get_rpc_port()
