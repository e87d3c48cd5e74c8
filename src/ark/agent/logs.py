"""Structured logs: one JSON object a line on standard error, by the standard library's logging."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

LOGGER: Final = logging.getLogger("ark.agent")


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line |= fields
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def start_logging(level: str) -> None:
    """Write our records from ``level`` on to standard error."""
    LOGGER.handlers.clear()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    LOGGER.addHandler(handler)
    LOGGER.propagate = False
    LOGGER.setLevel(level.upper())


def log(level: int, event: str, **fields: object) -> None:
    """Write one event with its fields."""
    LOGGER.log(level, event, extra={"fields": fields})
