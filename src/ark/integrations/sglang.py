"""SGLang's Mooncake and NIXL transfer managers, steered, by SGLang's own plug-in interface.

SGLang runs ``plugin`` in each of its processes (entry point ``sglang.srt.plugins``) and hooks:

- the constructor of ``MooncakeTransferEngine``, which makes the engine by which ``MooncakeKVManager`` sends
  each chunk of a prompt, in one blocking call (``_transfer_data``);
- the constructor of ``NixlKVManager``, which makes its NIXL agent, and ``_add_remote_peer``, which knows the
  decode host's address.

``MooncakeKVManager`` writes, and so does ``NixlKVManager``: the prefill side sends and is steered.
"""

from collections.abc import Callable
from typing import Any, Final

from ark.integrations.logs import log
from ark.integrations.mooncake import SteeredEngine
from ark.integrations.nixl import steered_agent, steering_for_ucx
from ark.integrations.plugins import wanted
from ark.integrations.replacing import replaced
from ark.integrations.sessions import talking_to
from ark.integrations.versions import complaint, installed, stay_away

ENGINE: Final = "sglang.srt.distributed.device_communicators.mooncake_transfer_engine.MooncakeTransferEngine"
MANAGER: Final = "sglang.srt.disaggregation.nixl.conn.NixlKVManager"


def plugin() -> None:
    """Register the hooks, if ``ARK_STEER`` names ``sglang`` and this SGLang is known."""
    if not wanted("sglang") or stay_away([complaint("sglang", installed("sglang"))]):
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # noqa: PLC0415 - SGLang's process only

    registered = 0
    if not stay_away([complaint("mooncake-transfer-engine", installed("mooncake-transfer-engine"))]):
        HookRegistry.register(f"{ENGINE}.__init__", with_steered_engine, HookType.AROUND)
        registered += 1
    if not stay_away([complaint("nixl", installed("nixl"))]):
        HookRegistry.register(f"{MANAGER}.__init__", with_steered_agent, HookType.AROUND)
        HookRegistry.register(f"{MANAGER}._add_remote_peer", with_host, HookType.AROUND)
        registered += 1
    log.debug("ark: %d of SGLang's transfer backends are hooked", registered)


def with_steered_engine(make: Callable[..., None], *arguments: Any, **named: Any) -> None:
    """Build SGLang's engine around ours."""
    import mooncake.engine  # noqa: PLC0415 - only where Mooncake is used

    engine = mooncake.engine.TransferEngine
    with replaced(mooncake.engine, "TransferEngine", lambda: SteeredEngine(engine)):
        make(*arguments, **named)


def with_steered_agent(make: Callable[..., None], *arguments: Any, **named: Any) -> None:
    """Build SGLang's manager around our agent."""
    import nixl._api  # noqa: PLC0415 - only where NIXL is used

    agent = steered_agent(nixl._api.nixl_agent, steering_for_ucx())  # noqa: SLF001 - SGLang takes it from there
    with replaced(nixl._api, "nixl_agent", agent):  # noqa: SLF001
        make(*arguments, **named)


def with_host(add: Callable[..., None], manager: Any, peer: Any) -> None:
    """Let the agent know which host a decode peer is on."""
    with talking_to(str(peer.endpoint)):
        add(manager, peer)
