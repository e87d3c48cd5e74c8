"""Which side of vLLM's prefill and decode sends."""

from typing import Any


def sends(vllm_config: Any) -> bool:
    """Whether a process of this configuration may send KV caches: all but those that only consume them."""
    return bool(vllm_config.kv_transfer_config.kv_role != "kv_consumer")
