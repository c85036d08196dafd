"""The inline content of catalog-managed tables, from ratified to published to forgotten."""

import asyncio
from uuid import UUID

import pytest
from sqlalchemy import Uuid, bindparam, text

from tests.service.committing import add, append, create, land, new_table, ratified
from tidegate_protocol.problems import Code
from tidegate_service.core.access import OPERATOR
from tidegate_service.core.errors import NotFound
from tidegate_service.index.publishing import FORGET

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


class TestUnpublished:
    async def names(self, index, limit=10):
        return {table.name for table in await index.unpublished(limit=limit)}

    async def test_tables_that_lag_are_found(self, index, managed):
        await create(index)
        assert await index.unpublished(limit=10) == [managed]
        for version in range(3):
            await index.mark_published(managed.id, version, version)
        # Held, but no longer waiting.
        assert await index.unpublished(limit=10) == []
        managed = await land(index, managed)
        assert await self.names(index) == {managed.name}

    async def test_a_quarantined_table_does_not_wait(self, index, managed):
        await index.quarantine(managed.id, "bytes differ")
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


@pytest.mark.parametrize("analyzed", [True, False])
async def test_forgetting_looks_once_for_what_waits(index, engine, analyzed):
    """However large the table has grown since the planner last looked."""
    table = await create(index, table=new_table(catalog_managed=True))
    if analyzed:
        async with engine.connect() as connection:
            await connection.execute(text("ANALYZE commits"))
            await connection.commit()
    async with index.commit_section(table.id) as section:
        for version in range(1, 3_001):
            await section.append(ratified(version, published=False))
        await section.save()
    await index.mark_published(table.id, 0, 2_000)
    explained = f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {FORGET.text}"
    asked = {"table_id": UUID(table.id), "through": 3_000, "most": 10_000}
    async with engine.connect() as connection:
        statement = text(explained).bindparams(bindparam("table_id", type_=Uuid))
        (plan,) = (await connection.execute(statement, asked)).scalar_one()
    found = list(nodes(plan["Plan"]))
    (held,) = [node for node in found if node.get("Alias") == "held"]
    assert (held["Actual Loops"], held["Actual Rows"]) == (1, 2_001)
    assert [node["Node Type"] for node in found if node.get("Alias") == "commits"] == [
        "ModifyTable",
        "Tid Scan",
    ]


def nodes(plan):
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)
