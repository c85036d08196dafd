"""Which version there was at a time."""

from uuid import UUID

import pytest
from sqlalchemy import text

from tests.service.commit.committing import create, land
from tidegate_service.index.reading.reads import VERSION_AT

pytestmark = pytest.mark.anyio


async def test_the_version_at_a_time(index):
    table = await create(index)
    for _ in range(2):
        table = await land(index, table)
    assert await index.version_at(table.id, 999) is None
    assert [await index.version_at(table.id, t) for t in (1_000, 1_001, 1_999)] == [0, 1, 2]


async def test_a_version_is_found_by_its_time_without_looking_at_all(index, engine):
    """However early it is: there is no index by time."""
    table = await create(index)
    for _ in range(40):
        table = await land(index, table)
    found = [await index.version_at(table.id, 1_000 + version) for version in range(41)]
    assert found == list(range(41))
    assert await index.version_at(table.id, 10**15) == 40
    plan = text("EXPLAIN (ANALYZE, FORMAT JSON) " + VERSION_AT.text).bindparams(
        table_id=UUID(table.id), timestamp_ms=1_000
    )
    async with engine.connect() as connection:
        # Where there are few, all of them are read as soon.
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        (explained,) = (await connection.execute(plan)).scalar_one()
    assert looked_at(explained["Plan"], "commits") < 41


def looked_at(plan, relation) -> int:
    """How many rows of the relation a plan has read."""
    own = plan["Actual Rows"] * plan["Actual Loops"] if plan.get("Relation Name") == relation else 0
    removed = plan.get("Rows Removed by Filter", 0) if own else 0
    return own + removed + sum(looked_at(part, relation) for part in plan.get("Plans", ()))
