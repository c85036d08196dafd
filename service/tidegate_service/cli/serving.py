"""`tidegate serve` as a process: its socket, its signals, what it prints; and migrating."""

import asyncio
import signal
import socket
from importlib.metadata import version

import typer
import uvloop

from tidegate_service import app
from tidegate_service.api.server.server import Server, bound_socket, url_of
from tidegate_service.cli import workers
from tidegate_service.cli.collecting import spare_startup_objects
from tidegate_service.cli.options import fail
from tidegate_service.cli.workers import Workers
from tidegate_service.database import CannotStart
from tidegate_service.settings import Settings


def serve_until_signalled(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then end within 15 s. Exits with 1 where it cannot start."""
    try:
        # Taken first: a port in use is known before a database is started.
        listener = bound_socket(settings.host, settings.port)
    except OSError as error:
        fail(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}")
    try:
        uvloop.run(_serve(settings, listener))
    except CannotStart as error:
        fail(str(error))
    except asyncio.CancelledError:
        fail("stopped while starting")
    finally:
        listener.close()


def bring_up_to_date(settings: Settings) -> str:
    """Apply the migrations; the revision then. Exits with 1 where that cannot be."""
    try:
        return uvloop.run(app.bring_up_to_date(settings))
    except CannotStart as error:
        fail(str(error))


async def _serve(settings: Settings, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stopping = _Stopping()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.signalled)

    def started(listening: socket.socket) -> None:
        spare_startup_objects()
        typer.echo(_banner(settings, url_of(listening)))

    if settings.workers == 1:
        await app.serve(settings, listener, on_started=started, on_server=stopping.attend)
    else:
        await workers.keep(settings, listener, on_started=started, on_workers=stopping.attend)


class _Stopping:
    """What a signal does: before there is a server, the start is cancelled."""

    def __init__(self) -> None:
        self._starting = asyncio.current_task()
        self._server: Server | Workers | None = None

    def attend(self, server: Server | Workers) -> None:
        self._server = server

    def signalled(self) -> None:
        if self._server is not None:
            self._server.stop()
        elif self._starting is not None:
            self._starting.cancel()


def _banner(settings: Settings, url: str) -> str:
    embedded = f"embedded Postgres in {settings.data_dir / 'postgres'}"
    return "\n".join(
        [
            f"Tidegate {version('tidegate')} is ready at {url}",
            f"  docs       {url}/docs",
            f"  index      {settings.masked_database_url() or embedded}",
            f"  warehouse  {settings.locations().warehouse}",
        ]
    )
