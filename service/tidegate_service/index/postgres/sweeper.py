"""Ending sessions that are silent in the middle of what they send or are sent.

An instance that stops between two messages of a pipeline, within a COPY, or while it is sent rows,
keeps its transaction and its row locks: for Postgres the session is at work, so that neither
`idle_in_transaction_session_timeout` nor `statement_timeout` counts. `transaction_timeout` (from
Postgres 17 on) ends the first of these, and not the other two. So every instance looks for such
sessions of its own kind, and ends them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tidegate_service.core.errors import ServiceError
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.postgres.engine import APPLICATION_NAME

INTERVAL_S = 4.0
TIMES_SILENT = 5
"""A session is ended that was found silent, and no further, so many times in a row: after more
than any statement may take, and so many of this instance's own, that one which was itself stopped
does not take its own silence for another's."""
ANSWER_S = 20.0

# What it sends or is sent is not counted, but for the bytes of a COPY.
_SILENT = """
    SELECT session.pid, session.backend_start, session.query_start, session.state_change,
        coalesce(copied.bytes_processed, 0) AS copied
    FROM pg_stat_activity AS session
    LEFT JOIN pg_stat_progress_copy AS copied ON copied.pid = session.pid
    WHERE session.datname = current_database()
        AND session.usename = current_user
        AND session.application_name = :application_name
        AND session.backend_type = 'client backend'
        AND session.state = 'active'
        AND session.wait_event_type = 'Client'
        AND session.xact_start IS NOT NULL
"""
_FIND = text(_SILENT)
_END = text(f"""
    SELECT pg_terminate_backend(silent.pid)
    FROM ({_SILENT}) AS silent
    WHERE silent.pid = :pid AND silent.backend_start = :backend_start
        AND silent.query_start = :query_start AND silent.state_change = :state_change
        AND silent.copied = :copied
""")

logger = logging.getLogger("tidegate.index")


class _Silent(NamedTuple):
    """A session that waits for its client, and how far it had come."""

    pid: int
    backend_start: datetime
    query_start: datetime
    state_change: datetime
    copied: int


class Sweeper:
    """One instance's looks."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._connections = Connections(engine, answer_timeout_s=ANSWER_S)
        self._seen: dict[_Silent, int] = {}

    async def sweep(self) -> int:
        """Look once; how many sessions were ended. Raises `IndexUnavailable`."""
        found = await self._connections.read(_silent)
        self._seen = {one: self._seen.get(one, 0) + 1 for one in found}
        ended = 0
        for one in [one for one, times in self._seen.items() if times >= TIMES_SILENT]:
            if await self._connections.read(partial(_end, one=one)):
                ended += 1
                logger.warning(
                    "a session that was silent in the middle of a transaction was ended",
                    extra={"pid": one.pid, "since": one.state_change.isoformat()},
                )
        return ended

    async def run_on(self, interval_s: float) -> None:
        """One query after another, for ever: an error of one is logged, and met again."""
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self.sweep()
            except ServiceError as error:
                logger.warning("looking for silent sessions failed", extra={"reason": error.detail})
            except Exception:
                logger.exception("looking for silent sessions met a defect")


@asynccontextmanager
async def sweeping(engine: AsyncEngine, *, interval_s: float = INTERVAL_S) -> AsyncIterator[None]:
    """Within it, silent sessions are looked for."""
    task = asyncio.create_task(Sweeper(engine).run_on(interval_s), name="sweeper")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _silent(connection: AsyncConnection) -> list[_Silent]:
    rows = await connection.execute(_FIND, {"application_name": APPLICATION_NAME})
    return [_Silent(*row) for row in rows]


async def _end(connection: AsyncConnection, *, one: _Silent) -> bool:
    """False where it has gone on, or is gone, since it was looked at."""
    values = {"application_name": APPLICATION_NAME, **one._asdict()}
    return (await connection.execute(_END, values)).scalar_one_or_none() is True
