"""The library that ``ark run`` puts in front of some calls of an unmodified program.

Small C, one concept a file: ``tcp.c``, ``verbs.c`` and ``devx.c`` are the calls; ``choice.c`` says which path
a connection takes; ``agent.c``, ``messages.c`` and ``msgpack.c`` speak the local API. The package's build
compiles it; without a compiler only this is missing. Imports nothing of ARK.
"""

from ark.integrations.preload.build import LIBRARY, VERBS_LIBRARY, NotBuiltError, build

__all__ = ["LIBRARY", "VERBS_LIBRARY", "NotBuiltError", "build"]
