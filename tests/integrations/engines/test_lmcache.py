"""LMCache's transfer channel, steered: stand-ins, and a real agent of the host."""

import asyncio
import sys
import types
from importlib import metadata
from typing import Any

import pytest
from tests.integrations.engines.standins import lmcache_channel, nixl_api
from tests.integrations.engines.standins.modules import put
from tests.integrations.engines.watching import Reserved, RunLog, Watched

from ark.integrations import lmcache


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """LMCache's package, and a module that has imported the factory from it already."""
    found = {"lmcache": "0.5.6", "nixl-cu12": "1.5.1"}
    monkeypatch.setattr(metadata, "version", lambda name: found[name])
    put(monkeypatch, "nixl._api", **vars(nixl_api))
    factory = lmcache_channel.CreateTransferChannel
    package = put(monkeypatch, "lmcache.v1.transfer_channel", CreateTransferChannel=factory)
    put(monkeypatch, "lmcache.v1.storage_backend.pd_backend", CreateTransferChannel=factory)
    monkeypatch.setenv("ARK_STEER", "lmcache")
    monkeypatch.setenv("UCX_TLS", "tcp")
    return package


def channel_of(package: Any, run_log: RunLog) -> Any:
    """A sender's channel, made as LMCache's prefill/decode backend makes it."""
    channel = package.CreateTransferChannel(
        "nixl", False, "sender", 0, 1 << 26, 1 << 20, 0, "10.9.0.1:1", "cuda", backends=["UCX"]
    )
    channel.nixl_agent.connecting = run_log.opened
    return channel


def moved(channel: Any, watched: Watched, operation: str) -> list[Reserved]:
    """Move 3 pages; what was reserved while that went on, and that nothing is afterwards."""
    during: list[list[Reserved]] = []

    def poll() -> None:
        during.append(watched.transfers())
        channel.nixl_agent.state = "DONE" if len(during) == 2 else "PROC"

    channel.nixl_agent.polling = poll
    spec = {"receiver_id": "decode", "sender_id": "decode", "remote_indexes": [7, 8, 9]}
    assert getattr(channel, operation)([0, 1, 5], spec) == 3
    assert during[0] == during[1]
    assert watched.settled() == []
    return during[0]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_batch_that_is_written_is_reserved(
    package: types.ModuleType, watched: Watched, run_log: RunLog, is_async: bool
) -> None:
    lmcache.plugin()
    channel = channel_of(package, run_log)
    if is_async:
        asyncio.run(channel.async_lazy_init_peer_connection("a", "decode", "10.9.0.2:7600"))
    else:
        channel.lazy_init_peer_connection(local_id="a", peer_id="decode", peer_init_url="10.9.0.2:7600")
    (reserved,) = moved(channel, watched, "batched_write")
    assert reserved == Reserved("h2", 3 * lmcache_channel.PAGE, (channel.nixl_agent.made[0][0],))


def test_a_batch_that_is_read_is_counted(
    package: types.ModuleType, watched: Watched, run_log: RunLog
) -> None:
    lmcache.plugin()
    channel = channel_of(package, run_log)
    channel.lazy_init_peer_connection("a", "decode", "10.9.0.2:7600")
    assert moved(channel, watched, "batched_read") == []
    assert channel.nixl_agent.steering.counts.unsteered_bytes == 3 * lmcache_channel.PAGE


def test_a_failed_batch_is_released(package: types.ModuleType, watched: Watched, run_log: RunLog) -> None:
    lmcache.plugin()
    channel = channel_of(package, run_log)
    channel.lazy_init_peer_connection("a", "decode", "10.9.0.2:7600")
    channel.nixl_agent.state = "ERR"
    with pytest.raises(RuntimeError, match="Failed to send"):
        channel.batched_write([0], {"receiver_id": "decode", "remote_indexes": [7]})
    assert watched.settled() == []


def test_the_factory_is_wrapped_wherever_it_was_imported_and_once(package: types.ModuleType) -> None:
    lmcache.plugin()
    wrapped = package.CreateTransferChannel
    assert sys.modules["lmcache.v1.storage_backend.pd_backend"].CreateTransferChannel is wrapped
    lmcache.plugin()
    assert package.CreateTransferChannel is wrapped
    assert wrapped("mock_memory", False, "both", 0, 0, 0, 0, "") == "another channel"


def test_nothing_is_wrapped_unless_asked_or_unknown(
    package: types.ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = package.CreateTransferChannel
    monkeypatch.setenv("ARK_STEER", "")
    lmcache.plugin()
    monkeypatch.setenv("ARK_STEER", "lmcache")
    monkeypatch.setattr(metadata, "version", lambda _: "9.9.9")
    lmcache.plugin()
    assert package.CreateTransferChannel is before
    assert [record.getMessage()[:31] for record in caplog.records] == ["ark: lmcache 9.9.9 is not known"]


def test_a_factory_that_has_changed_is_left_alone(
    package: types.ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def other(channel_type: str) -> str:
        return channel_type

    monkeypatch.setattr(package, "CreateTransferChannel", other)
    lmcache.plugin()
    assert package.CreateTransferChannel is other
    assert "takes channel_type, not" in caplog.text
