"""vLLM's NIXL connectors, steered: the same classes, with ARK's agent in the place of NIXL's.

For ``--kv-transfer-config``: ``"kv_connector": "NixlPushConnector"`` with ``"kv_connector_module_path":
"ark.integrations.vllm_nixl"``. The names are vLLM's own: vLLM and Dynamo decide by them in other places.

With ``NixlPushConnector`` the prefill side writes (``_xfer_blocks``): it sends, and is steered. With
``NixlConnector`` the decode side reads (``_read_blocks``): the bytes leave the prefill host's NIC, at a time
that its vLLM does not know, so they are counted only, and that is said.
"""

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.nixl import base_worker, connector, pull_worker, push_worker

from ark.integrations.logs import log
from ark.integrations.nixl import steered_agent, steering_for_ucx
from ark.integrations.replacing import replaced
from ark.integrations.sessions import talking_to
from ark.integrations.versions import complaint, fits, installed, stay_away
from ark.integrations.vllm_role import sends

WORKER = ("self", "vllm_config", "engine_id", "kv_cache_config")
HANDSHAKE = (
    "self",
    "host",
    "port",
    "remote_tp_size",
    "expected_engine_id",
    "remote_dcp_size",
    "remote_pp_size",
    "notif_agents_only",
)


class NixlPullConnector(connector.NixlPullConnector):  # type: ignore[misc]
    """vLLM's own; its reads are counted."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        if stay_away(_complaints(pull_worker.NixlPullConnectorWorker)):
            super().__init__(vllm_config, role, kv_cache_config)
            return
        with replaced(base_worker, "NixlWrapper", _agent(base_worker.NixlWrapper, push=False)):
            super().__init__(vllm_config, role, kv_cache_config)
        if self.connector_worker is not None:
            log.warning(
                "ark: NixlConnector reads: transfers are counted, not steered, as NixlPushConnector's are"
            )


NixlConnector = NixlPullConnector


class NixlPushConnector(connector.NixlPushConnector):  # type: ignore[misc]
    """vLLM's own, of whose writes ARK chooses the path."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        if not sends(vllm_config) or stay_away(_complaints(push_worker.NixlPushConnectorWorker)):
            super().__init__(vllm_config, role, kv_cache_config)
            return
        with replaced(base_worker, "NixlWrapper", _agent(base_worker.NixlWrapper, push=True)):
            super().__init__(vllm_config, role, kv_cache_config)
        if self.connector_worker is not None:
            _say_who(self.connector_worker)


def _agent(base: Any, *, push: bool) -> Any:
    """The class to make the agent of; None where NIXL is not installed, which vLLM then says itself."""
    return None if base is None else steered_agent(base, steering_for_ucx(push=push))


def _say_who(worker: Any) -> None:
    """Let the agent know which host an agent is on: only the handshake has its address."""
    handshake = worker._nixl_handshake  # noqa: SLF001 - the hook is inside, and checked

    def with_host(host: str, *arguments: Any, **named: Any) -> Any:
        with talking_to(host):
            return handshake(host, *arguments, **named)

    worker._nixl_handshake = with_host  # noqa: SLF001


def _complaints(worker: Any) -> list[str | None]:
    return [
        complaint("vllm", installed("vllm")),
        complaint("nixl", installed("nixl")),
        fits(worker, "__init__", WORKER),
        fits(worker, "_nixl_handshake", HANDSHAKE),
    ]
