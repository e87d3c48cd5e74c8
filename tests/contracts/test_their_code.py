"""The engines' own functions, out of their wheels, between our adapters and stand-ins of Mooncake and NIXL.

What they import (CUDA, PyTorch, their own packages) is left out; a real agent of the host sees the transfers.
"""

import asyncio
import logging
import sys
import time
import types
import uuid
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.contracts.wheels import Wheel
from tests.integrations.engines.standins import mooncake_engine, nixl_api
from tests.integrations.engines.standins.modules import put
from tests.integrations.engines.watching import Reserved, RunLog, Watched, in_thread, join

from ark.integrations import lmcache as our_lmcache
from ark.integrations import sglang as our_sglang
from ark.integrations.mooncake import SteeredEngine
from ark.integrations.nixl import steered_agent
from ark.integrations.sessions import talking_to
from ark.integrations.steering import Steering

V1 = "vllm.distributed.kv_transfer.kv_connector.v1"
SESSION = "10.9.0.2:15403"
BLOCK = 65_536
LOG = logging.getLogger("engines")


class Quiet:
    """Statistics and such, which take anything."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: None  # noqa: ARG005


@pytest.fixture
def engine(run_log: RunLog) -> Any:
    """Mooncake's stand-in, whose engine k takes path k."""
    made = mooncake_engine.fresh()
    made.network.buffers = {SESSION: 4096}
    made.network.connecting = lambda number, _: run_log.opened(number)
    return made


@pytest.fixture
def agent(watched: Watched, run_log: RunLog) -> Any:
    """A steered agent over NIXL's stand-in, which has met ``decode`` on h2; worker k takes path k."""
    made = steered_agent(nixl_api.nixl_agent, Steering(4, dport=0, proto="tcp"))("prefill")
    made.connecting = run_log.opened
    with talking_to("10.9.0.2"):
        made.add_remote_agent(b"decode")
    return made


def dlists(agent: Any) -> tuple[Any, Any]:
    blocks = np.array([[4096, BLOCK, 0, BLOCK, 64]], dtype=np.uint64)
    return agent.prep_xfer_dlist("", blocks, "VRAM"), agent.prep_xfer_dlist("decode", blocks, "VRAM")


def test_vllm_s_send_blocks(vllm: Wheel, watched: Watched, engine: Any) -> None:
    name = "MooncakeConnectorWorker._send_blocks"
    send = vllm.run(f"{V1}.mooncake.mooncake_connector", name, time=time, logger=LOG)[name]
    steered = SteeredEngine(engine)
    steered.initialize("10.9.0.1", "P2PHANDSHAKE", "tcp", "")
    worker = SimpleNamespace(engine=steered, xfer_stats=Quiet())
    engine.network.gate.clear()
    thread = in_thread(lambda: send(worker, SESSION, [1, 2], [3, 4], [700_000, 77]))
    engine.network.arrived.acquire()
    assert watched.transfers() == [Reserved("h2", 700_077, (engine.network.writes[0].engine,))]
    engine.network.gate.set()
    join(thread)
    assert watched.settled() == []
    engine.network.result = -1
    assert send(worker, SESSION, [1], [3], [700_000]) == -1
    assert watched.settled() == []


def test_vllm_s_pushes(vllm: Wheel, watched: Watched, agent: Any) -> None:
    push = vllm.run(f"{V1}.nixl.push_worker", "NixlPushConnectorWorker._xfer_blocks", logger=LOG)
    pop = vllm.run(f"{V1}.nixl.base_worker", "NixlBaseConnectorWorker._pop_done_transfers")
    info = SimpleNamespace(remote_block_size=16, remote_physical_blocks_per_logical=1)
    worker: Any = SimpleNamespace(
        nixl_wrapper=agent,
        xfer_stats=Quiet(),
        engine_id="prefill",
        world_size=1,
        transfer_topo=SimpleNamespace(get_engine_info=lambda _: info, block_size_ratio=lambda _: 1),
        dst_num_blocks={"prefill": 64, "decode": 64},
        dst_region_num_blocks={"prefill": None, "decode": None},
        dst_region_group_ids={"decode": None},
        dst_uses_region_group_mapping={"decode": False},
        region_group_ids=None,
        _uses_region_group_mapping=False,
        _physical_blocks_per_logical_kv_block=1,
        _apply_prefix_caching=lambda **given: (given["decode_block_ids"], given["prefill_block_ids"]),
        _compute_desc_ids=lambda **given: np.array(given["block_ids"][0]),
        _log_failure=lambda **given: pytest.fail(str(given)),
    )
    local, remote = dlists(agent)
    spec = SimpleNamespace(remote_rank=0, local_block_ids=[[0, 3, 9]], remote_block_ids=[[5, 6, 7]])
    handle = push["NixlPushConnectorWorker._xfer_blocks"](worker, spec, "decode", "r", "r", local, remote)
    assert watched.transfers() == [Reserved("h2", 3 * BLOCK, (agent.made[-1][0],))]
    transfers = {"r": [handle]}
    poll = pop["NixlBaseConnectorWorker._pop_done_transfers"]
    assert poll(worker, transfers) == (set(), set())
    assert len(watched.settled()) == 1
    agent.state = "DONE"
    assert poll(worker, transfers) == ({"r"}, set())
    assert watched.settled() == []


