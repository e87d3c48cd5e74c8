"""Which engines are to be steered by their plug-in interface: those that ``ARK_STEER`` names.

SGLang and vLLM run the plug-ins of every installed package. ARK's do nothing unless asked.
"""

import os
from collections.abc import Mapping
from typing import Final

STEER: Final = "ARK_STEER"
"""Environment variable: names of engines, ``sglang,lmcache``."""


def wanted(engine: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has asked for this engine to be steered."""
    return engine in {name.strip().lower() for name in environment.get(STEER, "").split(",")}
