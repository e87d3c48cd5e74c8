"""How the choice of a path reaches the wire: TCP, RoCE, the engines that people run, unmodified programs.

May import ``ark.client``, ``ark.fabric`` (in ``roce`` alone, for its formulas), ``ark.kv``, ``ark.units``,
``ark.errors``, and an engine's own packages where they are used. Nothing here decides; the
agent does. Where nothing can be steered, a transfer goes on as it would without ARK, and the reason is said.

What a program calls is here, loaded when first used, or called by its module: ``tcp``, ``roce``, ``lmcache``.
The other modules are what engines load by the name in their configuration, and what these are made of.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ark.integrations.hints import Hints, hinted, model_from
    from ark.integrations.mooncake import SteeredEngine, udp_sports
    from ark.integrations.nixl import steered_agent, steering_for_ucx
    from ark.integrations.sessions import talking_to
    from ark.integrations.tcp_lanes import TcpLanes

__all__ = [
    "Hints",
    "SteeredEngine",
    "TcpLanes",
    "hinted",
    "model_from",
    "steered_agent",
    "steering_for_ucx",
    "talking_to",
    "udp_sports",
]

_MODULES: Final = {
    "Hints": "hints",
    "SteeredEngine": "mooncake",
    "TcpLanes": "tcp_lanes",
    "hinted": "hints",
    "model_from": "hints",
    "steered_agent": "nixl",
    "steering_for_ucx": "nixl",
    "talking_to": "sessions",
    "udp_sports": "mooncake",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"ark.integrations.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
