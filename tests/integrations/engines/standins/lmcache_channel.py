"""Stands in for ``lmcache.v1.transfer_channel``: its factory, and a NIXL channel that polls."""

from typing import Any

PAGE = 1 << 20


class NixlChannel:
    def __init__(self, async_mode: bool = False, device: str | None = None, **kwargs: Any) -> None:
        from nixl._api import nixl_agent, nixl_agent_config  # noqa: PLC0415 - there it is done here

        self.nixl_agent = nixl_agent("a-uuid", nixl_agent_config(backends=kwargs["backends"]))
        pages = [(start, PAGE, 0) for start in range(0, 64 * PAGE, PAGE)]
        self.pages = self.nixl_agent.get_xfer_descs(pages, mem_type="VRAM")
        self.handler = self.nixl_agent.prep_xfer_dlist("", self.pages, mem_type="VRAM")
        self.remote_xfer_handlers_dict: dict[str, Any] = {}
        self.polled: list[str] = []

    def lazy_init_peer_connection(
        self, local_id: str, peer_id: str, peer_init_url: str, init_side_msg: Any = None
    ) -> None:
        name = self.nixl_agent.add_remote_agent(peer_id.encode())
        self.remote_xfer_handlers_dict[peer_id] = self.nixl_agent.prep_xfer_dlist(name, self.pages)

    async def async_lazy_init_peer_connection(
        self, local_id: str, peer_id: str, peer_init_url: str, init_side_msg: Any = None
    ) -> None:
        self.lazy_init_peer_connection(local_id, peer_id, peer_init_url, init_side_msg)

    def batched_write(self, objects: list[int], transfer_spec: dict[str, Any] | None = None) -> int:
        return self._move("WRITE", objects, "receiver_id", transfer_spec or {})

    def batched_read(self, buffers: list[int], transfer_spec: dict[str, Any] | None = None) -> int:
        return self._move("READ", buffers, "sender_id", transfer_spec or {})

    def _move(self, operation: str, pages: list[int], peer: str, transfer_spec: dict[str, Any]) -> int:
        handle = self.nixl_agent.make_prepped_xfer(
            operation,
            self.handler,
            pages,
            self.remote_xfer_handlers_dict[transfer_spec[peer]],
            transfer_spec["remote_indexes"],
        )
        self.nixl_agent.transfer(handle)
        while True:
            status = self.nixl_agent.check_xfer_state(handle)
            if status == "ERR":
                raise RuntimeError("Failed to send objects to remote peer")
            if status == "DONE":
                return len(pages)


def CreateTransferChannel(  # noqa: N802 - LMCache's name
    channel_type: str,
    async_mode: bool,
    role: str,
    buffer_ptr: int,
    buffer_size: int,
    align_bytes: int,
    tp_rank: int,
    peer_init_url: str,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    if channel_type != "nixl":
        return "another channel"
    return NixlChannel(async_mode=async_mode, device=device, role=role, **kwargs)
