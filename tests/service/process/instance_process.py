"""An instance as a process of its own, which can be told to end or stop at a step of a commit.

Runs what `tidegate serve` runs, with fault points composed in that listen to a pipe. Imported
by a fork server (`tests.service.instances`), so that a new instance costs no imports.
"""

import asyncio
import gc
import logging
import os
import signal
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection
from socket import socket

import uvloop

from tidegate_service.api.server.server import Server
from tidegate_service.app import serve
from tidegate_service.cli.collecting import YOUNG
from tidegate_service.core.observe.faults import AnyStep, Side
from tidegate_service.settings import Settings


class Deed(Enum):
    """What an instance does to itself at a step."""

    KILL = "end by SIGKILL"
    STOP = "stop by SIGSTOP, until SIGCONT"
    TELL = "go on, having told"


@dataclass(frozen=True, slots=True)
class Arm:
    """Do it at the first passage of this point from now on, once."""

    step: AnyStep
    side: Side
    deed: Deed


@dataclass(frozen=True, slots=True)
class Trace:
    """Tell of every point from now on."""


Point = tuple[AnyStep, Side]


class ListeningFaults:
    """Fault points that are armed through a pipe, and answer on it with what is reached."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._armed: Arm | None = None
        self._tracing = False

    def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._told)

    async def reached(self, step: AnyStep, side: Side) -> None:
        if self._tracing:
            self._pipe.send((step, side))
        armed = self._armed
        if armed is None or (armed.step, armed.side) != (step, side):
            return
        self._armed = None
        match armed.deed:
            case Deed.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Deed.STOP:
                self._pipe.send((step, side))
                os.kill(os.getpid(), signal.SIGSTOP)
            case Deed.TELL:
                self._pipe.send((step, side))

    def _told(self) -> None:
        try:
            told = self._pipe.recv()
        except EOFError:
            # Whoever started this instance is gone, and nobody else would end it.
            os.kill(os.getpid(), signal.SIGKILL)
        if isinstance(told, Arm):
            self._armed = told
        else:
            self._tracing = True
        self._pipe.send(told)


def run(settings: Settings, listener: socket, pipe: Connection) -> None:
    """Serve until SIGTERM; the pipe says "ready" once requests are taken."""
    logging.getLogger("tidegate").setLevel(settings.log_level.upper())
    # As `tidegate serve` does, which collects first: what is here, the fork server has imported.
    gc.freeze()
    gc.set_threshold(YOUNG)
    uvloop.run(_serve(settings, listener, pipe))


async def _serve(settings: Settings, listener: socket, pipe: Connection) -> None:
    faults = ListeningFaults(pipe)
    faults.listen()
    servers: list[Server] = []

    def stop() -> None:
        for server in servers:
            server.stop()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    await serve(
        settings,
        listener,
        on_started=lambda _: pipe.send("ready"),
        on_server=servers.append,
        faults=faults,
    )
