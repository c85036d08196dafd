"""Sessions that stop in the middle of what they send, and keep their row locks by it."""

import asyncio
from contextlib import closing

import psycopg
import pytest
from psycopg.pq import ExecStatus
from sqlalchemy import text

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import make_world
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.index.postgres.engine import (
    APPLICATION_NAME,
    ConnectionSettings,
    create_engine,
)
from tidegate_service.index.postgres.sweeper import TIMES_SILENT, Sweeper, sweeping
from tidegate_service.index.tables import forgetting
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

LOCK = b"SELECT 1 FROM alembic_version FOR UPDATE"
FREE = "SELECT 1 FROM alembic_version FOR UPDATE NOWAIT"
STATE = "SELECT state, wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"


def session(database_url, *, name=APPLICATION_NAME):
    """One that nothing is done with at its end: some are in the middle of something."""
    return closing(psycopg.connect(database_url, application_name=name, autocommit=True))


@pytest.fixture
def other(database_url):
    with psycopg.connect(database_url, autocommit=True) as made:
        made.execute("CREATE TABLE somewhere (words text)")
        yield made


@pytest.fixture
def sweeper(engine):
    return Sweeper(engine)


def within_a_pipeline(connection):
    connection.enter_pipeline_mode()
    connection.send_query_params(b"BEGIN", None)
    connection.send_query_params(LOCK, None)
    connection.send_flush_request()
    connection.flush()


def within_a_copy(connection):
    connection.exec_(b"BEGIN")
    connection.exec_(LOCK)
    connection.exec_(b"COPY somewhere FROM STDIN")
    connection.put_copy_data(b"word\n")
    connection.flush()


def while_it_is_sent_rows(connection):
    connection.exec_(b"BEGIN")
    connection.exec_(LOCK)
    connection.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 1000)")
    connection.flush()


async def reached(other, victim, *state):
    """Wait until the session is in that state."""
    async with asyncio.timeout(30):
        while other.execute(STATE, [victim.info.backend_pid]).fetchone() != state:
            await asyncio.sleep(0)


async def gone(other, victim):
    async with asyncio.timeout(30):
        while other.execute(STATE, [victim.info.backend_pid]).fetchone() is not None:
            await asyncio.sleep(0)


STOPS = [
    (within_a_pipeline, "ClientRead"),
    (within_a_copy, "ClientRead"),
    (while_it_is_sent_rows, "ClientWrite"),
]


@pytest.mark.parametrize(("stops", "event"), STOPS, ids=[stops.__name__ for stops, _ in STOPS])
async def test_a_session_that_stops_midway_is_ended(database_url, other, sweeper, stops, event):
    with session(database_url) as victim:
        stops(victim.pgconn)
        await reached(other, victim, "active", "Client", event)
        for _ in range(TIMES_SILENT - 1):
            assert await sweeper.sweep() == 0
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(FREE)
        assert await sweeper.sweep() == 1
        await gone(other, victim)
        assert other.execute(FREE).fetchone() == (1,)
        assert await sweeper.sweep() == 0


async def test_a_copy_that_goes_on_is_left_alone(database_url, other, sweeper):
    copied = "SELECT bytes_processed FROM pg_stat_progress_copy WHERE pid = %s"
    with session(database_url) as victim:
        within_a_copy(victim.pgconn)
        for count in range(1, 2 * TIMES_SILENT):
            async with asyncio.timeout(30):
                while other.execute(copied, [victim.info.backend_pid]).fetchone() != (5 * count,):
                    await asyncio.sleep(0)
            await reached(other, victim, "active", "Client", "ClientRead")
            assert await sweeper.sweep() == 0
            victim.pgconn.put_copy_data(b"word\n")
            victim.pgconn.flush()
        victim.pgconn.put_copy_end()
        assert victim.pgconn.get_result().status == ExecStatus.COMMAND_OK


async def test_a_pipeline_that_goes_on_is_left_alone(database_url, other, sweeper):
    with session(database_url) as victim:
        within_a_pipeline(victim.pgconn)
        before = None
        for _ in range(2 * TIMES_SILENT):
            async with asyncio.timeout(30):
                query = "SELECT state_change FROM pg_stat_activity WHERE pid = %s"
                while (now := other.execute(query, [victim.info.backend_pid]).fetchone()) == before:
                    await asyncio.sleep(0)
            before = now
            assert await sweeper.sweep() == 0
            victim.pgconn.send_query_params(b"SELECT 1", None)
            victim.pgconn.send_flush_request()
            victim.pgconn.flush()


