"""The commit index in Postgres: the port's calls, each with its connection."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Action, Add
from tidegate_service.core.access.roles import Caller, share_of
from tidegate_service.core.errors import NotFound
from tidegate_service.core.observe.telemetry import SILENT, Phase, Telemetry
from tidegate_service.core.ports.files.comparison import Comparison, FileCounts
from tidegate_service.core.ports.files.scanned import StoredFiles, Wanted
from tidegate_service.core.ports.gauges import Census, PoolUse
from tidegate_service.core.ports.records import (
    Aborted,
    CommitGlance,
    CommitRecord,
    Glance,
    NewTable,
    TableHead,
    TableRecord,
    Waiting,
)
from tidegate_service.core.sharing.pools import Share
from tidegate_service.index.checkpoints.calls import CheckpointCalls
from tidegate_service.index.limits import DEFAULTS, IndexLimits
from tidegate_service.index.locking import groups
from tidegate_service.index.locking.groups import PostgresCommitGroup
from tidegate_service.index.locking.queues import TableQueues
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.index.locking.unanswered import Unanswered
from tidegate_service.index.locking.unit_of_work import UnitOfWork
from tidegate_service.index.postgres.connections import Connections, driver_of, give_back
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.publishing import unpublished
from tidegate_service.index.publishing.calls import PublishingCalls
from tidegate_service.index.reading import comparison, live_files, lookup, reads, used_ids
from tidegate_service.index.reading.census import census
from tidegate_service.index.reading.contents import ContentCalls
from tidegate_service.index.reading.named_files import NamedFilesCalls
from tidegate_service.index.reading.scanning import Snapshot
from tidegate_service.index.reading.states import StateCalls
from tidegate_service.index.reading.stored_winners import WinnerCalls
from tidegate_service.index.reading.told import StandbyWaits, TellingCalls
from tidegate_service.index.rows.effects import FileKey
from tidegate_service.index.tables import forgetting, locations
from tidegate_service.index.tables.forgotten_calls import ForgottenCalls
from tidegate_service.index.tables.long_transactions import Statement, in_statements
from tidegate_service.index.writing import changes

T = TypeVar("T")

Locked = tuple[TableRecord, int]
"""The row as locked, and the database's clock after that in ms."""


