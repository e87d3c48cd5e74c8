"""NIXL's agent, steered: which worker makes a transfer, and what the agent of the host knows meanwhile."""

import gc
import threading
from typing import Any

import numpy as np
import pytest
from tests.integrations.engines.standins import nixl_api
from tests.integrations.engines.watching import Reserved, RunLog, Watched

from ark.client import Client
from ark.integrations import nixl
from ark.integrations.nixl import steered_agent, steering_for_ucx
from ark.integrations.sessions import PeerNames, talking_to
from ark.integrations.steering import Steering

BLOCK = 65_536
BLOCKS = 64
PATH_OF_WORKER = (1, 0, 3, 2)


def strided(count: int = BLOCKS, size: int = BLOCK) -> Any:
    return np.array([[4096, size, 0, size, count]], dtype=np.uint64)


class Made:
    """A steered agent that has met the agent ``decode`` on 10.9.0.2; worker k's path is PATH_OF_WORKER[k]."""

    def __init__(self, run_log: RunLog) -> None:
        steering = Steering(4, dport=0, proto="tcp")
        self.agent = steered_agent(nixl_api.nixl_agent, steering)(
            "prefill", nixl_api.nixl_agent_config(num_threads=4)
        )
        self.agent.connecting = lambda worker: run_log.opened(PATH_OF_WORKER[worker])
        with talking_to("tcp://10.9.0.2:5600"):
            self.agent.add_remote_agent(b"decode")
        self.local = self.agent.prep_xfer_dlist("", strided(), "DRAM")
        self.remote = self.agent.prep_xfer_dlist("decode", strided(), "DRAM")

    def make(self, blocks: int = BLOCKS, operation: str = "WRITE") -> Any:
        indices = np.arange(blocks, dtype=np.int32)
        return self.agent.make_prepped_xfer(
            operation, self.local, indices, self.remote, indices, notif_msg=b"request:1"
        )


@pytest.fixture
def made(watched: Watched, run_log: RunLog) -> Made:
    return Made(run_log)


def test_a_write_is_reserved_from_its_making_to_the_poll_that_sees_its_end(
    made: Made, watched: Watched
) -> None:
    handle = made.make()
    worker = made.agent.made[0][0]
    assert watched.transfers() == [Reserved("h2", BLOCK * BLOCKS, (PATH_OF_WORKER[worker],))]
    assert made.agent.transfer(handle) == "PROC"
    assert made.agent.check_xfer_state(handle) == "PROC"
    assert len(watched.settled()) == 1
    made.agent.state = "DONE"
    assert made.agent.check_xfer_state(handle) == "DONE"
    assert watched.settled() == []
    made.agent.release_xfer_handle(handle)


def test_transfers_at_once_take_all_workers(made: Made, watched: Watched) -> None:
    handles = [made.make() for _ in range(4)]
    assert sorted(worker for worker, _, _ in made.agent.made) == [0, 1, 2, 3]
    assert sorted(one.paths for one in watched.transfers()) == [(0,), (1,), (2,), (3,)]
    for handle in handles:
        made.agent.release_xfer_handle(handle)


def test_the_backend_gets_a_worker_a_path_and_no_threads(made: Made) -> None:
    assert made.agent.backends["UCX"] == {"num_threads": "0", "num_workers": "4"}


def test_threads_are_given_their_workers_before_a_notification_is_sent(made: Made, watched: Watched) -> None:
    made.agent.send_notif("decode", b"HB:1")
    for worker in range(4):
        thread = made.agent._ark_workers.run(worker, threading.get_ident)
        assert made.agent.worker_of[thread] == worker
    del watched


@pytest.mark.parametrize("how", ["posted", "polled"])
def test_errors_release_and_are_passed_on(made: Made, watched: Watched, how: str) -> None:
    handle = made.make()
    made.agent.raises = RuntimeError("remote is gone")
    with pytest.raises(RuntimeError, match="remote is gone"):
        (made.agent.transfer if how == "posted" else made.agent.check_xfer_state)(handle)
    assert watched.settled() == []


def test_a_state_of_error_releases(made: Made, watched: Watched) -> None:
    handle = made.make()
    made.agent.state = "ERR"
    assert made.agent.transfer(handle) == "ERR"
    assert watched.settled() == []


def test_a_transfer_that_nixl_can_t_release_goes_on(made: Made, watched: Watched) -> None:
    handle = made.make()
    made.agent.raises = RuntimeError("still active")
    with pytest.raises(RuntimeError):
        made.agent.release_xfer_handle(handle)
    assert len(watched.settled()) == 1
    made.agent.raises = None
    made.agent.release_xfer_handle(handle)
    assert watched.settled() == []


