"""Commits and publishing while the S3 server loses, delays and forges answers."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.servers.store_proxy import COMMITS, StoreFault
from tests.service.world import World
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import CommitStateUnknown, StorageUnavailable
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits

pytestmark = pytest.mark.anyio

PATIENCE_S = 9.0
SETTLED = [
    StoreFault.ANSWER_LOST,
    StoreFault.ERROR_AFTER,
    StoreFault.LOST,
    StoreFault.SLOW_DOWN,
    StoreFault.CONFLICT,
]


@pytest.fixture
def impatient_world(failing_world, store_proxy, s3_prefix) -> World:
    """The same with deadlines that a test can wait for."""
    few = StorageLimits(put_s=1.0, call_s=2.0)
    storage = ObjectStorage(s3_prefix, options=store_proxy.storage_options, limits=few)
    context = replace(failing_world.context, storage=storage)
    return replace(failing_world, context=context).limited(put_s=3.0)


@pytest.mark.parametrize("fault", SETTLED)
async def test_a_commit_lands_once_whatever_became_of_its_put(failing_world, store_proxy, fault):
    table = await failing_world.create()
    body = proposal(add("a"))
    store_proxy.script(*[fault] * 3)

    landed = await propose(failing_world.context, table.id, body)

    assert isinstance(landed, Committed)
    assert (landed.record.version, landed.replayed) == (1, False)
    assert failing_world.log_file(table, 1).exists()
    assert not failing_world.log_file(table, 2).exists()
    again = await propose(failing_world.context, table.id, body)
    assert again.replayed
    assert again.record == landed.record


@pytest.mark.parametrize("fault", SETTLED)
async def test_a_creation_lands_once(failing_world, store_proxy, fault):
    store_proxy.script(fault)

    table = await failing_world.create()

    assert table.latest_version == 0
    assert failing_world.log_file(table, 0).exists()


async def test_a_commit_whose_put_is_held_lands_by_the_next_one(impatient_world, store_proxy):
    table = await impatient_world.create()
    store_proxy.script(StoreFault.HELD)

    landed = await propose(impatient_world.context, table.id, proposal(add("a")))
    before = impatient_world.log_file(table, 1).read_bytes()
    await asyncio.to_thread(store_proxy.release)

    assert isinstance(landed, Committed)
    assert impatient_world.log_file(table, 1).read_bytes() == before
    assert store_proxy.count("PUT") >= 3


async def test_a_store_that_refuses_writes_says_so_and_recovers(failing_world, store_proxy):
    table = await failing_world.create()
    body = proposal(add("a"))
    store_proxy.script(StoreFault.DENIED)

    with pytest.raises(StorageUnavailable, match="403"):
        await propose(failing_world.context, table.id, body)

    assert (await propose(failing_world.context, table.id, body)).record.version == 1


async def test_a_store_that_falls_silent_does_not_keep_the_row_lock(
    impatient_world, store_proxy, index
):
    table = await impatient_world.create()
    body = proposal(add("a"))
    store_proxy.always(StoreFault.ANSWER_HELD, path=r"/_delta_log/0{19}1\.json$")
    waiting = asyncio.create_task(propose(impatient_world.context, table.id, body))
    await asyncio.to_thread(store_proxy.wait_held)

    # Nobody but the lock's holder talks to the store, so this waits for the lock alone.
    async with asyncio.timeout(PATIENCE_S), index.commit_section(table.id) as section:
        assert section.table.latest_version == 0
    await asyncio.to_thread(store_proxy.heal)

    try:
        landed = await waiting
    except CommitStateUnknown:
        landed = await propose(impatient_world.context, table.id, body)
    assert landed.record.version == 1
    assert not impatient_world.log_file(table, 2).exists()


@pytest.mark.parametrize("fault", SETTLED)
async def test_publishing_is_settled_by_the_bytes(failing_world, store_proxy, index, fault):
    table = await failing_world.create(catalog_managed=True)
    await propose(failing_world.context, table.id, proposal(add("a")))
    store_proxy.script(fault, fault)
    publisher = Publisher(index, failing_world.context.storage)

    published = 0
    for _ in range(3):
        published += await publisher.round()

    head = await get_table(failing_world.context, table.id)
    assert published == 2
    assert (head.published_version, head.state) == (1, TableState.ACTIVE)
    assert store_proxy.count("PUT", COMMITS) >= 2


async def test_a_name_that_is_taken_and_empty_quarantines_nothing(
    failing_world, store_proxy, index
):
    """A store may say that another write of the name was under way, which then fails."""
    table = await failing_world.create(catalog_managed=True)
    store_proxy.script(*[StoreFault.CONFLICT] * 2)
    publisher = Publisher(index, failing_world.context.storage)

    assert await publisher.round() == 0
    assert await publisher.round() == 0
    assert (await get_table(failing_world.context, table.id)).state is TableState.ACTIVE
    assert await publisher.round() == 1
