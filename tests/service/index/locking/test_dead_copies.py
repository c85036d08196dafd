"""A transaction that lasts keeps all dead copies of rows: whoever looks for one finds it as fast as
before."""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from tests.builders.actions import decoded
from tests.builders.by_x import add
from tests.service.commit.committing import append, create, land, new_table
from tidegate_protocol.log.actions import Action
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

COPIES = 3_000
GENERATIONS = 500
_COPY = """
    DO $$ BEGIN
        FOR n IN 1..{} LOOP
            UPDATE tables SET latest_timestamp = latest_timestamp WHERE id = '{}';
            COMMIT;
        END LOOP;
    END $$
"""
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
_ENTRIES_READ = "SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes WHERE relname = '{}'"
_REPLACED = """
    DO $$ BEGIN
        FOR n IN -{}..-1 LOOP
            UPDATE files SET added_version = n - 1, removed_version = n WHERE ctid = (
                SELECT ctid FROM files
                WHERE table_id = '{}' AND path = 'a' AND dv_id = '' AND removed_version IS NULL
                ORDER BY removed_version DESC LIMIT 1
            );
            INSERT INTO files (
                table_id, path, dv_id, added_version, size, partition_values, action, partition
            )
            SELECT table_id, path, dv_id, n, size, partition_values, action, partition
            FROM files WHERE table_id = '{}' AND path = 'a' AND removed_version = n;
            COMMIT;
        END LOOP;
    END $$
"""
_COPIES = {
    "files": "SELECT FROM files WHERE table_id = '{}' AND path = 'a' AND removed_version IS NULL",
    "app_transactions": "SELECT FROM app_transactions WHERE table_id = '{}' AND app_id = 'a'",
    "domain_metadata": "SELECT FROM domain_metadata WHERE table_id = '{}' AND domain = 'a'",
}
# As long as go into a page four times: of one page, the index has one entry.
_SET_AGAIN = """
    DO $$ BEGIN
        FOR n IN 1..{} LOOP
            UPDATE {} SET action = convert_to(repeat('a', 1600), 'UTF8') WHERE table_id = '{}';
            COMMIT;
        END LOOP;
    END $$
"""

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


async def replaces(index: PostgresIndex, table: TableRecord) -> None:
    await land(index, table, add("a"))


async def sets_application(index: PostgresIndex, table: TableRecord) -> None:
    await land(index, table, _txn(2))


async def sets_domain(index: PostgresIndex, table: TableRecord) -> None:
    await land(index, table, _domain())


async def drops_domain(index: PostgresIndex, table: TableRecord) -> None:
    await land(index, table, _domain(removed=True))


def _txn(version: int) -> Action:
    return decoded({"txn": {"appId": "a", "version": version}})


def _domain(*, removed: bool = False) -> Action:
    return decoded({"domainMetadata": {"domain": "a", "configuration": "", "removed": removed}})


async def entries_read(database_url: str, source: str = "tables") -> int:
    """How many entries of the indexes of `source` were read, by sessions that have ended."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        async with asyncio.timeout(30):
            # This session, and the transaction that lasts.
            while await _one(connection, _OTHERS) > 2:
                await asyncio.sleep(0.01)
        return await _one(connection, _ENTRIES_READ.format(source))


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


@pytest.mark.parametrize(
    ("source", "work"),
    [
        ("files", replaces),
        ("app_transactions", sets_application),
        ("domain_metadata", sets_domain),
        ("domain_metadata", drops_domain),
    ],
)
async def test_of_what_a_table_has_are_passed_by(
    database_url: str, source: str, work: Callable[[PostgresIndex, TableRecord], Awaitable[object]]
):
    engine = create_engine(database_url)
    table = await create(PostgresIndex(engine), add("a"), _txn(1), _domain())
    await engine.dispose()
    async with await psycopg.AsyncConnection.connect(database_url) as lasting:
        await lasting.execute("SELECT pg_current_xact_id()")
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
            if source == "files":
                await other.execute(_REPLACED.format(GENERATIONS, table.id, table.id))
            else:
                await other.execute(_SET_AGAIN.format(GENERATIONS, source, table.id))
        before = await entries_read(database_url, source)
        engine = create_engine(database_url)
        await work(PostgresIndex(engine), table)
        await engine.dispose()
        assert await entries_read(database_url, source) - before <= 10
        # The copies were there.
        async with await psycopg.AsyncConnection.connect(database_url) as other:
            await other.execute("SET enable_seqscan = off")
            await other.execute(_COPIES[source].format(table.id))
        assert await entries_read(database_url, source) - before > 100
