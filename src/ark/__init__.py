"""ARK keeps large KV-cache transfers off each other's links in an ECMP network.

A prefill node knows the size and the destination of a transfer before its first byte leaves. ARK picks the
least loaded path, makes the transfer take it by choosing a source port whose ECMP hash leads there, and
tells its peers. The packages below have one-way imports, from the command at the top to the units at the
bottom; each says in its own docstring what it is for and what it may import.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ark.client import lanes, transfer

__all__ = ["__version__", "lanes", "transfer"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``ark.transfer`` and ``ark.lanes`` are loaded when they are first used."""
    if name in {"transfer", "lanes"}:
        from ark import client  # noqa: PLC0415 - most of what imports ark transfers nothing

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