@pytest.fixture
def hooked_sglang(
    sglang: Wheel, monkeypatch: pytest.MonkeyPatch, watched: Watched, run_log: RunLog, engine: Any
) -> dict[str, Any]:
    """SGLang's own hook registry, engine and methods of its NIXL manager, with ARK's plug-in run."""
    hooks = put(monkeypatch, "sglang.srt.plugins.hook_registry")
    exec(compile(sglang.text("sglang.srt.plugins.hook_registry"), "hook_registry.py", "exec"), vars(hooks))
    flag = SimpleNamespace(get=lambda: False)
    environment = SimpleNamespace(
        ENABLE_ASCEND_TRANSFER_WITH_MOONCAKE=flag,
        MOONCAKE_PROTOCOL=SimpleNamespace(get=lambda: "tcp"),
        SGLANG_DISAGGREGATION_ENGINE_INIT_TIMEOUT=flag,
    )
    place, _, name = our_sglang.ENGINE.rpartition(".")
    theirs = sglang.run(
        place,
        name,
        os=SimpleNamespace(environ={}),
        logger=LOG,
        envs=environment,
        get_ib_devices_for_gpu=lambda *_: "",
        run_with_deadline=lambda call, **_: call(),
        NetworkAddress=lambda host, port: SimpleNamespace(to_host_port_str=lambda: f"{host}:{port}"),
    )
    put(monkeypatch, place, **theirs)
    place, _, name = our_sglang.MANAGER.rpartition(".")
    methods = [f"NixlKVManager.{method}" for method in ("_add_remote_peer", "_post_xfer", "_await_handles")]
    post_error = type("_NixlPostError", (RuntimeError,), {})
    disaggregation = SimpleNamespace(PREFILL=1)
    given = {"logger": LOG, "time": time, "_NixlPostError": post_error, "DisaggregationMode": disaggregation}
    found = sglang.run(place, *methods, **given)

    def init(self: Any) -> None:
        import nixl._api  # noqa: PLC0415 - as there

        self.agent = nixl._api.nixl_agent("a-uuid", nixl._api.nixl_agent_config(backends=[]))
        self.agent.create_backend("UCX", {})
        self.decode_kv_args_table, self.disaggregation_mode = {}, 0
        self.requires_dcp_relayout = lambda *_: False

    members = {name.rpartition(".")[2]: function for name, function in found.items()}
    put(monkeypatch, place, NixlKVManager=type("NixlKVManager", (), members | {"__init__": init}))
    put(monkeypatch, "mooncake.engine", TransferEngine=engine)
    put(monkeypatch, "nixl._api", **vars(nixl_api))
    monkeypatch.setattr(
        metadata,
        "version",
        {"sglang": "0.5.23", "nixl-cu12": "1.5.1", "mooncake-transfer-engine": "0.3.13"}.get,
    )
    monkeypatch.setenv("ARK_STEER", "sglang")
    monkeypatch.setenv("UCX_TLS", "tcp")
    our_sglang.plugin()
    vars(hooks)["HookRegistry"].apply_hooks()
    return {
        "engine": vars(sys.modules[our_sglang.ENGINE.rpartition(".")[0]])["MooncakeTransferEngine"],
        "manager": vars(sys.modules[place])["NixlKVManager"],
        "network": engine.network,
    }


def test_sglang_s_mooncake_engine(hooked_sglang: dict[str, Any], sglang: Wheel, watched: Watched) -> None:
    theirs = hooked_sglang["engine"]("10.9.0.1", gpu_id=0)
    name = "MooncakeKVManager._transfer_data"
    transfer = sglang.run("sglang.srt.disaggregation.mooncake.conn", name)[name]
    network = hooked_sglang["network"]
    network.gate.clear()
    blocks = [(1, 2, 300_000), (3, 4, 30)]
    thread = in_thread(lambda: transfer(SimpleNamespace(engine=theirs), SESSION, blocks))
    network.arrived.acquire()
    assert watched.transfers() == [Reserved("h2", 300_030, (network.writes[0].engine,))]
    network.gate.set()
    join(thread)
    assert watched.settled() == []
    assert theirs.get_session_id() == "10.9.0.1:15000"
    assert theirs.batch_register([1], [2]) == 0


