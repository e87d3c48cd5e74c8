"""SGLang's transfer managers, hooked by its plug-ins: stand-ins, and a real agent of the host."""

from importlib import metadata
from typing import Any

import pytest
from tests.integrations.engines.standins import mooncake_engine, nixl_api, sglang_parts
from tests.integrations.engines.standins.modules import put
from tests.integrations.engines.watching import Reserved, RunLog, Watched, in_thread, join

from ark.integrations import sglang


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, run_log: RunLog) -> Any:
    """SGLang with ARK's plug-in loaded, over stand-ins of Mooncake and NIXL."""
    found = {"sglang": "0.5.23", "mooncake-transfer-engine": "0.3.13.post1", "nixl-cu12": "1.5.1"}
    monkeypatch.setattr(metadata, "version", lambda name: found[name])
    engine = mooncake_engine.fresh()
    engine.network.buffers = {"10.9.0.2:15403": 4096}
    engine.network.connecting = lambda number, _: run_log.opened(number)
    put(monkeypatch, "mooncake.engine", TransferEngine=engine)
    put(monkeypatch, "nixl._api", **vars(nixl_api))
    for place, name in (
        ("sglang.srt.plugins.hook_registry", "HookRegistry"),
        ("sglang.srt.distributed.device_communicators.mooncake_transfer_engine", "MooncakeTransferEngine"),
        ("sglang.srt.disaggregation.nixl.conn", "NixlKVManager"),
    ):
        fresh = type(name, (getattr(sglang_parts, name),), {})
        put(monkeypatch, place, HookType=sglang_parts.HookType, **{name: fresh})
    monkeypatch.setenv("ARK_STEER", "sglang")
    monkeypatch.setenv("UCX_TLS", "tcp")
    found["network"] = engine.network
    return found


def made(place: str, name: str, *arguments: Any) -> Any:
    import sys  # noqa: PLC0415 - the stand-in of this test

    return getattr(sys.modules[f"sglang.srt.{place}"], name)(*arguments)


def test_each_chunk_of_the_mooncake_manager_is_reserved(parts: Any, watched: Watched) -> None:
    sglang.plugin()
    sglang_parts.HookRegistry.apply_hooks()
    engine = made(
        "distributed.device_communicators.mooncake_transfer_engine", "MooncakeTransferEngine", "10.9.0.1"
    )
    network = parts["network"]
    network.gate.clear()
    thread = in_thread(
        lambda: engine.batch_transfer_sync("10.9.0.2:15403", [1, 2], [3, 4], [400_000, 100_000])
    )
    network.arrived.acquire()
    assert watched.transfers() == [Reserved("h2", 500_000, (network.writes[0].engine,))]
    network.gate.set()
    join(thread)
    assert watched.settled() == []
    network.raises = RuntimeError("down")
    assert engine.batch_transfer_sync("10.9.0.2:15403", [1], [3], [400_000]) == -1
    assert watched.settled() == []


def test_the_nixl_manager_s_writes_are_reserved(parts: Any, watched: Watched, run_log: RunLog) -> None:
    sglang.plugin()
    sglang_parts.HookRegistry.apply_hooks()
    manager = made("disaggregation.nixl.conn", "NixlKVManager", None, None, None)
    manager.agent.connecting = run_log.opened
    manager._add_remote_peer(sglang_parts.decode_peer("decode", "10.9.0.3"))
    handle = manager._send_kvcache_generic("decode", 10)
    worker = manager.agent.made[0][0]
    assert watched.transfers() == [Reserved("h3", 10 * sglang_parts.BLOCK, (worker,))]
    manager.agent.state = "DONE"
    assert manager.agent.check_xfer_state(handle) == "DONE"
    assert watched.settled() == []
    assert manager.agent.backends["UCX"] == {"num_threads": "0", "num_workers": "4"}


def test_engines_and_agents_made_elsewhere_are_left_alone(parts: Any, watched: Watched) -> None:
    import mooncake.engine  # noqa: PLC0415
    import nixl._api  # noqa: PLC0415

    sglang.plugin()
    sglang_parts.HookRegistry.apply_hooks()
    made("disaggregation.nixl.conn", "NixlKVManager", None, None, None)
    assert nixl._api.nixl_agent is nixl_api.nixl_agent
    assert isinstance(mooncake.engine.TransferEngine(), mooncake_engine.TransferEngine)


def test_nothing_is_hooked_unless_asked(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARK_STEER", "lmcache")
    sglang.plugin()
    assert sglang_parts.HookRegistry.hooks == []


def test_an_unknown_version_is_not_hooked(parts: Any, caplog: pytest.LogCaptureFixture) -> None:
    parts["sglang"] = "0.5.24"
    sglang.plugin()
    assert sglang_parts.HookRegistry.hooks == []
    assert "sglang 0.5.24 is not known" in caplog.text


def test_one_backend_of_an_unknown_version_leaves_the_other(
    parts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    parts["mooncake-transfer-engine"] = "0.4.0"
    sglang.plugin()
    assert [target.rpartition(".")[2] for target, _ in sglang_parts.HookRegistry.hooks] == [
        "__init__",
        "_add_remote_peer",
    ]
    sglang_parts.HookRegistry.hooks.clear()
    assert "mooncake-transfer-engine 0.4.0 is not known" in caplog.text
