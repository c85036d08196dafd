"""The database that an instance uses: one that was named, or an embedded one that it runs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tidegate_service.index.embedded.account import EmbeddedPostgresError
from tidegate_service.index.embedded.server import EmbeddedPostgres

logger = logging.getLogger("tidegate.service")

POSTGRES_STOP_S = 2.5
_WATCH_S = 0.5


@asynccontextmanager
async def embedded(data_dir: Path) -> AsyncIterator[str]:
    """The URL of an embedded server, which runs meanwhile. Raises `EmbeddedPostgresError`."""
    server = EmbeddedPostgres(data_dir)
    watching: asyncio.Task[None] | None = None
    try:
        url = await asyncio.to_thread(server.start)
        watching = asyncio.create_task(_supervise(server), name="embedded-postgres")
        yield url
    finally:
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        # Also of a start that was cancelled half-way.
        await asyncio.to_thread(server.stop, timeout_s=POSTGRES_STOP_S)


async def _supervise(server: EmbeddedPostgres) -> None:
    """Nobody else would start an embedded server that died; requests get 503 until it is back."""
    while True:
        await asyncio.sleep(_WATCH_S)
        if not server.running:
            logger.error("the embedded Postgres has ended and is started again")
            try:
                await asyncio.to_thread(server.start)
            except EmbeddedPostgresError:
                logger.exception("the embedded Postgres does not start")
