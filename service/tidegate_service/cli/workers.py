"""`tidegate serve --workers N`: a parent that serves nothing itself.

It owns what the processes share (the address, an embedded Postgres), starts N that serve and one
that publishes for them, starts again whatever ends by itself, and passes signals on. Each worker
is an instance like any other, so what they do at once is decided in Postgres; killing one loses
what killing an instance does: nothing that was answered.

They share one listening socket. What waits on it belongs to none of them, so a worker that dies
takes only the connections along that it had accepted.
"""

import asyncio
import logging
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from tidegate_service import app
from tidegate_service.cli import worker
from tidegate_service.cli.worker import Failed, Hurry, Ready, Word
from tidegate_service.database import CannotStart
from tidegate_service.index.embedded.server import MAX_CONNECTIONS
from tidegate_service.settings import Settings
from tidegate_service.telemetry.peers import Peers

logger = logging.getLogger("tidegate.service")

PUBLISHER = "publisher"
PUBLISHER_POOL = 4
USABLE_CONNECTIONS = MAX_CONNECTIONS - 10
"""Some are left for whoever looks after the database, and for commands beside the service."""
RESTART_S = 1.0
STOP_S = 12.0
"""From the first signal: a worker's own time to stop, and a little. An embedded Postgres needs the
rest of the 15 seconds."""
_KILLED_S = 1.0

_forking = multiprocessing.get_context("forkserver")
# One process imports everything, and every worker is a fork of it: up at once, and small.
_forking.set_forkserver_preload(["tidegate_service.cli.worker"])


class _Running:
    """A process and what it says. That it has ended is told by its end of the pipe, which nobody
    else holds: what `multiprocessing` would wait for belongs to the fork server, which a signal to
    the whole group of processes ends first."""

    def __init__(self, process: BaseProcess, pipe: Connection) -> None:
        loop = asyncio.get_running_loop()
        self.process = process
        self.pipe = pipe
        self.first_word: asyncio.Future[Word | None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        loop.add_reader(pipe.fileno(), self._said)

    def _said(self) -> None:
        word = worker.told(self.pipe)
        if not self.first_word.done():
            self.first_word.set_result(word)
        if word is None:
            asyncio.get_running_loop().remove_reader(self.pipe.fileno())
            self.ended.set_result(None)


class Workers:
    """The processes of one service, named `1`, `2` and so on, and `publisher`."""

    def __init__(self, settings: Settings, listener: socket.socket, folder: Path) -> None:
        self._settings = settings
        self._listener = listener
        self._folder = folder
        self._names = [*map(str, range(1, settings.workers + 1)), PUBLISHER]
        self._running: dict[str, _Running] = {}
        self._stop_by: float | None = None
        self._stopping = asyncio.Event()

    async def run(self, on_started: Callable[[], None]) -> None:
        """Keep them running until `stop`; `on_started` is called once all do their work. Raises
        `CannotStart` where one cannot start."""
        try:
            for name in self._names:
                self._fork(name)
            for name in self._names:
                await self._ready(name)
            on_started()
            keeping = [asyncio.create_task(self._keep(name)) for name in self._names]
            await self._stopping.wait()
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
        finally:
            await asyncio.shield(self._end())

    def stop(self) -> None:
        """Begin to stop; a second call ends the wait for what is under way."""
        if self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_S
            self._stopping.set()
            for running in self._running.values():
                running.process.terminate()
        else:
            for running in self._running.values():
                worker.tell(running.pipe, Hurry())

    def _fork(self, name: str) -> None:
        ours, theirs = _forking.Pipe()
        peers = Peers(name=name, folder=self._folder)
        title = f"tidegate-{name}"
        if name == PUBLISHER:
            few = self._settings.model_copy(update={"database_pool_size": PUBLISHER_POOL})
            process = _forking.Process(target=worker.publish, args=(few, theirs, peers), name=title)
        else:
            process = _forking.Process(
                target=worker.serve,
                args=(self._settings, theirs, peers, self._listener),
                name=title,
            )
        process.start()
        theirs.close()
        self._running[name] = _Running(process, ours)

    async def _ready(self, name: str) -> None:
        """Wait until one does its work. Raises `CannotStart`."""
        running = self._running[name]
        await asyncio.wait({running.first_word})
        match running.first_word.result():
            case Ready():
                return
            case Failed(message):
                raise CannotStart(message)
        raise CannotStart(f"the process {running.process.name} ended while it started")

    async def _keep(self, name: str) -> None:
        while True:
            running = self._running[name]
            await asyncio.wait({running.ended})
            running.pipe.close()
            # How it ended is told by the fork server, a moment later.
            await asyncio.to_thread(running.process.join, _KILLED_S)
            code = running.process.exitcode
            logger.error("a worker has ended and is started again", extra=_of(name, exit_code=code))
            await asyncio.sleep(RESTART_S)
            if self._stopping.is_set():
                return
            self._fork(name)
            try:
                await self._ready(name)
            except CannotStart as error:
                logger.error("a worker does not start", extra=_of(name, reason=str(error)))

    async def _end(self) -> None:
        """Wait for all of them; what takes too long is killed."""
        if self._stop_by is None:
            self.stop()
        assert self._stop_by is not None
        ends = {running.ended for running in self._running.values()}
        _, left = await asyncio.wait(ends, timeout=max(0.0, self._stop_by - time.monotonic()))
        for running in self._running.values():
            if running.ended in left:
                logger.error("a worker does not end and is killed")
                running.process.kill()
        if left:
            await asyncio.wait(left, timeout=_KILLED_S)


async def keep(
    settings: Settings,
    listener: socket.socket,
    *,
    on_started: Callable[[socket.socket], None],
    on_workers: Callable[[Workers], None],
) -> None:
    """Serve by several processes on a bound socket until they are told to stop. Once all do their
    work, `on_workers` gets what can be stopped, and `on_started` is called. Raises
    `CannotStart`."""
    # Each has as many again under load.
    connections = 2 * (settings.workers * settings.database_pool_size + PUBLISHER_POOL)
    if settings.database_url is None and connections > USABLE_CONNECTIONS:
        raise CannotStart(
            f"{settings.workers} workers with a database_pool_size of "
            f"{settings.database_pool_size} may use {connections} connections, and the embedded "
            f"Postgres has {USABLE_CONNECTIONS} for them: lower one of the two, or name a database"
        )
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        async with app.prepared(settings) as shared:
            workers = Workers(shared, listener, Path(folder))

            def started() -> None:
                on_workers(workers)
                on_started(listener)

            await workers.run(started)


def _of(name: str, **fields: object) -> dict[str, object]:
    return {"worker": name, **fields}
