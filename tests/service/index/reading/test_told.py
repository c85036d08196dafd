"""Heads that callers are told of: which are known to be on the standby, and by which database."""

from dataclasses import replace

import pytest

from tests.service.commit.committing import create, land
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.index.reading.told import StandbyWaits

pytestmark = pytest.mark.anyio

HERE = "here"


async def test_a_head_is_known_with_all_that_is_before_it(index):
    heads = ReplicatedHeads()
    first = await create(index)
    second = await land(index, first)
    assert not heads.has(first, database=HERE)
    heads.remember(second, database=HERE)
    heads.remember(first, database=HERE)
    assert heads.has(first, database=HERE)
    assert heads.has(second, database=HERE)
    for other in (
        replace(second, latest_version=second.latest_version + 1),
        replace(second, latest_timestamp=second.latest_timestamp + 1),
        replace(second, epoch=second.epoch + 1),
    ):
        assert not heads.has(other, database=HERE)
    assert not heads.has(second, database="elsewhere")
    heads = ReplicatedHeads(tables=1)
    heads.remember(second, database=HERE)
    heads.remember(replace(second, id="another"), database=HERE)
    assert not heads.has(second, database=HERE)


async def test_a_standby_speaks_for_its_own_primary_only(index):
    """A failover may come between a read and the wait for it."""
    table = await create(index)
    glance = await index.told_glance(table.id, known=ReplicatedHeads())
    waits = StandbyWaits(index._connections)
    await waits.has_all_of(glance.database)
    with pytest.raises(IndexUnavailable, match="another database"):
        await waits.has_all_of("the one before")


async def test_ids_of_no_table(index):
    known = ReplicatedHeads()
    for no_id in ("main.test.t", "\0"):
        assert await index.told_glance(no_id, known=known) is None
        assert await index.app_transaction(no_id, "app", known=known) is None
        assert await index.told_head(no_id, known=known) is None
