"""A look at a log before its first version is published, of a log that has names without an end."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.service.catalog_managed.test_publisher import commits
from tests.service.faults import FaultyLog, FaultyStorage
from tests.service.world import World
from tidegate_service.core.catalog_managed.look import NotSeenInTime, Unseen, WentOn, look
from tidegate_service.core.catalog_managed.publish import publish_batch, publish_table
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.storage import Log, Storage
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


class SlowLog(FaultyLog):
    """Its listing never ends."""

    async def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        while True:
            await asyncio.sleep(0)
            yield ()


class SlowStorage(FaultyStorage):
    def log(self, location: str, *, who: str | None = None) -> Log:
        return SlowLog(super().log(location, who=who), self, [])


async def unseen_of(index: Index, storage: Storage, table: TableHead) -> Unseen:
    with pytest.raises(Unseen) as caught:
        await publish_batch(index, storage, table)
    return caught.value


@pytest.mark.parametrize("published", [-1, 0])
@pytest.mark.parametrize("bound", [{"within_s": 0.05}, {"page_s": 0.05}])
async def test_a_log_that_cannot_be_looked_through_in_time_is_left(
    world: World, index: Index, published: int, bound: dict[str, float]
):
    table = await world.create(catalog_managed=True)
    if published == 0:
        assert await publish_table(index, world.context.storage, table) == 1
        await commits(world, table, 1)
    head = await get_table(world.context, table.id)
    assert head.published_version == published
    storage = SlowStorage(world.context.storage)
    unseen, log = await unseen_of(index, storage, head), storage.log(table.location)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(NotSeenInTime, match=r"looked through within 0\.05 s"):
            await look(index, log, head, unseen, own=OwnLogs(), **bound)


async def test_a_log_that_another_instance_publishes_to_is_left_for_then(
    world: World, index: Index
):
    """What is asked of it is of a version that is no longer the last one."""
    table = await world.create(catalog_managed=True)
    storage = world.context.storage
    unseen = await unseen_of(index, storage, table)
    await commits(world, table, 2)
    assert await publish_table(index, storage, await get_table(world.context, table.id)) == 3
    # As a folder may show it that is read while files come.
    world.log_file(table, 1).unlink()
    log = storage.log(table.location)
    with pytest.raises(WentOn):
        await look(index, log, table, unseen, own=OwnLogs())
    assert (await get_table(world.context, table.id)).state is TableState.ACTIVE
