"""Taking connections from the pool and giving them back, whatever happened to them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import QueuePool

from tidegate_service.core.errors import IndexUnavailable, ServiceError, root_cause
from tidegate_service.core.ports.gauges import PoolUse
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.failures import translated
from tidegate_service.index.postgres.pipeline import Driver

T = TypeVar("T")

ONE_MOMENT = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
"""Has all statements of a transaction, which it begins, read one snapshot."""
_ROLLBACK_TIMEOUT_S = 5.0
_CANCEL_TIMEOUT_S = 2.0

logger = logging.getLogger("tidegate.index")


class Connections:
    """The index's way to its database; raises the service's errors (`failures.translated`).

    `answer_timeout_s` ends the wait for a database that went silent; a living one ends
    statements by its own timeouts, which are shorter. A read whose caller has left ends within
    `read_on_s`, as nearly every query does. One that is cut off costs two connections: the one by
    which the server is told, and a new one for the pool.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        answer_timeout_s: float,
        read_on_s: float = 1.0,
    ) -> None:
        self._engine = engine
        self._read_on_s = read_on_s
        self.answer_timeout_s = answer_timeout_s

    async def read(self, query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """The result of a query on a connection of its own. Whoever is cancelled leaves at once;
        the query then has `read_on_s` to end."""
        reading = asyncio.create_task(self._read(query), name="index-read")
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(self._read_on_s, reading.cancel)
            reading.add_done_callback(_leave)
            raise

    async def write(self, change: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """The result of a change, committed. It may have happened where this raises
        `IndexUnavailable`, so it has to be one that can be made twice."""
        connection, result = await self.begin(change)
        broken = True
        try:
            with translated():
                async with asyncio.timeout(self.answer_timeout_s):
                    # The driver's own: a change may have gone past SQLAlchemy, which then knows of
                    # no transaction and would commit nothing.
                    await pipeline.commit(await driver_of(connection))
            broken = False
        finally:
            await give_back(connection, broken=broken)
        return result

    async def read_replicated(self, query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """The result of a query, told when the synchronous standby, where there is one, has all
        that the query saw. For that the query writes `standby.SEEN`, where it found anything."""
        connection, result = await self.begin(query)
        broken = True
        try:
            driver = await driver_of(connection)
            try:
                async with asyncio.timeout(self.answer_timeout_s):
                    await pipeline.commit(driver)
            except (TimeoutError, asyncio.CancelledError):
                # It would wait on by itself, and the next try's beside it, as long as the standby
                # is away. Nobody misses what it wrote.
                await asyncio.shield(asyncio.create_task(_cancel(driver)))
                raise
            broken = False
        except (psycopg.Error, TimeoutError, OSError) as error:
            raise IndexUnavailable(
                "the index database did not say that its synchronous standby, where it has one, "
                "has what was read"
            ) from error
        finally:
            await give_back(connection, broken=broken)
        return result

    async def begin(
        self, first: Callable[[AsyncConnection], Awaitable[T]]
    ) -> tuple[AsyncConnection, T]:
        """A connection within a transaction that began with `first`, and what that returned.
        The caller gives it back.

        A connection that turns out to have died in the pool is replaced, once: nothing has
        been done on it, and the pool drops all that are as old.
        """
        with translated():
            try:
                return await self._begin(first)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            return await self._begin(first)

    def pool_use(self) -> PoolUse:
        """How the pool stands."""
        pool = self._engine.pool
        if not isinstance(pool, QueuePool):
            raise TypeError(f"expected a pool of a bounded size, found {type(pool).__name__}")
        return PoolUse(
            size=pool.size(),
            # Below zero while fewer than `size` have been made.
            overflow=max(0, pool.overflow()),
            in_use=pool.checkedout(),
            idle=pool.checkedin(),
        )

    async def _read(self, query: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        connection, result = await self.begin(query)
        await give_back(connection, broken=False)
        return result

    async def _begin(
        self, first: Callable[[AsyncConnection], Awaitable[T]]
    ) -> tuple[AsyncConnection, T]:
        # A new connection asks the server a few things, and it may be silent then already.
        async with asyncio.timeout(self.answer_timeout_s):
            connection = await self._engine.connect()
        try:
            async with asyncio.timeout(self.answer_timeout_s):
                try:
                    return connection, await first(connection)
                except psycopg.OperationalError:
                    # From the driver itself. A connection that was lost is lost to SQLAlchemy,
                    # too, which then drops all that are as old.
                    if (await driver_of(connection)).closed:
                        await connection.execute(text("SELECT 1"))
                    raise
        except ServiceError:
            # An answer, not a failure: the statements themselves went well.
            await give_back(connection, broken=False)
            raise
        except BaseException:
            await give_back(connection, broken=True)
            raise


async def driver_of(connection: AsyncConnection) -> Driver:
    """The driver's own connection, for what goes past SQLAlchemy."""
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, psycopg.AsyncConnection)
    return driver


async def give_back(connection: AsyncConnection, *, broken: bool) -> None:
    """Roll back what is not committed and return the connection to the pool, or close it where
    it is broken; also while the caller is being cancelled."""
    await asyncio.shield(asyncio.create_task(_close(connection, broken=broken)))


async def _cancel(driver: Driver) -> None:
    """Have the server end what the session does, where that can be told to it."""
    with suppress(psycopg.Error, OSError):
        await driver.cancel_safe(timeout=_CANCEL_TIMEOUT_S)


def _leave(reading: asyncio.Task[T]) -> None:
    """Nobody is left to be told how it failed."""
    if not reading.cancelled():
        reading.exception()


async def _close(connection: AsyncConnection, *, broken: bool) -> None:
    try:
        if broken:
            await connection.invalidate()
        async with asyncio.timeout(_ROLLBACK_TIMEOUT_S):
            try:
                await connection.close()
            except DBAPIError as error:
                # Its transaction has ended already, as a rollback would have it, and what was
                # answered before stands. The session is of no use any more.
                logger.warning(
                    "a database session had ended before its rollback",
                    extra={"reason": root_cause(error)},
                )
                if not connection.closed:
                    await connection.invalidate()
                    await connection.close()
    except TimeoutError:
        # The pool has dropped the connection; what was done on it is known by then.
        logger.warning("a database connection was closed: its rollback got no answer")