def test_a_transfer_that_can_t_be_made_is_released(
    made: Made, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise ValueError("no such descriptor")

    monkeypatch.setattr(made.agent, "_make", refuse)
    with pytest.raises(ValueError, match="no such descriptor"):
        made.make()
    assert watched.settled() == []


def test_reads_are_counted_only(made: Made, watched: Watched) -> None:
    made.make(operation="READ")
    assert watched.transfers() == []
    assert (made.agent.steering.counts.unsteered, made.agent.steering.counts.unsteered_bytes) == (
        1,
        BLOCK * BLOCKS,
    )


def test_descriptors_given_at_once_are_added_up(made: Made, watched: Watched) -> None:
    descriptors = [(4096, 3 * BLOCK, 0), (1 << 20, 5 * BLOCK, 0)]
    handle = made.agent.initialize_xfer("WRITE", descriptors, descriptors, "decode")
    (reserved,) = watched.transfers()
    assert (reserved.target, reserved.size_bytes) == ("h2", 8 * BLOCK)
    made.agent.release_xfer_handle(handle)


def test_a_peer_met_without_its_host_is_not_steered(made: Made, watched: Watched) -> None:
    made.agent.add_remote_agent(b"stranger")
    made.agent.initialize_xfer("WRITE", [(4096, 1 << 20, 0)], [(4096, 1 << 20, 0)], "stranger")
    assert watched.transfers() == []


def test_a_peer_met_again_without_its_host_is_still_known(made: Made, watched: Watched) -> None:
    made.agent.add_remote_agent(b"decode")
    handle = made.make()
    assert len(watched.transfers()) == 1
    made.agent.release_xfer_handle(handle)


def test_connections_whose_paths_nobody_tells_are_not_steered(made: Made, watched: Watched) -> None:
    made.agent.connecting = lambda _: None
    with talking_to("10.9.0.3"):
        made.agent.add_remote_agent(b"other")
    made.agent.initialize_xfer("WRITE", [(4096, 1 << 20, 0)], [(4096, 1 << 20, 0)], "other")
    assert watched.transfers() == []


def test_lists_that_are_remembered_are_bounded(
    made: Made, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nixl, "DLISTS_MAX", 2)
    made.agent.prep_xfer_dlist("decode", strided(), "DRAM")
    made.make()
    assert watched.transfers() == []


def test_a_number_used_again_ends_the_transfer_that_had_it(made: Made, watched: Watched) -> None:
    handle = made.make()
    made.agent.numbers = iter([handle._handle])
    made.make()
    assert len(watched.settled()) == 1
    made.agent.release_xfer_handle(handle)


def test_released_lists_are_forgotten(made: Made, watched: Watched) -> None:
    made.agent.release_dlist_handle(made.local)
    made.make()
    assert watched.transfers() == []


def test_an_agent_that_is_dropped_gives_everything_back(made: Made, watched: Watched) -> None:
    made.make()
    assert len(watched.transfers()) == 1
    del made.agent
    gc.collect()
    assert watched.settled() == []


def test_a_restart_of_the_agent_in_mid_transfer(made: Made, watched: Watched) -> None:
    handle = made.make()
    (before,) = watched.transfers()
    watched.four.stop("h0")
    watched.four.boot("h0")
    watched.four.until(lambda: watched.four["h0"].service.transfers)
    assert watched.transfers() == [before]
    made.agent.state = "DONE"
    assert made.agent.check_xfer_state(handle) == "DONE"
    assert watched.settled() == []
    watched.four.until_heard()


def test_without_an_agent_transfers_take_the_workers_in_turn(run_log: RunLog, tmp_path: Any) -> None:
    steering = Steering(4, dport=0, proto="tcp", client=Client(tmp_path / "nobody.sock"), peers=PeerNames())
    agent = steered_agent(nixl_api.nixl_agent, steering)("prefill")
    agent.connecting = run_log.opened
    with talking_to("10.9.0.2"):
        agent.add_remote_agent(b"decode")
    for _ in range(4):
        agent.initialize_xfer("WRITE", [(0, 1 << 20, 0)], [(0, 1 << 20, 0)], "decode")
    assert [worker for worker, _, _ in agent.made] == [0, 1, 2, 3]


def test_workers_that_the_user_has_set_are_left_alone(run_log: RunLog) -> None:
    agent = steered_agent(nixl_api.nixl_agent, Steering(4))("a", nixl_api.nixl_agent_config(backends=[]))
    agent.create_backend("UCX", {"num_workers": "2"})
    assert agent.backends["UCX"] == {"num_workers": "2"}
    assert agent._ark_workers is None


def test_an_agent_whose_workers_can_t_be_bound_goes_on(
    watched: Watched, run_log: RunLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise RuntimeError("no DRAM here")

    monkeypatch.setattr(nixl_api.nixl_agent, "register_memory", refuse)
    made = Made(run_log)
    made.make()
    assert watched.transfers() == []
    assert made.agent.made == [(1, "WRITE", made.remote)]


@pytest.mark.parametrize(
    ("transports", "proto", "dport"),
    [
        ("tcp", "tcp", 0),
        ("tcp,cuda_copy,self", "tcp", 0),
        ("rc,cuda_copy", "udp", 4791),
        ("all", "udp", 4791),
    ],
)
def test_the_protocol_is_read_from_ucx_tls(transports: str, proto: str, dport: int) -> None:
    steering = steering_for_ucx(push=False, environment={"UCX_TLS": transports})
    assert (steering.proto, steering.dport, steering.lanes) == (proto, dport, 1)
