"""The service's log: one JSON object a line on standard error, values escaped."""

import asyncio
import json
import logging
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import lru_cache
from select import PIPE_BUF
from typing import TextIO

import msgspec

from tidegate_service.core.observe.correlation import current

# What every record has; anything beyond came by `extra=` and is a field of the event.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_ENCODER = msgspec.json.Encoder()


class JsonFormatter(logging.Formatter):
    """A record as one line of ASCII JSON, so that no value can break or forge a line.

    A record whose message is a msgspec struct is an event with these fields, `event` and the
    ids among them; that is cheap enough for a line per request.
    """

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, msgspec.Struct):
            return _of_struct(record, record.msg)
        event: dict[str, object] = {
            "time": _time(record.created),
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
        return _ascii(event)


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of one turn of the event loop together, when the turn ends.

    What is logged outside of a loop, or is a warning or worse, is written there and then, after
    all that waits; and what waits when the process ends in order, is written at its end. No
    write but that of one long line is longer than a pipe takes whole, so that several processes
    may share one.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._waiting: list[str] = []
        self._length = 0
        self._turn_of: asyncio.AbstractEventLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Called with the handler's lock held."""
        try:
            line = self.format(record) + self.terminator
            if self._length + len(line) > PIPE_BUF:
                self._write()
            self._waiting.append(line)
            self._length += len(line)
            loop = _loop()
            if loop is None or record.levelno >= logging.WARNING:
                self._write()
            elif loop is not self._turn_of:
                self._turn_of = loop
                loop.call_soon(self._end_turn)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        with self.lock or nullcontext():
            self._write()

    def _end_turn(self) -> None:
        self._turn_of = None
        self.flush()

    def _write(self) -> None:
        if self._waiting:
            text, self._waiting, self._length = "".join(self._waiting), [], 0
            self.stream.write(text)
        self.stream.flush()


QUIETED = ("uvicorn.error", "alembic", "sqlalchemy.engine")
"""Loggers that say at INFO what the edge says once a request, or what nobody needs to know."""


def configure(level: str) -> None:
    """Send everything that is logged in this process to standard error, in this form."""
    handler = LineHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in QUIETED:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _of_struct(record: logging.LogRecord, event: msgspec.Struct) -> str:
    head = f'{{"time":"{_time(record.created)}",{_origin(record.levelname, record.name)}'
    try:
        fields = _ENCODER.encode(event)
    except UnicodeEncodeError:
        # Half a surrogate pair, which is no UTF-8; as an escape, it is JSON.
        fields = _ascii(msgspec.to_builtins(event)).encode("ascii")
    if not fields.isascii():
        fields = _ascii(msgspec.json.decode(fields)).encode("ascii")
    return f"{head},{fields[1:].decode('ascii')}"


def _ascii(event: object) -> str:
    return json.dumps(event, ensure_ascii=True, default=str)


@lru_cache(maxsize=64)
def _origin(level: str, logger: str) -> str:
    return f'"level":{json.dumps(level.lower())},"logger":{json.dumps(logger)}'


def _time(created: float) -> str:
    seconds = int(created)
    return f"{_second(seconds)}.{int((created - seconds) * 1000):03d}+00:00"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
