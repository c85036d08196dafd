"""The inline content of catalog-managed tables, from ratified to published to forgotten."""

import asyncio
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import event

from tests.builders.by_x import add
from tests.service.commit.committing import append, create, land, new_table, quarantine
from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.roles import OPERATOR
from tidegate_service.core.errors import NotFound
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
async def managed(index):
    """A catalog-managed table with versions 0 to 2, none published."""
    table = await create(index, add("v0"), table=new_table(catalog_managed=True))
    for version in (1, 2):
        table = await land(index, table, add(f"v{version}"))
    return table


async def test_content_is_held_byte_for_byte_until_it_is_forgotten(index):
    table = await create(index, table=new_table(catalog_managed=True))
    async with index.commit_section(table.id) as section:
        commit = await append(section, add("a", tags={"x": "größer"}))
        await section.save()

    async def held():
        return [await index.content(table.id, version) is not None for version in (0, 1)]

    assert await index.content(table.id, 1) == commit.content
    await index.forget_content(table.id, through=1)
    assert await held() == [True, True]
    await index.mark_published(table.id, 0, 0)
    assert await held() == [True, True]
    await index.forget_content(table.id, through=1)
    assert await held() == [False, True]
    await index.mark_published(table.id, 1, 1)
    await index.forget_content(table.id, through=0)
    assert await held() == [False, True]
    await index.forget_content(table.id, through=1)
    assert await held() == [False, False]


async def test_winners_outlive_the_content(index, managed):
    for version in range(3):
        await index.mark_published(managed.id, version, version)
    await index.forget_content(managed.id, through=2)
    async with index.commit_section(managed.id) as section:
        winners = await section.winners(-1, 2)
    assert [[add.path for add in winner.adds] for winner in winners] == [["v0"], ["v1"], ["v2"]]


async def test_a_plain_table_holds_no_content(index):
    table = await create(index, add("a"))
    assert table.published_version == 0
    assert await index.content(table.id, 0) is None


async def test_versions_are_published_in_order(index, managed):
    with pytest.raises(ValueError, match="the last that is, is -1"):
        await index.mark_published(managed.id, 1, 1)
    await index.mark_published(managed.id, 0, 0)
    await index.mark_published(managed.id, 1, 1)
    for again in (0, 1):
        await index.mark_published(managed.id, again, again)
    head = await index.table(managed.id)
    assert (head.published_version, head.latest_version) == (1, 2)


async def test_what_does_not_exist_cannot_be_published(index, managed):
    for version in range(3):
        await index.mark_published(managed.id, version, version)
    with pytest.raises(ValueError, match="does not exist"):
        await index.mark_published(managed.id, 3, 3)
    assert await index.forget(managed.id, by=OPERATOR)
    with pytest.raises(NotFound) as gone:
        await index.mark_published(managed.id, 0, 0)
    assert gone.value.code is Code.TABLE_NOT_FOUND


async def test_publishing_waits_for_a_commit_under_way(index, managed, waiters):
    async with index.commit_section(managed.id) as section:
        publishing = asyncio.create_task(index.mark_published(managed.id, 0, 0))
        await waiters(1)
        await append(section)
        await section.save()
    await publishing
    head = await index.table(managed.id)
    assert (head.published_version, head.latest_version) == (0, 3)


