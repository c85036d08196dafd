"""What the process does that reads one file.

A reader that hangs ends itself, and one that would take too much memory is told so by the system.
"""

import io
import os
import resource
import signal
import socket
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.checkpoints import portions
from tidegate_service.storage.checkpoints.apart.messages import (
    MOST_ASKED,
    Asked,
    Begin,
    Content,
    Ended,
    Failed,
    Ready,
    Refused,
    Rows,
    receive,
    send,
)
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.footer import MAX_FOOTER_BYTES
from tidegate_service.storage.checkpoints.parquet import parquet_batches

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

NICENESS = 10
"""Commits come first."""
LONGEST_S = 20
"""Of the processor between two messages: they take milliseconds."""
QUIET_S = 0.005
"""So long the service hears nothing: the thread that waits for it is one of few."""

LINES = 2
"""Times as long as a log's line may be, a row may become: what a line of a log was may be written
at more length."""

_BEHIND_FOOTER = 8
"""Its length and four letters."""
_BEGIN = msgspec.msgpack.Decoder(Begin)
_CONTENT = msgspec.msgpack.Decoder(Content)


def serve(connection: socket.socket) -> None:
    """Read the file that the other side of the connection has."""
    service = _Service(connection)
    try:
        _be_modest()
        service.send(Ready())
        begin = receive(connection, _BEGIN)
        _bound_memory(begin.limits.memory_bytes)
        service.send(_read(service, begin))
    except (EOFError, OSError):
        pass  # Whoever asked has left.
    except MemoryError:
        os.abort()  # There is none left to say so.
    except Exception:
        service.send(Failed(traceback.format_exc()))


def _be_modest() -> None:
    os.nice(NICENESS)
    # What is short of memory is ended before the service, and before Postgres beside it.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})


def _bound_memory(most: int) -> None:
    """Allow so many bytes more than the process has already."""
    try:
        # Pages of data and stack.
        has = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except (OSError, IndexError):
        has = 0
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bound = has + most
    if hard != resource.RLIM_INFINITY:
        bound = min(bound, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))


def _read(service: "_Service", begin: Begin) -> Ended | Refused | Failed:
    budget = Budget(begin.limits, left=begin.left)
    left, told_s = begin.left, time.monotonic()
    try:
        file = io.BufferedReader(_File(service, begin.size))
        for batch in parquet_batches(file, begin.name, budget):
            lines = [action.raw for action in batch or ()]
            budget.take(sum(map(len, lines)))
            _check_lines(lines, LINES * begin.limits.line_bytes)
            for some in portions.of_objects(lines, len, begin.limits.rows):
                service.send(Rows(some, left - budget.left))
                left, told_s = budget.left, time.monotonic()
            if time.monotonic() - told_s > QUIET_S:
                service.send(Rows([], left - budget.left))
                left, told_s = budget.left, time.monotonic()
    except TooLarge as error:
        return Refused(str(error), is_too_large=True, taken=left - budget.left)
    except UnreadableFile as error:
        return Refused(str(error), is_too_large=False, taken=left - budget.left)
    except MemoryError:
        most = begin.limits.memory_bytes
        why = f"it takes more than {most} bytes of memory"
        return Refused(why, is_too_large=True, taken=left - budget.left)
    except (EOFError, OSError):
        raise
    except Exception:
        return Failed(traceback.format_exc())
    return Ended(left - budget.left)


def _check_lines(lines: Sequence[bytes], most: int) -> None:
    longest = max(map(len, lines), default=0)
    if longest > most:
        raise TooLarge(
            f"a row of it has {longest} bytes as a line of a log; at most {most} are read"
        )


class _Service:
    """The service, which may take its time: only the reader's own work is bounded."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, message: msgspec.Struct) -> None:
        send(self._connection, message)
        # Time of the processor: what waits for others may wait.
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)

    def ask(self, offset: int, size: int) -> bytes:
        self.send(Asked(offset, size))
        return receive(self._connection, _CONTENT).data


class _File(io.RawIOBase):
    """The file that is read, which the service has. Its footer is read once: what is checked is
    what Arrow sees, though somebody changes the file meanwhile."""

    def __init__(self, service: _Service, size: int) -> None:
        self._service = service
        self._size = size
        self._at = 0
        self._held_from = size
        self._held = b""
        self._hold(_BEHIND_FOOTER)
        footer = int.from_bytes(self._held[:4], "little")
        if footer <= MAX_FOOTER_BYTES:
            self._hold(footer)

    def _hold(self, size: int) -> None:
        """Keep so many more bytes of the file's end."""
        end = self._held_from
        parts = []
        self._at = start = max(end - size, 0)
        while self._at < end and (data := self.read(min(end - self._at, MOST_ASKED))):
            parts.append(data)
        if self._at < end:
            raise UnreadableFile("the file became shorter while it was read")
        self._held_from, self._held = start, b"".join(parts) + self._held
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("a place before the file")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: "WriteableBuffer") -> int:
        into = memoryview(buffer)
        if self._at < self._held_from:
            size = min(len(into), MOST_ASKED, self._held_from - self._at)
            data = self._service.ask(self._at, size)
        else:
            start = self._at - self._held_from
            data = self._held[start : start + len(into)]
        into[: len(data)] = data
        self._at += len(data)
        return len(data)
