"""The row's lock: one commit at a time on a table, whoever makes it."""

import asyncio
from contextlib import AsyncExitStack

import psycopg
import pytest

from tests.builders.by_x import add
from tests.service.commit.committing import append, create, land
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.records import Aborted, CommitRecord
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import ConnectionSettings, create_engine

pytestmark = pytest.mark.anyio


async def test_whoever_waited_sees_what_the_wait_was_for(index, other_index, database_url, waiters):
    table = await create(index)

    async def second():
        async with other_index.commit_section(table.id) as section:
            return section.table, section.now_ms, await section.winners(0, 1)

    async with index.commit_section(table.id) as section:
        waiting = asyncio.create_task(second())
        await waiters(1)
        await append(section, add("a"))
        with psycopg.connect(database_url) as connection:
            (clock,) = connection.execute(
                "SELECT extract(epoch FROM clock_timestamp()) * 1000"
            ).fetchone()
        await section.save()

    head, now_ms, (winner,) = await waiting
    assert head == section.table
    assert [file.path for file in winner.adds] == ["a"]
    # Later than the commit it waited for, which its own transaction's start is not.
    assert now_ms >= int(clock)


async def test_what_is_known_of_an_id_changes_within_its_group(index):
    table = await create(index)
    async with index.commit_group({table.id: ["a", "b", "c"]}, wait=False) as group:
        section = group.sections[table.id]
        assert [await section.transaction(id_) for id_ in "abc"] == [None] * 3
        await section.abort("a")
        commit = await append(section, transaction_id="b")
        assert isinstance(await section.transaction("a"), Aborted)
        assert await section.transaction("b") == commit.record
        assert await section.transaction("c") is None


async def test_a_connection_keeps_its_prepared_statements(database_url):
    """However often it is used for other things, and rolled back."""
    engine = create_engine(database_url, ConnectionSettings(pool_size=1, overflow=0))
    index = PostgresIndex(engine)
    table = await create(index)
    async with index.commit_section(table.id) as section:
        for _ in range(20):
            await section.state_at(0)
    assert (await land(index, table, add("a"))).latest_version == 1
    async with index.commit_group({table.id: ["id"]}, wait=False) as group:
        assert group.sections[table.id].table.latest_version == 1
    await engine.dispose()


async def test_tables_do_not_wait_for_each_other(index):
    one, two = await create(index), await create(index)
    async with index.commit_section(one.id) as first, index.commit_section(two.id) as second:
        await append(first)
        await append(second)
        await second.save()
        await first.save()


async def test_readers_do_not_wait(index):
    table = await create(index)
    async with index.commit_section(table.id) as section:
        await append(section, transaction_id="id")
        assert (await index.table(table.id)).latest_version == 0
        assert await index.transaction(table.id, "id") is None
        await section.save()
    assert (await index.transaction(table.id, "id")).version == 1


async def test_waiting_for_the_lock_has_an_end(index, database_url):
    impatient = create_engine(database_url, ConnectionSettings(lock_timeout_ms=1))
    table = await create(index)
    async with index.commit_section(table.id):
        with pytest.raises(IndexUnavailable, match="lock") as refused:
            await land(PostgresIndex(impatient), table)
    assert refused.value.code is Code.INDEX_UNAVAILABLE
    await land(PostgresIndex(impatient), table)
    await impatient.dispose()


async def test_a_cancelled_section_leaves_nothing_held(index, other_index, engine):
    table = await create(index)
    entered = asyncio.Event()

    async def forever():
        async with index.commit_section(table.id) as section:
            await append(section, add("a"))
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(forever())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.pool.checkedout() == 0
    assert (await land(other_index, table)).latest_version == 1


async def test_a_section_cancelled_while_it_waits_for_the_lock(index, other_index, engine, waiters):
    table = await create(index)
    async with other_index.commit_section(table.id) as section:
        waiting = asyncio.create_task(land(index, table))
        await waiters(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        # Its place in the database's queue is given up too.
        await waiters(0)
        assert engine.pool.checkedout() == 0
        await append(section)
        await section.save()
    assert (await land(index, table)).latest_version == 2


async def test_an_id_lands_or_is_aborted_but_never_both(index, other_index):
    table = await create(index)

    async def commit(number: int) -> str:
        async with index.commit_section(table.id) as section:
            if await section.transaction(f"id-{number}") is not None:
                return "too late"
            await append(section, transaction_id=f"id-{number}")
            await section.save()
            return "landed"

    async def abort(number: int) -> str:
        async with other_index.commit_section(table.id) as section:
            if isinstance(await section.transaction(f"id-{number}"), CommitRecord):
                return "too late"
            await section.abort(f"id-{number}")
            await section.save()
            return "aborted"

    for number in range(20):
        pair = (commit(number), abort(number)) if number % 2 else (abort(number), commit(number))
        outcomes = set(await asyncio.gather(*pair))
        known = await index.transaction(table.id, f"id-{number}")
        expected = {"aborted"} if isinstance(known, Aborted) else {"landed"}
        assert outcomes == expected | {"too late"}


class TestQueues:
    async def test_waiting_writers_of_one_table_leave_connections_to_others(self, database_url):
        engine = create_engine(
            database_url, ConnectionSettings(pool_size=2, overflow=0, pool_timeout_s=0.01)
        )
        index = PostgresIndex(engine)
        busy, calm = await create(index), await create(index)
        async with index.commit_section(busy.id):
            waiting = [asyncio.create_task(land(index, busy)) for _ in range(8)]
            assert (await land(index, calm)).latest_version == 1
            assert not any(task.done() for task in waiting)
        heads = [(await task).latest_version for task in waiting]
        # First come, first served.
        assert heads == list(range(1, 9))
        await engine.dispose()

    async def test_a_turn_that_does_not_come(self, engine):
        index = PostgresIndex(engine, queue_timeout_s=0.01)
        table = await create(index)
        async with index.commit_section(table.id):
            with pytest.raises(IndexUnavailable, match="earlier commits"):
                await land(index, table)
        await land(index, table)

    async def test_sections_of_many_tables_leave_connections_to_others(self, engine):
        index = PostgresIndex(engine, queue_timeout_s=0.05, sections_at_once=2)
        held = [await create(index) for _ in range(3)]
        async with AsyncExitStack() as sections:
            for table in held[:2]:
                await sections.enter_async_context(index.commit_section(table.id))
            with pytest.raises(IndexUnavailable, match="many tables wait for"):
                await land(index, held[2])
            assert index.pool_use().in_use == 2
            # Reads, and groups, have none of their turns to wait for.
            assert await index.table(held[2].id)
            async with index.commit_group({held[2].id: ["an-id"]}, wait=False) as group:
                assert held[2].id in group.sections
        # Whoever gave up has left nothing behind.
        for table in held:
            await land(index, table)
