"""vLLM's MooncakeConnector, steered: the same class, with ARK's engine in the place of Mooncake's.

For ``--kv-transfer-config``: ``"kv_connector": "MooncakeConnector"`` with ``"kv_connector_module_path":
"ark.integrations.vllm_mooncake"``. The name is vLLM's own: vLLM and Dynamo decide by it in other places.

The prefill side's ``_send_blocks`` makes one blocking call of the engine for each transfer, with the peer's
session and the length of every block: there ARK reserves exact bytes from the first byte to the last. Needs
vLLM and Mooncake in a version that ``ark.integrations.versions`` knows; with others the connector is vLLM's.
"""

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.mooncake import mooncake_connector

from ark.integrations.mooncake import SteeredEngine
from ark.integrations.replacing import replaced
from ark.integrations.versions import complaint, fits, installed, stay_away
from ark.integrations.vllm_role import sends

SEND_BLOCKS = ("self", "remote_session", "src_ptrs", "dst_ptrs", "lengths")
WORKER = ("self", "vllm_config", "engine_id", "kv_cache_config")


class MooncakeConnector(mooncake_connector.MooncakeConnector):  # type: ignore[misc]
    """vLLM's own, of whose transfers ARK chooses the path."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        engine = mooncake_connector.TransferEngine
        if engine is None or not sends(vllm_config) or stay_away(_complaints()):
            super().__init__(vllm_config, role, kv_cache_config)
            return
        with replaced(mooncake_connector, "TransferEngine", lambda: SteeredEngine(engine)):
            super().__init__(vllm_config, role, kv_cache_config)


def _complaints() -> list[str | None]:
    worker = mooncake_connector.MooncakeConnectorWorker
    return [
        complaint("vllm", installed("vllm")),
        complaint("mooncake-transfer-engine", installed("mooncake-transfer-engine")),
        fits(worker, "__init__", WORKER),
        fits(worker, "_send_blocks", SEND_BLOCKS),
    ]
