"""Stands in for SGLang: its plug-in hooks, its Mooncake engine and its NIXL manager."""

import pkgutil
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

BLOCK = 65_536


class HookType(Enum):
    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"
    REPLACE = "replace"


class HookRegistry:
    hooks: ClassVar[list[tuple[str, Callable[..., Any]]]] = []

    @classmethod
    def register(
        cls,
        target: str,
        hook: Callable[..., Any],
        hook_type: HookType = HookType.AFTER,
        *,
        source: Any = None,
    ) -> None:
        assert hook_type is HookType.AROUND
        cls.hooks.append((target, hook))

    @classmethod
    def apply_hooks(cls) -> None:
        for target, hook in cls.hooks:
            place, _, name = target.rpartition(".")
            owner = pkgutil.resolve_name(place)
            setattr(owner, name, _around(getattr(owner, name), hook))
        cls.hooks.clear()


def _around(original: Callable[..., Any], hook: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return hook(original, *arguments, **named)

    return wrapper


class MooncakeTransferEngine:
    def __init__(self, hostname: str, gpu_id: int | None = None, ib_device: str | None = None) -> None:
        from mooncake.engine import TransferEngine  # noqa: PLC0415 - there it is done here

        self.engine = TransferEngine()
        self.engine.initialize(hostname, "P2PHANDSHAKE", "tcp", "")
        self.session_id = f"{hostname}:{self.engine.get_rpc_port()}"

    def batch_transfer_sync(
        self, session_id: str, buffers: list[int], peer_buffer_addresses: list[int], lengths: list[int]
    ) -> int:
        try:
            result = int(
                self.engine.batch_transfer_sync_write(session_id, buffers, peer_buffer_addresses, lengths)
            )
        except Exception:  # noqa: BLE001 - as SGLang does
            result = -1
        return result


class NixlKVManager:
    def __init__(
        self, args: Any, disaggregation_mode: Any, server_args: Any, is_mla_backend: bool | None = False
    ) -> None:
        from nixl._api import nixl_agent, nixl_agent_config  # noqa: PLC0415 - there it is done here

        self.agent = nixl_agent("a-uuid", nixl_agent_config(backends=[]))
        self.agent.create_backend("UCX", {"num_threads": "8"})
        self.source = self._prep_xfer_dlist("", 64)
        self.targets: dict[str, Any] = {}

    def _prep_xfer_dlist(self, peer_name: str, count: int) -> Any:
        runs = np.array([[4096, BLOCK, 0, BLOCK, count]], dtype=np.uint64)
        return self.agent.prep_xfer_dlist(peer_name, runs, "VRAM")

    def _add_remote_peer(self, decode_kv_args: Any) -> None:
        self.agent.add_remote_agent(decode_kv_args.agent_metadata)
        self.targets[decode_kv_args.agent_name] = self._prep_xfer_dlist(decode_kv_args.agent_name, 64)

    def _send_kvcache_generic(self, peer_name: str, blocks: int) -> Any:
        ids = np.arange(blocks, dtype=np.int32)
        handle = self.agent.make_prepped_xfer("WRITE", self.source, ids, self.targets[peer_name], ids)
        assert self.agent.transfer(handle) != "ERR"
        return handle


def decode_peer(name: str, endpoint: str) -> Any:
    """What a decode host registers with: as much of ``KVArgsRegisterInfo`` as is looked at."""
    return SimpleNamespace(agent_name=name, endpoint=endpoint, agent_metadata=name.encode())
