"""vLLM's connectors, steered: stand-ins of vLLM, Mooncake and NIXL, and a real agent of the host."""

import importlib
import sys
import types
from importlib import metadata
from typing import Any

import pytest
from tests.integrations.engines.standins import mooncake_engine, nixl_api, vllm_mooncake, vllm_nixl
from tests.integrations.engines.standins.modules import forget, put
from tests.integrations.engines.watching import Reserved, RunLog, Watched, in_thread, join

V1 = "vllm.distributed.kv_transfer.kv_connector.v1"
PREFILL, DECODE = (
    types.SimpleNamespace(kv_transfer_config=types.SimpleNamespace(kv_role=role))
    for role in ("kv_producer", "kv_consumer")
)
KNOWN = {"vllm": "0.33.0", "mooncake-transfer-engine": "0.3.13.post1", "nixl": "1.5.1"}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions that seem to be installed."""
    found = dict(KNOWN)
    monkeypatch.setattr(metadata, "version", lambda name: found[name.removesuffix("-cu12")])
    return found


@pytest.fixture
def mooncake_connector(
    monkeypatch: pytest.MonkeyPatch, run_log: RunLog, installed: dict[str, str]
) -> types.ModuleType:
    """ARK's module, over vLLM's and Mooncake's stand-ins."""
    engine = mooncake_engine.fresh()
    engine.network.buffers = {"10.9.0.2:15403": 4096}
    engine.network.connecting = lambda number, _: run_log.opened(3 - number)
    monkeypatch.setattr(vllm_mooncake, "TransferEngine", engine)
    put(monkeypatch, f"{V1}.mooncake", mooncake_connector=vllm_mooncake).__path__ = []
    monkeypatch.setitem(sys.modules, f"{V1}.mooncake.mooncake_connector", vllm_mooncake)
    forget(monkeypatch, "ark.integrations.vllm_mooncake")
    return importlib.import_module("ark.integrations.vllm_mooncake")


def test_mooncake_s_send_blocks_reserves_exact_bytes(
    mooncake_connector: types.ModuleType, watched: Watched
) -> None:
    worker = mooncake_connector.MooncakeConnector(PREFILL, "worker", None).connector_worker
    network = vllm_mooncake.TransferEngine.network
    network.gate.clear()
    lengths = [300_000, 500_000, 7]
    thread = in_thread(lambda: worker._send_blocks("10.9.0.2:15403", [1, 2, 3], [4, 5, 6], lengths))
    network.arrived.acquire()
    (reserved,) = watched.transfers()
    assert reserved == Reserved("h2", 800_007, (3 - network.writes[0].engine,))
    network.gate.set()
    join(thread)
    assert watched.settled() == []


def test_the_scheduler_s_side_has_no_engine(mooncake_connector: types.ModuleType, watched: Watched) -> None:
    assert mooncake_connector.MooncakeConnector(PREFILL, "scheduler", None).connector_worker is None


def test_vllm_s_own_engine_is_left_in_place(mooncake_connector: types.ModuleType, watched: Watched) -> None:
    before = vllm_mooncake.TransferEngine
    worker = mooncake_connector.MooncakeConnector(PREFILL, "worker", None).connector_worker
    assert vllm_mooncake.TransferEngine is before
    assert worker.engine.lanes == 4


@pytest.mark.parametrize(("engine", "version"), [("vllm", "0.34.0"), ("mooncake-transfer-engine", "0.4.0")])
def test_an_unknown_version_runs_as_it_was(
    mooncake_connector: types.ModuleType,
    installed: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    engine: str,
    version: str,
) -> None:
    installed[engine] = version
    worker = mooncake_connector.MooncakeConnector(PREFILL, "worker", None).connector_worker
    assert type(worker.engine) is vllm_mooncake.TransferEngine
    assert worker._send_blocks("10.9.0.2:15403", [1], [4], [800_000]) == 0
    assert [record.getMessage().partition(" is not known")[0] for record in caplog.records] == [
        f"ark: {engine} {version}"
    ]


