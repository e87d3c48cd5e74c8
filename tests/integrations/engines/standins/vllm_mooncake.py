"""Stands in for vLLM's ``mooncake_connector``: as much of it as a transfer passes."""

from typing import Any

TransferEngine: Any = None


class MooncakeConnectorWorker:
    def __init__(self, vllm_config: Any, engine_id: str, kv_cache_config: Any) -> None:
        if TransferEngine is None:
            raise RuntimeError("Mooncake is not available")
        self.engine = TransferEngine()
        if self.engine.initialize("10.9.0.1", "P2PHANDSHAKE", "tcp", "") != 0:
            raise RuntimeError("Mooncake Transfer Engine initialization failed.")
        self.rpc_port = self.engine.get_rpc_port()
        self.engine.batch_register_memory([65_536], [1 << 30])

    def _send_blocks(
        self, remote_session: str, src_ptrs: list[int], dst_ptrs: list[int], lengths: list[int]
    ) -> int:
        result: int = self.engine.batch_transfer_sync_write(remote_session, src_ptrs, dst_ptrs, lengths)
        return result


class MooncakeConnector:
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        self.connector_worker = (
            MooncakeConnectorWorker(vllm_config, "engine", kv_cache_config) if role == "worker" else None
        )
