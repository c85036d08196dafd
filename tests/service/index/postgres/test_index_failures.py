"""A database that fails, in every other way than by losing a COMMIT, and comes back."""

import asyncio
import tempfile
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tests.builders.by_x import add
from tests.memory import folder_of_tests
from tests.service.commit.committing import append, create, land, new_table
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable, Refused
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.embedded import server as embedded_server
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import (
    ConnectionSettings,
    DurabilityError,
    check_durability,
    create_engine,
)
from tidegate_service.index.postgres.failures import is_certain_rollback

pytestmark = pytest.mark.anyio


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


async def ended(url: str, pid: int) -> None:
    """Returns once the backend is gone; its last words have been sent by then."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    async with asyncio.timeout(30):
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            while await (await connection.execute(query, [pid])).fetchone() != (0,):
                pass


TERMINATE_OTHERS = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def test_a_backend_that_ends_within_a_section(index, engine, database_url):
    table = await create(index)
    async with index.commit_section(table.id) as section:
        await append(section, add("a"))
        execute(database_url, TERMINATE_OTHERS)
        with pytest.raises(IndexUnavailable):
            await section.transaction("x")
        # A section that has failed does not go on, on whatever connection.
        with pytest.raises(RuntimeError, match="over"):
            await section.save()
    assert engine.pool.checkedout() == 0
    assert (await land(index, table)).latest_version == 1


async def test_connections_that_died_in_the_pool_are_replaced(index, database_url):
    table = await create(index)
    both = asyncio.gather(index.table(table.id), index.table(table.id))
    assert await both == [table, table]
    execute(database_url, TERMINATE_OTHERS)
    assert await index.table(table.id) == table
    execute(database_url, TERMINATE_OTHERS)
    assert (await land(index, table)).latest_version == 1
    execute(database_url, TERMINATE_OTHERS)
    await create(index)


@pytest.mark.parametrize("ask", ["append", "save"])
async def test_an_idle_section_is_ended_by_the_database(index, other_index, database_url, ask):
    """An instance that hangs within a section must not keep its table for ever."""
    table = await create(index)
    async with index.commit_section(table.id) as section:
        await append(section)
        connection = section._unit._connection
        pid = (await connection.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one()
        await connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 1")
        # Nothing is asked of this section while another instance waits for its lock.
        assert (await land(other_index, table)).latest_version == 1
        await ended(database_url, pid)
        # Not "unknown", even of a COMMIT: what ended the session came before it.
        # The driver may hear of the lost connection before it hears why.
        with pytest.raises(IndexUnavailable):
            await (append(section) if ask == "append" else section.save())
    assert (await index.table(table.id)).latest_version == 1


@pytest.mark.parametrize(
    ("error", "certain"),
    [
        (errors.CheckViolation, True),
        (errors.SerializationFailure, True),
        (errors.DeadlockDetected, True),
        (errors.IdleInTransactionSessionTimeout, True),
        (errors.AdminShutdown, False),
        (errors.QueryCanceled, False),
        (errors.CrashShutdown, False),
        (errors.DiskFull, False),
        (errors.InternalError_, False),
        (psycopg.OperationalError, False),
        (psycopg.InterfaceError, False),
        (TimeoutError, False),
    ],
)
async def test_which_failures_of_a_commit_are_certain(error, certain):
    assert is_certain_rollback(error()) is certain


async def test_every_connection_in_use(database_url):
    engine = create_engine(
        database_url, ConnectionSettings(pool_size=1, overflow=0, pool_timeout_s=0.01)
    )
    index = PostgresIndex(engine)
    table = await create(index)
    async with index.commit_section(table.id):
        with pytest.raises(IndexUnavailable, match="no database connection"):
            await index.table(table.id)
    assert await index.table(table.id) == table
    await engine.dispose()


async def test_a_statement_that_takes_too_long(database_url):
    engine = create_engine(database_url, ConnectionSettings(statement_timeout_ms=1))
    index = PostgresIndex(engine)
    actions = [add(f"f{number}") for number in range(3_000)]
    with pytest.raises(IndexUnavailable, match="too long"):
        await create(index, *actions)
    await engine.dispose()


async def test_nothing_listens_there():
    engine = create_engine("postgresql://nobody:secret@127.0.0.1:1/none")
    index = PostgresIndex(engine)
    with pytest.raises(IndexUnavailable) as refused:
        await index.ping()
    assert refused.value.code is Code.INDEX_UNAVAILABLE
    assert "secret" not in str(refused.value)
    with pytest.raises(IndexUnavailable):
        await create(index)
    with pytest.raises(IndexUnavailable):
        await check_durability(engine)


async def test_a_database_without_our_schema(empty_database_url):
    engine = create_engine(empty_database_url)
    with pytest.raises(IndexUnavailable, match="tidegate migrate"):
        await PostgresIndex(engine).ping()
    await engine.dispose()


async def test_what_postgres_cannot_hold_is_refused_and_not_an_outage(index):
    with pytest.raises(Refused):
        await create(index, table=new_table(location="file:///nul\0"))


async def test_errors_do_not_repeat_what_was_sent(index, engine):
    with pytest.raises(Refused) as refused:
        await create(index, table=new_table(name="secret\0"))
    chain, error = [], refused.value
    while error is not None:
        chain.append(repr(error) + str(error))
        error = error.__cause__
    assert len(chain) > 1
    assert not [text for text in chain if "secret" in text]


@pytest.fixture
def server_folder():
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as folder:
        yield Path(folder)


async def test_a_database_that_was_away_is_used_again_without_a_restart(server_folder):
    server = EmbeddedPostgres(server_folder)
    migrate.upgrade(server.start())
    engine = create_engine(server.url)
    index = PostgresIndex(engine)
    table = await create(index)
    async with index.commit_section(table.id) as section:
        await append(section)
        server.stop()
        with pytest.raises(IndexUnavailable):
            await section.transaction("x")
    for ask in (index.ping, lambda: land(index, table), lambda: create(index)):
        with pytest.raises(IndexUnavailable):
            await ask()

    server.start()

    await index.ping()
    assert (await land(index, table)).latest_version == 1
    await engine.dispose()
    server.stop()


class TestDurability:
    async def test_a_durable_server_is_accepted(self, engine):
        await check_durability(engine)

    async def test_a_database_that_does_not_wait_for_its_disk(self, engine, database_url):
        name = database_url.partition("?")[0].rpartition("/")[2]
        execute(database_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
        with pytest.raises(DurabilityError, match="synchronous_commit = off"):
            await check_durability(engine)

    @pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
    async def test_a_server_that_does_not_sync(self, server_folder, monkeypatch, setting):
        monkeypatch.setitem(embedded_server._SETTINGS, setting, "off")
        with EmbeddedPostgres(server_folder) as server:
            engine = create_engine(server.url)
            with pytest.raises(DurabilityError, match=f"{setting} = off"):
                await check_durability(engine)
            await engine.dispose()