def test_a_changed_hook_runs_as_it_was(
    mooncake_connector: types.ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(vllm_mooncake.MooncakeConnectorWorker, "_send_blocks")
    worker = mooncake_connector.MooncakeConnector(PREFILL, "worker", None).connector_worker
    assert type(worker.engine) is vllm_mooncake.TransferEngine
    assert "_send_blocks is gone" in caplog.text


def test_without_mooncake_the_error_is_vllm_s(
    mooncake_connector: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_mooncake, "TransferEngine", None)
    with pytest.raises(RuntimeError, match="Mooncake is not available"):
        mooncake_connector.MooncakeConnector(PREFILL, "worker", None)


@pytest.fixture
def nixl_connectors(
    monkeypatch: pytest.MonkeyPatch, run_log: RunLog, installed: dict[str, str]
) -> types.ModuleType:
    """ARK's module, over vLLM's and NIXL's stand-ins."""
    parts = {
        name: put(monkeypatch, f"{V1}.nixl.{name}", **vars(vllm_nixl))
        for name in ("base_worker", "connector", "pull_worker", "push_worker")
    }
    vars(parts["base_worker"]).update(
        NixlWrapper=nixl_api.nixl_agent, nixl_agent_config=nixl_api.nixl_agent_config
    )
    monkeypatch.setenv("UCX_TLS", "tcp")
    forget(monkeypatch, "ark.integrations.vllm_nixl")
    return importlib.import_module("ark.integrations.vllm_nixl")


def test_nixl_s_pushes_are_reserved_until_they_are_done(
    nixl_connectors: types.ModuleType, watched: Watched, run_log: RunLog
) -> None:
    worker = nixl_connectors.NixlPushConnector(PREFILL, "worker", None).connector_worker
    worker.nixl_wrapper.connecting = lambda number: run_log.opened(3 - number)
    worker._ensure_handshake("10.9.0.3", 5600, "decode")
    worker._xfer_blocks(40)
    made = worker.nixl_wrapper.made[0][0]
    assert watched.transfers() == [Reserved("h3", 40 * vllm_nixl.BLOCK, (3 - made,))]
    worker._pop_done_transfers()
    assert len(watched.settled()) == 1
    worker.nixl_wrapper.state = "DONE"
    worker._pop_done_transfers()
    assert watched.settled() == []


def test_nixl_s_pulls_are_counted_and_that_is_said(
    nixl_connectors: types.ModuleType, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    worker = nixl_connectors.NixlConnector(PREFILL, "worker", None).connector_worker
    worker._ensure_handshake("10.9.0.3", 5600, "prefill")
    worker._read_blocks(40)
    assert watched.transfers() == []
    assert worker.nixl_wrapper.steering.counts.unsteered_bytes == 40 * vllm_nixl.BLOCK
    assert worker.nixl_wrapper.backends == {"UCX": {"num_threads": "4"}}
    assert "counted, not steered" in caplog.text


@pytest.mark.parametrize("name", ["NixlPushConnector", "NixlPullConnector"])
def test_nixl_connectors_with_an_unknown_version_run_as_they_were(
    nixl_connectors: types.ModuleType, installed: dict[str, str], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    installed["nixl"] = "2.0.0"
    connector: Any = getattr(nixl_connectors, name)(PREFILL, "worker", None)
    assert type(connector.connector_worker.nixl_wrapper) is nixl_api.nixl_agent
    assert "nixl 2.0.0 is not known" in caplog.text


def test_a_decode_host_makes_no_more_connections(
    mooncake_connector: types.ModuleType, nixl_connectors: types.ModuleType
) -> None:
    worker = mooncake_connector.MooncakeConnector(DECODE, "worker", None).connector_worker
    assert type(worker.engine) is vllm_mooncake.TransferEngine
    worker = nixl_connectors.NixlPushConnector(DECODE, "worker", None).connector_worker
    assert type(worker.nixl_wrapper) is nixl_api.nixl_agent
