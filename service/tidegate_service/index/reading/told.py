"""Reads whose answers go out to callers, who are told of no head that a standby may lack."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.records import PAGE_BYTES, Glance, TableHead, TableRecord
from tidegate_service.core.ports.told import HeadsOnStandby
from tidegate_service.index.postgres.batching import Batching
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.postgres.standby import HAS_STANDBY, WAIT_FOR_STANDBY
from tidegate_service.index.reading import lookup, reads
from tidegate_service.index.reading.listed import tables_page

T = TypeVar("T")


class StandbyWaits:
    """Waits of an instance's readers for the standby, of all that wait in one transaction.

    While the standby is away they hold a single connection together, and the server a single
    session.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._batching = Batching(self._wait, apart_s=0.0)

    async def has_all_of(self, database: str) -> None:
        """Return when the standby has all that was to be read from `database` before. Raises
        `IndexUnavailable` where it does not say so, and where another database is there now."""
        if await self._batching.ask(database):
            return
        raise IndexUnavailable(
            "what was read is from another database than the one that is there now; ask again"
        )

    async def _wait(self, databases: Sequence[str]) -> Sequence[bool]:
        async def wait(connection: AsyncConnection) -> str:
            await connection.execute(WAIT_FOR_STANDBY)
            return database_of(connection)

        there = await self._connections.read_replicated(wait)
        return [database == there for database in databases]


class TellingCalls:
    """Implements `core.ports.told.TellingIndex`."""

    _connections: Connections
    _standby: StandbyWaits

    async def told_head(self, ref: str, *, known: HeadsOnStandby) -> TableHead | None:
        return await self._told(lambda c: lookup.head(c, ref), _one, known)

    async def told_table(
        self, ref: str, *, known: HeadsOnStandby, most_metadata: int
    ) -> TableRecord | TableHead | None:
        return await self._told(
            lambda c: lookup.table_if_narrow(c, ref, most_metadata=most_metadata), _one, known
        )

    async def told_glance(self, table_id: str, *, known: HeadsOnStandby) -> Glance | None:
        identity = reads.table_id_of(table_id)
        if identity is None:
            return None
        return await self._told(
            lambda c: reads.glance(c, identity),
            lambda glance: [] if glance is None else [glance.table],
            known,
        )

    async def tables(
        self,
        *,
        prefix: str,
        after: str | None,
        limit: int,
        known: HeadsOnStandby,
        within: Sequence[str] | None = None,
        most_bytes: int = PAGE_BYTES,
    ) -> list[TableRecord]:
        return await self._told(
            lambda c: tables_page(
                c,
                prefix=prefix,
                after=after,
                limit=limit,
                within=within,
                most_bytes=most_bytes,
            ),
            lambda page: page,
            known,
        )

    async def app_transaction(
        self, table_id: str, app_id: str, *, known: HeadsOnStandby
    ) -> Txn | None:
        return await self._of_head(
            table_id, lambda c, identity: reads.app_transaction(c, identity, app_id), known
        )

    async def domain(
        self, table_id: str, domain: str, *, known: HeadsOnStandby
    ) -> DomainMetadata | None:
        return await self._of_head(
            table_id, lambda c, identity: reads.domain(c, identity, domain), known
        )

    async def _of_head(
        self,
        table_id: str,
        query: Callable[[AsyncConnection, UUID], Awaitable[T | None]],
        known: HeadsOnStandby,
    ) -> T | None:
        """What is kept of a table as of its head alone."""
        identity = reads.table_id_of(table_id)
        if identity is None:
            return None

        async def read(connection: AsyncConnection) -> tuple[T | None, TableHead | None]:
            found = await query(connection, identity)
            # Read second, so that what was found is of its head or of one before.
            return found, await lookup.head(connection, table_id)

        found, _ = await self._told(read, lambda read: _one(read[1]), known)
        return found

    async def _told(
        self,
        query: Callable[[AsyncConnection], Awaitable[T]],
        tables_in: Callable[[T], Sequence[TableHead]],
        known: HeadsOnStandby,
    ) -> T:
        async def read(connection: AsyncConnection) -> tuple[T, Sequence[TableHead], str, bool]:
            found, database = await query(connection), database_of(connection)
            news = [
                table
                for table in tables_in(found)
                if table.catalog_managed and not known.has(table, database=database)
            ]
            # Of a head that is known, nothing is asked.
            waits = bool(news) and (await connection.execute(HAS_STANDBY)).scalar_one()
            return found, news, database, waits

        found, news, database, waits = await self._connections.read(read)
        if waits:
            await self._standby.has_all_of(database)
        for table in news:
            known.remember(table, database=database)
        return found


def _one(table: TableHead | None) -> Sequence[TableHead]:
    return [] if table is None else [table]
