"""LMCache's source: the factory of its transfer channels and its NIXL channel."""

import inspect

import pytest
from tests.contracts.wheels import Wheel
from tests.integrations.engines.standins import lmcache_channel

from ark.integrations.lmcache import CHANNELS, CONNECT_TAKES, FACTORY, FACTORY_TAKES

NIXL = f"{CHANNELS}.nixl_channel"


def test_the_factory(lmcache: Wheel) -> None:
    assert lmcache.parameters(CHANNELS, FACTORY) == list(FACTORY_TAKES)
    assert list(inspect.signature(lmcache_channel.CreateTransferChannel).parameters) == list(FACTORY_TAKES)
    assert "NixlChannel" in lmcache.calls(CHANNELS, FACTORY)


@pytest.mark.parametrize("name", ["pd_backend", "pd_backend_async", "p2p_backend"])
def test_who_makes_channels_takes_the_factory_by_name(lmcache: Wheel, name: str) -> None:
    text = lmcache.text(f"lmcache.v1.storage_backend.{name}")
    assert "from lmcache.v1.transfer_channel import CreateTransferChannel" in text
    assert "self.transfer_channel = CreateTransferChannel(" in text


@pytest.mark.parametrize("name", ["lazy_init_peer_connection", "async_lazy_init_peer_connection"])
def test_peers_are_met_with_their_url(lmcache: Wheel, name: str) -> None:
    assert lmcache.parameters(NIXL, f"NixlChannel.{name}") == ["self", *CONNECT_TAKES]
    ours = list(inspect.signature(getattr(lmcache_channel.NixlChannel, name)).parameters)
    assert ours == ["self", *CONNECT_TAKES]
    assert "self.nixl_agent.add_remote_agent" in lmcache.calls(NIXL, f"NixlChannel.{name}")


def test_the_agent_is_made_by_nixl_s_name_when_the_channel_is(lmcache: Wheel) -> None:
    source = lmcache.source(NIXL, "NixlAgentWrapper.__init__")
    assert source.index("from nixl._api import nixl_agent as NixlAgent") < source.index(
        "NixlAgent(str(uuid.uuid4()), "
    )
    assert "self.nixl_agent = self.nixl_wrapper.agent" in lmcache.source(NIXL, "NixlChannel.__init__")


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("batched_write", "'WRITE'"),
        ("async_batched_write", "'WRITE'"),
        ("batched_read", "'READ'"),
        ("async_batched_read", "'READ'"),
    ],
)
def test_batches_are_made_posted_and_polled(lmcache: Wheel, name: str, operation: str) -> None:
    calls = [
        call for call in lmcache.calls(NIXL, f"NixlChannel.{name}") if call.startswith("self.nixl_agent")
    ]
    assert calls == [
        "self.nixl_agent.make_prepped_xfer",
        "self.nixl_agent.transfer",
        "self.nixl_agent.check_xfer_state",
    ]
    assert lmcache.arguments_of(NIXL, f"NixlChannel.{name}", calls[0])[0] == operation
