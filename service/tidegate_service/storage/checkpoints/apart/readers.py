"""What the service has of the processes that read files."""

import atexit
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import BinaryIO

from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.checkpoints.apart.connection import (
    MOMENT_S,
    Connection,
    Garbled,
    Pauses,
)
from tidegate_service.storage.checkpoints.apart.messages import (
    Asked,
    Begin,
    Content,
    Ended,
    Failed,
    Ready,
    Refused,
    Rows,
)
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge

logger = logging.getLogger("tidegate.service")

SILENCE_S = 90.0
"""A reader that works tells something every few milliseconds."""
STARTED_S = 20.0
FATE_S = 5.0
ASKED_IN_TURN = 16
"""Parts of a file that are read before others have their turn."""
_MODULE = "tidegate_service.storage.checkpoints.apart.forking"
_ENVIRONMENT = ("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_MODEST = {
    # NumPy, which Arrow imports, begins a thread for each processor otherwise, and takes memory for
    # each; and a process with threads is not to be forked.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Arrow's own takes a gigabyte at once, which counts whether it is used or not.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
_OF_THE_FILE = frozenset(
    {
        signal.SIGABRT,
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGPROF,
        signal.SIGTRAP,
    }
)
"""Signals that a file makes its reader end by. Others come from outside."""
_MOST_WHY = 4096
"""Characters of what a reader says of its file."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """`fate` tells by which signal it ended, 0 for none; closing it ends the reader."""

    connection: socket.socket
    fate: socket.socket

    def ended_by(self, *, within_s: float) -> Pauses[int | None]:
        """None where nobody tells."""
        self.fate.settimeout(MOMENT_S)
        until_s = time.monotonic() + within_s
        while time.monotonic() < until_s:
            try:
                return next(iter(self.fate.recv(1)), None)
            except TimeoutError:
                yield ()
            except OSError:
                break
        return None


class ReaderProcesses:
    """Begins a process for each file. The one that they are forked from is started with the first
    file, and ends with the service."""

    def __init__(
        self,
        *,
        started_s: float = STARTED_S,
        silence_s: float = SILENCE_S,
        fate_s: float = FATE_S,
    ) -> None:
        self._started_s = started_s
        self._silence_s = silence_s
        self._fate_s = fate_s
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._forking: list[subprocess.Popen[bytes]] = []

    def lines(
        self, file: BinaryIO, name: str, budget: Budget, *, size: int
    ) -> Generator[Sequence[bytes]]:
        """The actions of a Parquet file as lines of a log, some at a time, and none where others
        may go on: also where the reader says nothing. Raises `UnreadableFile`, also for a file at
        which its reader ends, `TooLarge`, and `StorageUnavailable` where there is no reader, or it
        was ended from outside. Blocking, but for a reader no longer than a moment.
        """
        reader = (yield from self._ready()) or (yield from self._ready())
        if reader is None:
            raise StorageUnavailable("no process that reads checkpoints could be started")
        with reader.connection, reader.fate:
            try:
                connection = Connection(reader.connection, silence_s=self._silence_s)
                yield from _told(connection, file, name, budget, size)
            except Garbled as error:
                logger.warning(
                    "the reader of a checkpoint says what none says",
                    extra={"file": name, "error": str(error)},
                )
                raise UnreadableFile(
                    f"{excerpt(name)} cannot be read as Parquet: the process that read it says "
                    "what none says"
                ) from error
            except (EOFError, ConnectionError, TimeoutError) as error:
                ended_by = yield from reader.ended_by(within_s=self._fate_s)
                logger.warning(
                    "the reader of a checkpoint ended", extra={"file": name, "signal": ended_by}
                )
                if ended_by in _OF_THE_FILE:
                    raise UnreadableFile(
                        f"{excerpt(name)} cannot be read as Parquet: the process that read it "
                        f"ended ({signal.Signals(ended_by).name})"
                    ) from error
                raise StorageUnavailable(
                    "the process that read a checkpoint was ended; it can be tried again"
                ) from error

    def leave(self) -> None:
        """End the process that readers are forked from once these have ended. The next file has
        another one started."""
        self._let_go(self._control)

    def end(self) -> None:
        """The same, and at once."""
        self.leave()
        for process in self._forking:
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                # With its readers, which are of its group.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _ready(self) -> Pauses[_Reader | None]:
        """A reader that is ready; None where none could be started."""
        control: socket.socket | None = None
        with ExitStack() as sockets:
            try:
                ours, theirs = map(sockets.enter_context, socket.socketpair())
                fate, told = map(sockets.enter_context, socket.socketpair())
                control = self._fork(theirs, told)
                theirs.close()
                told.close()
                connection = Connection(ours, silence_s=self._started_s)
                if not isinstance((yield from connection.receive()), Ready):
                    raise Garbled("it is not ready")
            except (EOFError, OSError, Garbled) as error:
                logger.warning("no reader of checkpoints", extra={"error": str(error)})
                self._let_go(control)
                return None
            sockets.pop_all()
        return _Reader(ours, fate)

    def _fork(self, connection: socket.socket, fate: socket.socket) -> socket.socket:
        """Have a reader forked. Returns the socket by which that was asked for."""
        with self._lock:
            running = [each for each in self._forking if each.poll() is None]
            if self._control is not None and self._forking[-1] not in running:
                # It was ended, and nobody has noticed yet.
                self._control.close()
                self._control = None
            self._forking = running
            if self._control is None:
                process, self._control = _started()
                self._forking.append(process)
            control = self._control
            try:
                socket.send_fds(control, [b"f"], [connection.fileno(), fate.fileno()])
            except OSError:
                control.close()
                self._control = None
                raise
            return control

    def _let_go(self, control: socket.socket | None) -> None:
        """Have another process started, unless somebody has by now."""
        with self._lock:
            if control is None or control is not self._control:
                return
            self._control = None
        with control, suppress(OSError):
            # Also where another process has a copy of it.
            control.shutdown(socket.SHUT_RDWR)


PROCESSES = ReaderProcesses()
atexit.register(PROCESSES.end)


def _told(
    connection: Connection, file: BinaryIO, name: str, budget: Budget, size: int
) -> Pauses[None]:
    yield from connection.send(Begin(name, size, budget.left, budget.limits))
    asked = owed = 0
    while True:
        match (yield from connection.receive()):
            case Asked(offset, count):
                part = _part(file, name, offset, count)
                with suppress(BrokenPipeError, ConnectionResetError):
                    # Why it has gone, it may have said before.
                    yield from connection.send(Content(part))
                asked += 1
                if asked % ASKED_IN_TURN == 0:
                    yield ()
            case Rows(lines, taken):
                budget.take(taken)
                # What it takes is told before it comes.
                owed += taken - sum(map(len, lines))
                if owed < 0:
                    raise Garbled("more rows than it took of the budget")
                yield lines
            case Ended(taken):
                budget.take(taken)
                return
            case Refused(why, is_too_large, taken):
                budget.left -= taken
                raise (TooLarge if is_too_large else UnreadableFile)(why[:_MOST_WHY])
            case Failed(why):
                raise RuntimeError(f"a reader of checkpoints failed: {why[:_MOST_WHY]}")
            case Ready():
                raise Garbled("it begins again")


def _started() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A new process, and the connection that it ends with."""
    ours, theirs = socket.socketpair()
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, paths))
    try:
        with theirs:
            process = subprocess.Popen(
                # Nothing of the folder that the service runs in is imported.
                [sys.executable, "-P", "-m", _MODULE],
                cwd="/",
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # What Arrow prints where it ends is no line of the service's log.
                stderr=subprocess.DEVNULL,
                env=environment | _MODEST,
                # A terminal's interrupt is the service's: it may yet read on for a moment.
                process_group=0,
            )
    except BaseException:
        ours.close()
        raise
    ours.settimeout(STARTED_S)
    return process, ours


def _part(file: BinaryIO, name: str, offset: int, size: int) -> bytes:
    try:
        file.seek(offset)
        return file.read(size)
    except OSError as error:
        raise UnreadableFile(
            f"{excerpt(name)} cannot be read as Parquet: {excerpt(str(error))}"
        ) from error