class PostgresIndex(
    CheckpointCalls,
    ContentCalls,
    ForgottenCalls,
    NamedFilesCalls,
    StateCalls,
    TellingCalls,
    WinnerCalls,
):
    """Implements `core.ports.index.Index` on an engine of `engine.create_engine`. The caller
    disposes of the engine. So many sections of tables as `sections_at_once` hold a connection."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        sections_at_once: int = 12,
        queue_timeout_s: float = 10.0,
        answer_timeout_s: float = 20.0,
        files_per_batch: int = 2_000,
        limits: IndexLimits = DEFAULTS,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._connections = Connections(engine, answer_timeout_s=answer_timeout_s)
        self._publishing = PublishingCalls(self._connections, limits)
        self._standby = StandbyWaits(self._connections)
        self._unanswered = Unanswered(self._connections, most=limits.unanswered)
        self._queues = TableQueues(
            timeout_s=queue_timeout_s, at_once=sections_at_once, telemetry=telemetry
        )
        self._files_per_batch = files_per_batch
        self._limits = limits
        self._telemetry = telemetry

    @asynccontextmanager
    async def commit_section(
        self, table_id: str, *, who: str | None = None
    ) -> AsyncIterator[PostgresCommitSection]:
        identity = _id_of_existing(table_id)

        async def lock(connection: AsyncConnection) -> Locked:
            table = await changes.lock_table(connection, identity)
            if table is None:
                raise _no_such_table(table_id)
            return table, await changes.now_ms(connection)

        async with self._queues.turn(identity, who), self._section(lock) as section:
            yield section

    @asynccontextmanager
    async def commit_group(
        self, asked: Mapping[str, Sequence[str]], *, wait: bool
    ) -> AsyncIterator[PostgresCommitGroup]:
        by_id = {_id_of_existing(table_id): names for table_id, names in asked.items()}
        begun = self._begun(lambda c: groups.lock(c, by_id, wait=wait))
        async with begun as (unit, locked, database):
            yield PostgresCommitGroup(
                unit, locked, by_id, database=database, telemetry=self._telemetry
            )

    @asynccontextmanager
    async def creation_section(
        self, table: NewTable, *, who: str | None = None
    ) -> AsyncIterator[PostgresCommitSection]:
        async def claim(connection: AsyncConnection) -> Locked:
            await locations.claim(connection, table, within_s=self._limits.claim_s)
            created = await changes.insert_table(connection, table)
            return created, await changes.now_ms(connection)

        async with self._queues.place(who), self._section(claim) as section:
            yield section

    async def table(self, ref: str) -> TableRecord | None:
        return await self._connections.read(lambda c: lookup.table(c, ref))

    async def head(self, ref: str) -> TableHead | None:
        return await self._connections.read(lambda c: lookup.head(c, ref))

    async def glance(self, table_id: str) -> Glance | None:
        return await self._of(table_id, reads.glance)

    async def forget(self, table_id: str, *, by: Caller) -> bool:
        identity = reads.table_id_of(table_id)
        if identity is None:
            return False

        async def forget(statement: Statement) -> bool:
            async with statement() as connection:
                table = await changes.lock_table(connection, identity)
            return table is not None and await forgetting.forget(
                statement, table, by=by, limits=self._limits
            )

        # It may wait for the row's lock, and holds a connection meanwhile.
        async with self._queues.turn(identity, share_of(by.principal)):
            return await in_statements(self._connections, forget)

    async def transaction(
        self, table_id: str, transaction_id: str
    ) -> CommitRecord | Aborted | None:
        identity = reads.table_id_of(table_id)
        if identity is None:
            return None

        async def found(connection: AsyncConnection) -> tuple[CommitRecord | Aborted | None, str]:
            is_used = await used_ids.is_used(await driver_of(connection), identity, transaction_id)
            known = (
                await reads.transaction(connection, identity, transaction_id) if is_used else None
            )
            return known, database_of(connection)

        known, database = await self._connections.read(found)
        if known is not None:
            # A commit that was cut off while it waited for its standby is there to be read.
            await self._standby.has_all_of(database)
        return known

    async def commit(self, table_id: str, version: int) -> CommitRecord | None:
        return await self._of(table_id, lambda c, t: reads.commit(c, t, version))

    async def glance_at_commit(self, table_id: str, version: int) -> CommitGlance | None:
        return await self._of(table_id, lambda c, t: reads.glance_at_commit(c, t, version))

    async def history(
        self, table_id: str, *, from_version: int | None, to_version: int | None, limit: int
    ) -> list[CommitRecord]:
        found = await self._of(
            table_id,
            lambda c, t: reads.history(
                c, t, from_version=from_version, to_version=to_version, limit=limit
            ),
        )
        return found or []

    async def version_at(self, table_id: str, timestamp_ms: int) -> int | None:
        return await self._of(table_id, lambda c, t: reads.version_at(c, t, timestamp_ms))

    async def files(self, table_id: str, version: int) -> AsyncIterator[Sequence[Add]]:
        """Raises `NotFound` where the table is forgotten before the last batch, or made anew from
        a log that has forgotten the version.

        Each batch is a query of its own, from where the last one ended: what is live at a
        version that exists never changes, so they make one snapshot, and a reader that takes
        its time holds neither a connection nor a transaction.
        """
        identity = _id_of_existing(table_id)
        after: FileKey = ("", "")
        query = partial(
            live_files.files_page,
            table_id=identity,
            version=version,
            limit=self._files_per_batch,
            limits=self._limits,
        )
        is_last = False
        while not is_last:
            page = await self._connections.read(partial(query, after=after))
            if page is None:
                raise _no_such_table(table_id)
            batch, after, is_last = page
            if batch:
                yield batch

    def stored_files(
        self, table_id: str, version: int, wanted: Wanted
    ) -> AsyncIterator[StoredFiles]:
        """Each batch as in `files`."""
        snapshot = Snapshot(
            connections=self._connections,
            table_id=_id_of_existing(table_id),
            version=version,
            batch_size=self._files_per_batch,
            partitions_a_page=self._limits.partitions_a_page,
        )
        return snapshot.files(wanted)

    async def file_counts(self, table_id: str, first: int, last: int) -> Mapping[int, FileCounts]:
        identity = _id_of_existing(table_id)
        return await self._connections.read(
            lambda c: comparison.file_counts(c, identity, first, last)
        )

    async def compare(
        self, table_id: str, version: int, actions: Sequence[Action], *, threads: Share
    ) -> Comparison:
        identity = _id_of_existing(table_id)
        return await comparison.compare(
            self._connections, identity, version, actions, threads=threads, limits=self._limits
        )

    async def compare_head(self, table_id: str) -> Comparison:
        identity = _id_of_existing(table_id)
        return await self._connections.read(lambda c: comparison.compare_head(c, identity))

    async def unpublished(self, *, limit: int) -> list[TableRecord]:
        return await self._connections.read(lambda c: unpublished.unpublished(c, limit=limit))

    async def unpublished_versions(
        self, table_id: str, *, limit: int, at_once: bool = False
    ) -> Waiting:
        return await self._publishing.unpublished_versions(
            _id_of_existing(table_id), limit=limit, at_once=at_once
        )

    async def mark_published(
        self,
        table_id: str,
        first: int,
        last: int,
        *,
        database: str | None = None,
        at_once: bool = False,
    ) -> None:
        await self._publishing.mark_published(
            _id_of_existing(table_id), first, last, database=database, at_once=at_once
        )

    async def forget_content(self, table_id: str, *, through: int, at_once: bool = False) -> None:
        await self._publishing.forget_content(_id_of_existing(table_id), through, at_once=at_once)

    async def ping(self) -> None:
        await self._connections.read(reads.ping)

    async def census(self) -> Census:
        """How the tables stand, in all instances. Raises `IndexUnavailable`."""
        return await self._connections.read(census)

    def pool_use(self) -> PoolUse:
        """This instance's connections."""
        return self._connections.pool_use()

    @property
    def waiting(self) -> int:
        """Commits of this instance that wait for another one of their table."""
        return self._queues.waiting

    @asynccontextmanager
    async def _section(
        self, begin: Callable[[AsyncConnection], Awaitable[Locked]]
    ) -> AsyncIterator[PostgresCommitSection]:
        async with self._begun(begin) as (unit, (table, now_ms), database):
            yield PostgresCommitSection(
                unit, table, database=database, now_ms=now_ms, telemetry=self._telemetry
            )

    @asynccontextmanager
    async def _begun(
        self, first: Callable[[AsyncConnection], Awaitable[T]]
    ) -> AsyncIterator[tuple[UnitOfWork, T, str]]:
        """A transaction that began with `first`: what that returned, and in which database."""
        await self._unanswered.check()
        with self._telemetry.phase(Phase.LOCK):
            connection, found = await self._connections.begin(first)
        timeout_s = self._connections.answer_timeout_s
        unit = UnitOfWork(
            connection,
            await driver_of(connection),
            answer_timeout_s=timeout_s,
            limits=self._limits,
        )
        try:
            yield unit, found, database_of(connection)
        finally:
            await unit.abandon()
            if unit.saved and unit.broken:
                self._unanswered.remember()
            await give_back(connection, broken=unit.broken)

    async def _of(
        self, table_id: str, query: Callable[[AsyncConnection, UUID], Awaitable[T | None]]
    ) -> T | None:
        """What a query says of a table; None where no table can have that id."""
        identity = reads.table_id_of(table_id)
        if identity is None:
            return None
        return await self._connections.read(lambda c: query(c, identity))


def _id_of_existing(table_id: str) -> UUID:
    identity = reads.table_id_of(table_id)
    if identity is None:
        raise _no_such_table(table_id)
    return identity


def _no_such_table(table_id: str) -> NotFound:
    return NotFound(f"there is no table {excerpt(table_id)}", code=Code.TABLE_NOT_FOUND)
