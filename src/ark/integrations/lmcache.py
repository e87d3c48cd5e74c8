"""LMCache's transfer channel, steered: the one that ``CreateTransferChannel`` makes, with ARK's NIXL agent.

Inside vLLM ``plugin`` is run in each process (entry point ``vllm.general_plugins``); elsewhere call it before
LMCache makes a channel. The sender of a prefill/decode backend writes in batches (``batched_write``) and is
steered; where a channel reads (``batched_read``), the bytes leave the peer's NIC, and are counted.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

from ark.integrations.logs import log
from ark.integrations.nixl import steered_agent, steering_for_ucx
from ark.integrations.plugins import wanted
from ark.integrations.replacing import replaced
from ark.integrations.sessions import talking_to
from ark.integrations.versions import complaint, fits, installed, stay_away

CHANNELS: Final = "lmcache.v1.transfer_channel"
FACTORY: Final = "CreateTransferChannel"
FACTORY_TAKES: Final = (
    "channel_type",
    "async_mode",
    "role",
    "buffer_ptr",
    "buffer_size",
    "align_bytes",
    "tp_rank",
    "peer_init_url",
    "device",
    "kwargs",
)
CONNECT_TAKES: Final = ("local_id", "peer_id", "peer_init_url", "init_side_msg")


def plugin() -> None:
    """Wrap ``CreateTransferChannel``, if ``ARK_STEER`` names ``lmcache`` and this LMCache is known."""
    if wanted("lmcache") and not stay_away(
        [complaint("lmcache", installed("lmcache")), complaint("nixl", installed("nixl"))]
    ):
        wrap_factory()


def wrap_factory() -> None:
    """Wrap ``CreateTransferChannel`` wherever it has been imported; once is enough."""
    package = importlib.import_module(CHANNELS)
    make = getattr(package, FACTORY, None)
    if hasattr(make, "__wrapped__") or stay_away([fits(package, FACTORY, FACTORY_TAKES)]) or make is None:
        return
    steered = steered_factory(make)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("lmcache") and getattr(module, FACTORY, None) is make:
            setattr(module, FACTORY, steered)


def steered_factory(make: Callable[..., Any]) -> Callable[..., Any]:
    """``CreateTransferChannel`` that gives NIXL channels a steered agent."""

    @functools.wraps(make)
    def create(channel_type: str, *arguments: Any, **named: Any) -> Any:
        if channel_type != "nixl":
            return make(channel_type, *arguments, **named)
        import nixl._api  # noqa: PLC0415 - only where NIXL is used

        agent = steered_agent(nixl._api.nixl_agent, steering_for_ucx())  # noqa: SLF001 - LMCache's own import
        with replaced(nixl._api, "nixl_agent", agent):  # noqa: SLF001
            channel = make(channel_type, *arguments, **named)
        _say_who(channel)
        return channel

    return create


def _say_who(channel: Any) -> None:
    """Let the agent know which host a peer is on, from the URL by which the channel connects to it."""
    names = ("lazy_init_peer_connection", "async_lazy_init_peer_connection")
    if stay_away(fits(channel, name, CONNECT_TAKES) for name in names):
        return
    connect, connect_async = (getattr(channel, name) for name in names)

    def with_host(local_id: str, peer_id: str, peer_init_url: str, init_side_msg: Any = None) -> Any:
        with talking_to(peer_init_url):
            return connect(local_id, peer_id, peer_init_url, init_side_msg)

    async def with_host_async(
        local_id: str, peer_id: str, peer_init_url: str, init_side_msg: Any = None
    ) -> Any:
        with talking_to(peer_init_url):
            return await connect_async(local_id, peer_id, peer_init_url, init_side_msg)

    channel.lazy_init_peer_connection = with_host
    channel.async_lazy_init_peer_connection = with_host_async
    log.debug("ark: an LMCache channel is hooked")