def test_sglang_s_nixl_manager(hooked_sglang: dict[str, Any], watched: Watched, run_log: RunLog) -> None:
    manager = hooked_sglang["manager"]()
    manager.agent.connecting = run_log.opened
    peer = SimpleNamespace(
        agent_name="decode", endpoint="10.9.0.2", agent_metadata=b"decode", dst_dcp_size=1, dst_dcp_rank=0
    )
    manager._add_remote_peer(peer)
    local, remote = dlists(manager.agent)
    handle = manager.agent.make_prepped_xfer("WRITE", local, [0, 1], remote, [0, 1])
    manager._post_xfer(handle, "KVSender failed to post")
    assert watched.transfers() == [Reserved("h2", 2 * BLOCK, (manager.agent.made[-1][0],))]
    manager.agent.state = "DONE"
    assert manager._await_handles([handle], failure_seen=False) == (True, False)
    assert watched.settled() == []


def test_lmcache_s_channel(
    lmcache: Wheel, monkeypatch: pytest.MonkeyPatch, watched: Watched, run_log: RunLog
) -> None:
    put(monkeypatch, "nixl._api", **vars(nixl_api))
    place = f"{our_lmcache.CHANNELS}.nixl_channel"
    names = [
        "NixlAgentWrapper",
        *(f"NixlChannel.{name}" for name in ("batched_write", "async_batched_write")),
    ]
    theirs = lmcache.run(
        place, *names, dataclass=lambda made: made, uuid=uuid, time=time, asyncio=asyncio, logger=LOG
    )

    class NixlChannel:
        batched_write = theirs["NixlChannel.batched_write"]
        async_batched_write = theirs["NixlChannel.async_batched_write"]

        def __init__(self, **given: Any) -> None:
            self.nixl_wrapper = theirs["NixlAgentWrapper"](
                given["buffer_ptr"], given["buffer_size"], given["align_bytes"], 0, given["backends"], "cuda"
            )
            self.nixl_agent = self.nixl_wrapper.agent
            self.remote_xfer_handlers_dict: dict[str, Any] = {}

        def lazy_init_peer_connection(
            self, local_id: str, peer_id: str, peer_init_url: str, init_side_msg: Any = None
        ) -> None:
            del local_id, peer_init_url, init_side_msg
            name = self.nixl_agent.add_remote_agent(peer_id.encode())
            pages = self.nixl_agent.prep_xfer_dlist(name, self.nixl_wrapper.xfer_descs)
            self.remote_xfer_handlers_dict[peer_id] = pages

        async_lazy_init_peer_connection = lazy_init_peer_connection

        def get_local_mem_indices(self, objects: list[int]) -> list[int]:
            return objects

    package: types.ModuleType = put(
        monkeypatch, our_lmcache.CHANNELS, **lmcache.run(our_lmcache.CHANNELS, our_lmcache.FACTORY)
    )
    package.__path__ = []
    put(monkeypatch, place, NixlChannel=NixlChannel)
    monkeypatch.setenv("UCX_TLS", "tcp")
    our_lmcache.wrap_factory()
    channel = vars(package)["CreateTransferChannel"](
        "nixl", False, "sender", 0, 64 * BLOCK, BLOCK, 0, "10.9.0.1:1", "cuda", backends=["UCX"]
    )
    channel.nixl_agent.connecting = run_log.opened
    channel.lazy_init_peer_connection("a", "decode", "10.9.0.2:7600")
    seen: list[list[Reserved]] = []

    def poll() -> None:
        seen.append(watched.transfers())
        channel.nixl_agent.state = "DONE"

    channel.nixl_agent.polling = poll
    spec = {"receiver_id": "decode", "remote_indexes": [7, 8]}
    assert channel.batched_write([0, 5], transfer_spec=spec) == 2
    channel.nixl_agent.state = "PROC"
    assert asyncio.run(channel.async_batched_write([0, 5], transfer_spec=spec)) == 2
    workers = [worker for worker, _, _ in channel.nixl_agent.made]
    assert seen == [[Reserved("h2", 2 * BLOCK, (worker,))] for worker in workers]
    assert watched.settled() == []
