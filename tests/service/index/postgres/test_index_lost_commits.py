"""COMMITs that get no answer, or a bad one: what is said must be true."""

import asyncio
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests.builders.by_x import add
from tests.service.commit.committing import append, create, land, new_table
from tests.service.process.severing import Cut, severing
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable, ServiceError
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres import connections, pipeline
from tidegate_service.index.postgres.engine import create_engine

pytestmark = pytest.mark.anyio

# The statement as it is sent; its end tells it from "READ COMMITTED".
COMMIT = b"COMMIT\0"

LATE_MS = 10**15
"""After every commit."""


@pytest.fixture
async def severed(database_url, anyio_backend):
    """An index whose connections can be cut, its engine, and what cuts them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        async with severing(database_url, Path(folder)) as (url, between):
            engine = create_engine(url)
            yield PostgresIndex(engine, answer_timeout_s=2.0), engine, between
            await engine.dispose()


@pytest.mark.parametrize(
    ("cut", "landed"), [(Cut.BEFORE_IT_ARRIVES, False), (Cut.BEFORE_THE_ANSWER, True)]
)
async def test_a_commit_without_an_answer_is_unknown(index, severed, cut, landed):
    cut_index, engine, between = severed
    table = await create(index)
    async with cut_index.commit_section(table.id) as section:
        commit = await append(section, add("a"), transaction_id="id")
        between.watch(COMMIT, cut)
        with pytest.raises(CommitStateUnknown):
            await section.save()
    assert engine.pool.checkedout() == 0
    # The lock tells that it has ended, one way or the other; then the id tells which.
    async with cut_index.commit_section(table.id) as section:
        found = await section.transaction("id")
    assert found == (commit.record if landed else None)
    assert await cut_index.transaction(table.id, "id") == found


@pytest.mark.parametrize(
    ("cut", "landed"), [(Cut.BEFORE_IT_ARRIVES, False), (Cut.BEFORE_THE_ANSWER, True)]
)
async def test_a_creation_without_an_answer_is_unknown(severed, cut, landed):
    cut_index, _, between = severed
    table = new_table()
    between.watch(COMMIT, cut)
    with pytest.raises(CommitStateUnknown):
        await create(cut_index, table=table)
    assert (await cut_index.table(table.id) is not None) is landed


UNKNOWN = ["40003", "08007", "25P04", "57014", "57P01", "XX000"]
"""Also of those that a server or a proxy sends of a COMMIT that it has done."""
ROLLED_BACK = ["40000", "40001", "40002", "40P01", "23505", "23514", "25P02", "25P03"]


class TestAnErrorInPlaceOfAnAnswer:
    @pytest.mark.parametrize("sqlstate", UNKNOWN)
    @pytest.mark.parametrize("cut", [Cut.REFUSED, Cut.REFUSED_AND_DONE])
    async def test_says_nothing(self, index, severed, cut, sqlstate):
        cut_index, engine, between = severed
        table = await create(index)
        async with cut_index.commit_section(table.id) as section:
            commit = await append(section, add("a"), transaction_id="id")
            between.watch(COMMIT, cut, sqlstate=sqlstate)
            with pytest.raises(CommitStateUnknown):
                await section.save()
        assert engine.pool.checkedout() == 0
        found = await index.transaction(table.id, "id")
        assert found == (commit.record if cut is Cut.REFUSED_AND_DONE else None)

    @pytest.mark.parametrize("sqlstate", ROLLED_BACK)
    async def test_says_that_nothing_was_done(self, index, severed, sqlstate):
        cut_index, engine, between = severed
        table = await create(index)
        async with cut_index.commit_section(table.id) as section:
            await append(section, add("a"), transaction_id="id")
            between.watch(COMMIT, Cut.REFUSED, sqlstate=sqlstate)
            with pytest.raises(ServiceError) as refused:
                await section.save()
        assert not isinstance(refused.value, CommitStateUnknown)
        assert engine.pool.checkedout() == 0


async def test_what_is_in_no_transaction_is_not_committed(severed):
    """Postgres answers such a COMMIT with COMMIT, and a warning that nobody reads."""
    _, engine, _ = severed
    async with engine.connect() as connection:
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
            await pipeline.commit(await connections.driver_of(connection))


@pytest.mark.parametrize("cut", [Cut.BEFORE_IT_ARRIVES, Cut.BEFORE_THE_ANSWER])
async def test_publishing_without_an_answer_can_be_done_again(severed, cut):
    cut_index, _, between = severed
    table = await create(cut_index, table=new_table(catalog_managed=True))
    between.watch(COMMIT, cut)
    with pytest.raises(IndexUnavailable):
        await cut_index.mark_published(table.id, 0, 0)
    await cut_index.mark_published(table.id, 0, 0)
    assert (await cut_index.table(table.id)).published_version == 0


async def test_a_silent_database_is_not_waited_for_for_ever(index, severed):
    cut_index, engine, between = severed
    table = await create(index)
    async with cut_index.commit_section(table.id) as section:
        await append(section)
        between.watch(COMMIT, Cut.SILENCE)
        with pytest.raises(CommitStateUnknown):
            await section.save()
    assert engine.pool.checkedout() == 0
    with pytest.raises(IndexUnavailable):
        await cut_index.ping()


async def test_what_was_read_is_told_even_if_the_database_falls_silent_then(index, severed):
    cut_index, engine, between = severed
    table = await create(index)
    assert await cut_index.version_at(table.id, LATE_MS) == 0
    # Look-ups of tables, and of states, end their transaction in the same way to the database.
    between.watch(b"ROLLBACK\0", Cut.SILENCE)
    assert await cut_index.version_at(table.id, LATE_MS) == 0
    assert engine.pool.checkedout() == 0


class TestDuringCommit:
    """COMMIT runs deferred triggers, so a trigger can stop it on its way."""

    @pytest.fixture
    def at_commit(self, database_url):
        def install(body: str) -> None:
            with psycopg.connect(database_url) as connection:
                connection.execute(
                    "CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS "
                    f"$$ BEGIN {body}; RETURN NULL; END $$"
                )
                connection.execute(
                    "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON commits "
                    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.version = 1) "
                    "EXECUTE FUNCTION at_commit()"
                )

        return install

    @pytest.mark.parametrize("end", ["pg_terminate_backend", "pg_cancel_backend"])
    async def test_a_backend_that_ends_in_the_middle_of_commit(
        self, index, database_url, at_commit, waiters, end
    ):
        at_commit("PERFORM pg_advisory_xact_lock(42)")
        table = await create(index)
        with psycopg.connect(database_url) as blocking:
            blocking.execute("SELECT pg_advisory_xact_lock(42)")
            async with index.commit_section(table.id) as section:
                await append(section, transaction_id="id")
                saving = asyncio.create_task(section.save())
                await waiters(1)
                blocking.execute(
                    f"SELECT {end}(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                with pytest.raises(CommitStateUnknown):
                    await saving
        assert await index.transaction(table.id, "id") is None
        assert (await land(index, table, transaction_id="id")).latest_version == 1

    @pytest.mark.parametrize(
        ("sqlstate", "raised"), [("40001", IndexUnavailable), ("23514", ServiceError)]
    )
    async def test_a_commit_that_is_refused_has_not_landed(
        self, index, at_commit, sqlstate, raised
    ):
        at_commit(f"RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'")
        table = await create(index)
        with pytest.raises(ServiceError) as refused:
            await land(index, table, transaction_id="id")
        assert type(refused.value) is raised
        assert await index.transaction(table.id, "id") is None


@pytest.mark.parametrize("cut", [Cut.BEFORE_IT_ARRIVES, Cut.BEFORE_THE_ANSWER])
async def test_a_section_that_only_read_has_its_answer_if_its_rollback_fails(index, severed, cut):
    """Postgres ended the session of an instance that was stopped, or was killed itself."""
    cut_index, engine, between = severed
    table = await create(index)
    async with cut_index.commit_section(table.id) as section:
        assert await section.transaction("id") is None
        between.watch(b"ROLLBACK\0", cut)
    assert engine.pool.checkedout() == 0
    assert await cut_index.table(table.id) == table