async def test_whoever_works_or_waits_is_left_alone(database_url, other, sweeper):
    with (
        session(database_url) as holding,
        session(database_url) as waiting,
        session(database_url) as working,
    ):
        holding.pgconn.exec_(b"BEGIN")
        holding.pgconn.exec_(LOCK)
        waiting.pgconn.send_query(LOCK)
        waiting.pgconn.flush()
        working.pgconn.send_query(b"SELECT pg_sleep(60)")
        working.pgconn.flush()
        await reached(other, holding, "idle in transaction", "Client", "ClientRead")
        await reached(other, waiting, "active", "Lock", "transactionid")
        await reached(other, working, "active", "Timeout", "PgSleep")
        for _ in range(2 * TIMES_SILENT):
            assert await sweeper.sweep() == 0
        for one in (holding, waiting, working):
            assert other.execute(STATE, [one.info.backend_pid]).fetchone() is not None
        holding.pgconn.exec_(b"ROLLBACK")
        assert waiting.pgconn.get_result().status == ExecStatus.TUPLES_OK
        working.cancel()


async def test_a_session_that_is_none_of_ours_is_left_alone(database_url, other, sweeper):
    with session(database_url, name="psql") as theirs:
        within_a_pipeline(theirs.pgconn)
        await reached(other, theirs, "active", "Client", "ClientRead")
        for _ in range(2 * TIMES_SILENT):
            assert await sweeper.sweep() == 0


async def test_an_instance_looks_by_itself(database_url, engine, other):
    with session(database_url) as victim:
        within_a_copy(victim.pgconn)
        async with sweeping(engine, interval_s=0.0):
            await gone(other, victim)


class TestTransactionTimeout:
    """What Postgres itself bounds, from 17 on."""

    @pytest.fixture(autouse=True)
    def has_it(self, other):
        if other.info.server_version < 170_000:
            pytest.skip("this Postgres has no transaction_timeout")

    @pytest.fixture
    async def hasty(self, database_url, anyio_backend):
        """An engine whose transactions may take 2 s."""
        engine = create_engine(database_url, ConnectionSettings(transaction_timeout_ms=2_000))
        yield engine
        await engine.dispose()

    async def slept(self, index, table, *, seconds, before=None):
        """A section with a statement that takes so long."""
        async with index.commit_section(table.id) as section:
            if before is not None:
                await before(section)
            async with section._unit.statements() as connection:
                await connection.execute(text(f"SELECT pg_sleep({seconds})"))
            await section.save()

    async def test_a_pipeline_that_stops_is_ended(self, hasty, other):
        async with hasty.connect() as connection:
            raw = await connection.get_raw_connection()
            within_a_pipeline(raw.driver_connection.pgconn)
            await reached(other, raw.driver_connection, "active", "Client", "ClientRead")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(FREE)
            await gone(other, raw.driver_connection)
            assert other.execute(FREE).fetchone() == (1,)
            await connection.invalidate()

    async def test_a_section_that_takes_too_long_is_told_so(self, hasty, tmp_path):
        index = PostgresIndex(hasty)
        world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
        table = await world.create()
        with pytest.raises(IndexUnavailable, match="took too long"):
            await self.slept(index, table, seconds=14)
        assert (await propose(world.context, table.id, proposal(add("x=1/a")))).record.version == 1

    async def test_one_that_was_given_time_is_not_cut(self, hasty, tmp_path):
        index = PostgresIndex(hasty)
        world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
        table = await world.create()
        await self.slept(index, table, seconds=3, before=PostgresCommitSection.take_time)

    async def test_forgetting_is_given_time(self, world, monkeypatch):
        """Each of its statements; a table of millions of files takes many of them."""
        seen = []

        async def noted(statement, table, **given):
            async with statement() as connection:
                seen.append((await connection.execute(text("SHOW transaction_timeout"))).scalar())
            return await real(statement, table, **given)

        real = forgetting.forget
        monkeypatch.setattr(forgetting, "forget", noted)
        table = await world.create()
        await forget_table(world.context, table.id)
        assert seen == ["30min"]