class TestManyTables:
    """What many ask for at once is one transaction, and none of them waits for another."""

    @pytest.fixture
    async def several(self, index):
        """Five tables, each with a version more than the one before, none published."""
        found = []
        for more in range(5):
            table = await create(index, add("v0"), table=new_table(catalog_managed=True))
            for version in range(1, more + 1):
                table = await land(index, table, add(f"v{version}"))
            found.append(table)
        return found

    @pytest.fixture
    def transactions(self, engine):
        """Notes each use of a connection."""
        uses = []

        def used(*_):
            uses.append(1)

        event.listen(engine.sync_engine.pool, "checkout", used)
        yield uses
        event.remove(engine.sync_engine.pool, "checkout", used)

    async def published(self, index, several):
        return [(await index.table(table.id)).published_version for table in several]

    async def test_each_is_told_what_waits_of_its_own(self, index, several, transactions):
        await index.mark_published(several[4].id, 0, 1)
        transactions.clear()
        found = await asyncio.gather(
            *(index.unpublished_versions(table.id, limit=3) for table in several)
        )
        assert len(transactions) == 1
        versions = [[version for version, _ in waiting.versions] for waiting in found]
        assert versions == [[0], [0, 1], [0, 1, 2], [0, 1, 2], [2, 3, 4]]
        assert [waiting.behind for waiting in found] == [1, 2, 3, 4, 3]
        for table, waiting in zip(several, found, strict=True):
            for version, content in waiting.versions:
                assert content == await index.content(table.id, version)

    async def test_each_has_its_own_limit(self, index, several):
        found = await asyncio.gather(
            *(index.unpublished_versions(several[4].id, limit=limit) for limit in (1, 4))
        )
        told = [[version for version, _ in waiting.versions] for waiting in found]
        assert told == [[0], [0, 1, 2, 3]]

    async def test_nobody_waits_for_those_who_ask_again_and_again(self, engine, several):
        index = PostgresIndex(engine, limits=IndexLimits(waiting_bytes_at_once=1))

        async def asks(table):
            while True:
                await index.unpublished_versions(table.id, limit=1, at_once=True)

        asking = [asyncio.create_task(asks(table)) for table in several[:2]]
        try:
            async with asyncio.timeout(10):
                # They ask first.
                await asyncio.sleep(0)
                await index.unpublished_versions(several[2].id, limit=1, at_once=True)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.wait(asking)

    async def test_what_is_not_active_or_not_there_does_not_wait(self, index, several):
        await quarantine(index, several[2], "bytes differ")
        asked = [several[2].id, several[1].id, str(UUID(int=0))]
        found = await asyncio.gather(
            *(index.unpublished_versions(table_id, limit=9) for table_id in asked)
        )
        assert [len(waiting.versions) for waiting in found] == [0, 2, 0]

    async def test_they_are_marked_and_forgotten_together(self, index, several, transactions):
        await asyncio.gather(
            *(index.mark_published(table.id, 0, table.latest_version) for table in several)
        )
        assert len(transactions) == 1
        assert await self.published(index, several) == [0, 1, 2, 3, 4]
        transactions.clear()
        # Those of a single one stay: each is forgotten as far as was asked.
        asked = [0, 1, 2, 3, 2]
        await asyncio.gather(
            *(
                index.forget_content(table.id, through=through)
                for table, through in zip(several, asked, strict=True)
            )
        )
        assert len(transactions) == 1
        held = [
            version
            for version in range(5)
            if await index.content(several[4].id, version) is not None
        ]
        assert held == [3, 4]
        for table in several[:4]:
            assert await index.content(table.id, table.latest_version) is None

    async def test_a_row_that_is_held_keeps_no_other_waiting(self, index, several, waiters):
        held, *others = several
        async with index.commit_section(held.id) as section:
            waiting = asyncio.create_task(index.mark_published(held.id, 0, 0))
            await asyncio.gather(
                *(index.mark_published(table.id, 0, table.latest_version) for table in others)
            )
            assert await self.published(index, several) == [-1, 1, 2, 3, 4]
            # It alone does wait.
            await waiters(1)
            await append(section)
            await section.save()
        await waiting
        assert await self.published(index, several) == [0, 1, 2, 3, 4]

    async def test_contents_that_another_one_holds_keep_nobody_waiting(
        self, index, several, database_url
    ):
        """As of a table that is being made anew."""
        await asyncio.gather(
            *(index.mark_published(table.id, 0, table.latest_version) for table in several)
        )
        with psycopg.connect(database_url) as other:
            other.execute(
                "SELECT 1 FROM commits WHERE table_id = %s AND version = 1 FOR UPDATE",
                (several[1].id,),
            )
            await asyncio.gather(*(index.forget_content(table.id, through=9) for table in several))
            held = [
                version
                for version in range(2)
                if await index.content(several[1].id, version) is not None
            ]
            assert held == [1]
            assert await index.content(several[2].id, 2) is None

    async def test_what_is_wrong_with_one_is_told_of_it_alone(self, index, several):
        found = await asyncio.gather(
            index.mark_published(several[0].id, 0, 1),
            index.mark_published(several[1].id, 1, 1),
            index.mark_published(several[2].id, 0, 2),
            index.mark_published(str(UUID(int=0)), 0, 0),
            return_exceptions=True,
        )
        assert [type(one) for one in found] == [ValueError, ValueError, type(None), NotFound]
        assert await self.published(index, several) == [-1, -1, 2, -1, -1]

    async def test_two_publishers_of_one_table(self, index, several):
        await asyncio.gather(*(index.mark_published(several[4].id, 0, last) for last in (2, 4, 1)))
        assert await self.published(index, several[4:]) == [4]


class TestUnpublished:
    async def names(self, index, limit=10):
        return {table.name for table in await index.unpublished(limit=limit)}

    async def test_tables_that_lag_are_found(self, index, managed):
        await create(index)
        # Hundreds of tables may lag, with metadata of megabytes each.
        told = replace(managed, protocol=None, metadata=None)
        assert await index.unpublished(limit=10) == [told]
        for version in range(3):
            await index.mark_published(managed.id, version, version)
        # Held, but no longer waiting.
        assert await index.unpublished(limit=10) == []
        managed = await land(index, managed)
        assert await self.names(index) == {managed.name}

    async def test_a_quarantined_table_does_not_wait(self, index, managed):
        await quarantine(index, managed, "bytes differ")
        assert await index.unpublished(limit=10) == []

    async def test_every_table_has_its_turn(self, index, managed):
        others = [await create(index, table=new_table(catalog_managed=True)) for _ in range(3)]
        names = {managed.name, *(table.name for table in others)}
        assert await self.names(index) == names
        # However small the limit, no table is always left out.
        seen = set()
        async with asyncio.timeout(60):
            while seen != names:
                found = await self.names(index, limit=1)
                assert len(found) == 1
                seen |= found
