"""Transactions of many statements, each of which has its own time: what goes through all that is
known of a table, however much that is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import Connections, driver_of, give_back
from tidegate_service.index.postgres.failures import translated
from tidegate_service.index.reading import reads
from tidegate_service.index.writing.snapshot import take_time

T = TypeVar("T")

Statement = Callable[[], AbstractAsyncContextManager[AsyncConnection]]
"""Gives the connection for one statement, and that statement its time."""


async def in_statements(connections: Connections, work: Callable[[Statement], Awaitable[T]]) -> T:
    """What the work returned, once it is committed. Raises what it raises, rolled back, and
    `IndexUnavailable`, after which it may have been committed."""
    connection, _ = await connections.begin(reads.ping)
    broken = False

    @asynccontextmanager
    async def statement() -> AsyncIterator[AsyncConnection]:
        with translated():
            async with asyncio.timeout(connections.answer_timeout_s):
                await take_time(connection)
                yield connection

    try:
        done = await work(statement)
        async with statement():
            await pipeline.commit(await driver_of(connection))
    except BaseException:
        broken = True
        raise
    finally:
        await give_back(connection, broken=broken)
    return done
