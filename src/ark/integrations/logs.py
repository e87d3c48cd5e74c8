"""Where the adapters say what people should know: their logger is ``ark.integrations``."""

import logging
from typing import Final

log: Final = logging.getLogger("ark.integrations")
