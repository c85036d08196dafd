"""A transaction that lasts keeps all dead copies of the tables' rows: whoever looks for a row finds
it as fast as before."""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from tests.builders.actions import decoded
from tests.builders.by_x import add
from tests.service.commit.committing import append, create, new_table
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

COPIES = 3_000
_COPY = """
    DO $$ BEGIN
        FOR n IN 1..{} LOOP
            UPDATE tables SET latest_timestamp = latest_timestamp WHERE id = '{}';
            COMMIT;
        END LOOP;
    END $$
"""
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
_ENTRIES_READ = "SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes WHERE relname = 'tables'"

Work = Callable[[PostgresIndex, PostgresUpkeep, TableRecord], Awaitable[object]]


async def commits_alone(index: PostgresIndex, _: PostgresUpkeep, table: TableRecord) -> None:
    async with index.commit_group({table.id: ["waited"]}, wait=True) as group:
        await append(group.sections[table.id], add("a"), published=False)
        await group.save()


async def commits_with_others(index: PostgresIndex, _: PostgresUpkeep, table: TableRecord) -> None:
    async with index.commit_group({table.id: ["free"]}, wait=False) as group:
        await append(group.sections[table.id], add("a"), published=False)
        await group.save()


async def commits_for_applications(
    index: PostgresIndex, _: PostgresUpkeep, table: TableRecord
) -> None:
    async with index.commit_group({table.id: ["many"]}, wait=True) as group:
        names = [str(number) for number in range(100)]
        txns = [decoded({"txn": {"appId": name, "version": 1}}) for name in names]
        domains = [
            decoded({"domainMetadata": {"domain": name, "configuration": "", "removed": False}})
            for name in names
        ]
        await append(group.sections[table.id], *txns, *domains, published=False)
        await group.save()


async def is_published(index: PostgresIndex, _: PostgresUpkeep, table: TableRecord) -> None:
    waiting = await index.unpublished_versions(table.id, limit=10)
    assert [version for version, _ in waiting.versions] == [0]
    await index.mark_published(table.id, 0, 0, database=waiting.database)
    await index.forget_content(table.id, through=0)


async def is_read(index: PostgresIndex, _: PostgresUpkeep, table: TableRecord) -> None:
    assert await index.table(table.name) == await index.table(table.id) == table


async def is_due(_: PostgresIndex, upkeep: PostgresUpkeep, table: TableRecord) -> None:
    page = await upkeep.due(["checkpoint"], after=None, also=[table.id], limit=10)
    # Nothing of it is published, and so nothing due.
    assert page.due == []


async def entries_read(database_url: str) -> int:
    """How many entries of the indexes of `tables` were read, by sessions that have ended."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        async with asyncio.timeout(30):
            # This session, and the transaction that lasts.
            while await _one(connection, _OTHERS) > 2:
                await asyncio.sleep(0.01)
        return await _one(connection, _ENTRIES_READ)


async def _one(connection: psycopg.AsyncConnection, query: str) -> int:
    await connection.rollback()
    row = await (await connection.execute(query)).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(
    "work",
    [commits_alone, commits_with_others, commits_for_applications, is_published, is_read, is_due],
)
async def test_are_passed_by(database_url: str, work: Work):
    engine = create_engine(database_url)
    table = await create(PostgresIndex(engine), table=new_table(catalog_managed=True))
    await engine.dispose()
    async with await psycopg.AsyncConnection.connect(database_url) as lasting:
        await lasting.execute("SELECT pg_current_xact_id()")
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
            await other.execute(_COPY.format(COPIES, table.id))
        before = await entries_read(database_url)
        engine = create_engine(database_url)
        await work(PostgresIndex(engine), PostgresUpkeep(engine), table)
        await engine.dispose()
        assert await entries_read(database_url) - before <= 20
        # The copies were there.
        async with await psycopg.AsyncConnection.connect(database_url) as other:
            await other.execute("SET enable_seqscan = off")
            await other.execute("SELECT FROM tables WHERE id = %s", [table.id])
        assert await entries_read(database_url) - before > 100
