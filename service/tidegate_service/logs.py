"""The service's log: one JSON object a line on standard error, values escaped."""

import json
import logging
import sys
from datetime import UTC, datetime

from tidegate_service.core.correlation import current

# What every record has; anything beyond came by `extra=` and is a field of the event.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record as one line of ASCII JSON, so that no value can break or forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        ids = current()
        if ids is not None:
            event |= {name: value for name, value in ids.fields().items() if value is not None}
        for name, value in vars(record).items():
            if name not in _STANDARD and value is not None:
                event[name] = value
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=True, default=str)


QUIETED = ("uvicorn.error", "alembic", "sqlalchemy.engine")
"""Loggers that say at INFO what the edge says once a request, or what nobody needs to know."""


def configure(level: str) -> None:
    """Send everything that is logged in this process to standard error, in this form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in QUIETED:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
