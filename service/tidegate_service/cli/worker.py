"""One of the processes of `tidegate serve --workers N`: what it runs, and what it tells its parent.

It ends when its parent says so (SIGTERM), and by itself once that is gone. A terminal's SIGINT is
for the parent alone, which passes it on.
"""

import asyncio
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

import uvloop

from tidegate_service import app, logs
from tidegate_service.cli.collecting import spare_startup_objects
from tidegate_service.database import CannotStart
from tidegate_service.settings import Settings
from tidegate_service.telemetry.peers import Peers


@dataclass(frozen=True, slots=True)
class Ready:
    """It does its work."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It cannot start, and ends; the message says why."""

    message: str


@dataclass(frozen=True, slots=True)
class Hurry:
    """The parent's only word: wait for nothing that is under way."""


Word = Ready | Failed | Hurry


def tell(pipe: Connection, word: Word) -> None:
    """Say it, if anybody listens."""
    with suppress(OSError):
        pipe.send(word)


def told(pipe: Connection) -> Word | None:
    """What was said; None where the other end is gone. Blocks until one of them is so."""
    try:
        word: Word = pipe.recv()
    except (EOFError, OSError):
        return None
    return word


def serve(settings: Settings, pipe: Connection, peers: Peers, listener: socket.socket) -> None:
    """The body of a process that serves on a socket it shares."""
    _run(settings, pipe, _serve(settings, pipe, peers, listener))


def publish(settings: Settings, pipe: Connection, peers: Peers) -> None:
    """The body of the process that publishes for all."""
    _run(settings, pipe, _publish(settings, pipe, peers))


class _Stoppable(Protocol):
    def stop(self) -> None: ...


class _Stopping:
    """What SIGTERM does, and the parent's end: before there is anything to stop, the start is
    cancelled. Said twice it is the same, since a whole group of processes may be told at once;
    only the parent knows when its user has lost patience."""

    def __init__(self, pipe: Connection) -> None:
        loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._running: _Stoppable | None = None
        self._stopped = False
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_reader(pipe.fileno(), self._said, loop, pipe)

    def attend(self, running: _Stoppable) -> None:
        self._running = running

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._running is not None:
            self._running.stop()
        elif self._main is not None:
            self._main.cancel()

    def _said(self, loop: asyncio.AbstractEventLoop, pipe: Connection) -> None:
        hurry = told(pipe) is not None
        if not hurry:
            loop.remove_reader(pipe.fileno())
        self.stop()
        if hurry and self._running is not None:
            self._running.stop()


class _Told:
    """Waits to be told to stop."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def stop(self) -> None:
        self.event.set()


def _run(settings: Settings, pipe: Connection, body: Coroutine[None, None, None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure(settings.log_level)
    try:
        uvloop.run(body)
    except CannotStart as error:
        tell(pipe, Failed(str(error)))
        raise SystemExit(1) from None
    except asyncio.CancelledError:
        raise SystemExit(1) from None


async def _serve(
    settings: Settings, pipe: Connection, peers: Peers, listener: socket.socket
) -> None:
    stopping = _Stopping(pipe)

    def started(_: socket.socket) -> None:
        spare_startup_objects()
        tell(pipe, Ready())

    await app.serve(
        settings,
        listener,
        on_started=started,
        on_server=stopping.attend,
        among=peers,
    )


async def _publish(settings: Settings, pipe: Connection, peers: Peers) -> None:
    stopping = _Stopping(pipe)
    async with app.open_publisher(settings, among=peers):
        told = _Told()
        stopping.attend(told)
        tell(pipe, Ready())
        await told.event.wait()
