"""What an application calls: a path for each transfer, lanes for connections made ahead.

Light: standard library, msgspec and ``ark.errors`` only. Whatever happens to the agent, a transfer goes on;
at worst there is no preference for a path, as if ARK were not there.
"""

import threading
from typing import TYPE_CHECKING

from ark.client.blocking import Client, LaneSet, Transfer
from ark.client.messages import Lane

if TYPE_CHECKING:
    from ark.client.aio import AsyncClient

__all__ = ["AsyncClient", "Client", "Lane", "LaneSet", "Transfer", "default_client", "lanes", "transfer"]

_made = threading.Lock()
_default: Client | None = None


def default_client() -> Client:
    """The client that ``ark.transfer`` and ``ark.lanes`` use: one a process, made when first needed."""
    global _default  # noqa: PLW0603 - there is one agent a host, and so one client a process
    with _made:
        if _default is None:
            _default = Client()
        return _default


def transfer(
    dst: str,
    nbytes: int,
    *,
    dport: int,
    proto: str = "udp",
    src: str | None = None,
    nic: str | int | None = None,
    ahead: bool = False,
) -> Transfer:
    """Reserve a path for a transfer of ``nbytes`` to ``dst``; see ``Client.transfer``.

    Examples
    --------
    >>> with ark.transfer("h8", 4 << 30, dport=4791) as path:  # doctest: +SKIP
    ...     send(source_port=path.source_port)
    """
    return default_client().transfer(dst, nbytes, dport=dport, proto=proto, src=src, nic=nic, ahead=ahead)


def lanes(
    dst: str, dport: int, *, proto: str = "udp", src: str | None = None, nic: str | int | None = None
) -> LaneSet:
    """One source port for each path to ``dst``, for connections made ahead; see ``Client.lanes``."""
    return default_client().lanes(dst, dport, proto=proto, src=src, nic=nic)


def __getattr__(name: str) -> object:
    if name == "AsyncClient":
        from ark.client.aio import AsyncClient  # noqa: PLC0415 - applications without asyncio don't load it

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
