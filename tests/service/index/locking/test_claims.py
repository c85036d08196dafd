"""Locations are claimed by locks that nobody queues up for behind others."""

import asyncio
import random

import pytest

from tests.builders.by_x import METADATA, PROTOCOL
from tests.service.commit.committing import create, new_table, ratified
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable, TableExists
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio

GIVE_UP_S = 60.0


@pytest.fixture
def impatient(engine) -> PostgresIndex:
    return PostgresIndex(engine, limits=IndexLimits(claim_s=0.3))


async def test_who_waits_for_a_folder_keeps_nobody_out_of_it(index, other_index, waiters):
    """As where a registration inside takes its time."""
    async with index.creation_section(new_table(location="s3://lake/teams/a")):
        above = asyncio.create_task(
            create(other_index, table=new_table(location="s3://lake/teams"))
        )
        await waiters(1)
        for name in "bcd":
            await create(index, table=new_table(location=f"s3://lake/teams/{name}"))
        assert not above.done()
    with pytest.raises(TableExists, match="location"):
        await above


async def test_it_gives_up(index, impatient):
    table = new_table(location="s3://lake/teams")
    async with index.creation_section(new_table(location="s3://lake/teams/a")):
        with pytest.raises(IndexUnavailable, match="about to become another table's") as refused:
            await create(impatient, table=table)
        assert refused.value.code is Code.INDEX_UNAVAILABLE
    assert (await create(impatient, table=table)).latest_version == 0


async def test_who_would_be_refused_waits_for_nobody(index, impatient):
    await create(index, table=new_table(location="s3://lake/teams/there"))
    async with index.creation_section(new_table(location="s3://lake/teams/a")):
        with pytest.raises(TableExists, match="location"):
            await create(impatient, table=new_table(location="s3://lake/teams"))


def overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


async def test_no_two_of_many_creations_overlap(index, other_index):
    """Of two instances, at places inside and around each other: each is made or refused, and what
    is refused lies in the way of another one."""
    drawn = random.Random(20)
    parts = [drawn.choices("abc", k=drawn.randint(1, 4)) for _ in range(60)]
    places = ["/".join(["s3://lake", *each]) for each in parts]

    async def made(number: int, place: str) -> str | None:
        via = (index, other_index)[number % 2]
        while True:
            try:
                async with via.creation_section(new_table(location=place)) as section:
                    await section.append(ratified(0, PROTOCOL, METADATA))
                    await asyncio.sleep(drawn.uniform(0, 0.05))
                    if drawn.random() < 0.2:
                        return None
                    await section.save()
                return place
            except IndexUnavailable:
                continue
            except TableExists:
                return None

    async with asyncio.timeout(GIVE_UP_S):
        found = await asyncio.gather(*(made(n, place) for n, place in enumerate(places)))
    tables = [place for place in found if place is not None]
    assert len(tables) > 3
    assert [
        (one, other)
        for at, one in enumerate(tables)
        for other in tables[at + 1 :]
        if overlap(one, other)
    ] == []
    told = await index.tables(prefix="", after=None, limit=1000, known=ReplicatedHeads())
    assert sorted(table.location for table in told) == sorted(tables)
