"""Stands in for vLLM's NIXL connectors: as much of them as a transfer passes.

The real ones are four modules; ``put_modules`` shows this one under their names.
"""

import sys
from typing import Any

import numpy as np

BLOCK = 65_536


class NixlBaseConnectorWorker:
    def __init__(self, vllm_config: Any, engine_id: str, kv_cache_config: Any) -> None:
        here: Any = sys.modules["vllm.distributed.kv_transfer.kv_connector.v1.nixl.base_worker"]
        nixl_wrapper_cls = here.NixlWrapper
        if nixl_wrapper_cls is None:
            raise RuntimeError("NIXL is not available")
        self.nixl_wrapper = nixl_wrapper_cls("a-uuid", here.nixl_agent_config(num_threads=4))
        blocks = np.array([[4096, BLOCK, 0, BLOCK, 64]], dtype=np.uint64)
        self.local = self.nixl_wrapper.prep_xfer_dlist("NIXL_INIT_AGENT", blocks, "VRAM")
        self.remote: Any = None
        self.transfers: list[Any] = []

    def _nixl_handshake(
        self,
        host: str,
        port: int,
        remote_tp_size: int,
        expected_engine_id: str,
        remote_dcp_size: int = 1,
        remote_pp_size: int = 1,
        notif_agents_only: bool = False,
    ) -> tuple[dict[tuple[int, int], str], float]:
        name = self.add_remote_agent(expected_engine_id.encode())
        return {(0, 0): name}, 0.0

    def add_remote_agent(self, metadata: bytes) -> str:
        name: str = self.nixl_wrapper.add_remote_agent(metadata)
        blocks = np.array([[4096, BLOCK, 0, BLOCK, 64]], dtype=np.uint64)
        self.remote = self.nixl_wrapper.prep_xfer_dlist(name, blocks, "VRAM")
        return name

    def _ensure_handshake(self, host: str, port: int, engine_id: str) -> None:
        """The real one submits this to a thread and keeps the future."""
        self._nixl_handshake(host, port, 1, engine_id, 1, 1, False)

    def _post(self, operation: str, blocks: int) -> None:
        ids = np.arange(blocks, dtype=np.int64)
        handle = self.nixl_wrapper.make_prepped_xfer(
            operation, self.local, ids, self.remote, ids, notif_msg=b"request:1"
        )
        self.nixl_wrapper.transfer(handle)
        self.transfers.append(handle)

    def _pop_done_transfers(self) -> None:
        going_on = []
        for handle in self.transfers:
            if self.nixl_wrapper.check_xfer_state(handle) == "DONE":
                self.nixl_wrapper.release_xfer_handle(handle)
            else:
                going_on.append(handle)
        self.transfers = going_on


class NixlPullConnectorWorker(NixlBaseConnectorWorker):
    def _read_blocks(self, blocks: int) -> None:
        self._post("READ", blocks)


class NixlPushConnectorWorker(NixlBaseConnectorWorker):
    def _xfer_blocks(self, blocks: int) -> None:
        self._post("WRITE", blocks)


class NixlPullConnector:
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        self.connector_worker = (
            NixlPullConnectorWorker(vllm_config, "engine", kv_cache_config) if role == "worker" else None
        )


class NixlPushConnector:
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        self.connector_worker = (
            NixlPushConnectorWorker(vllm_config, "engine", kv_cache_config) if role == "worker" else None
        )
