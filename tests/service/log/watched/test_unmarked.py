"""What a publisher put into a log and did not mark, hundreds of versions of it, on a slow store."""

import asyncio
from dataclasses import replace

import pytest

from tests.service.catalog_managed.restoring import body, commit
from tests.service.commit.far_ahead import Lock
from tests.service.world import World
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import IndexUnavailable, StorageUnavailable, TableQuarantined
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

PUT = 30
"""The last version that lies in the log."""


@pytest.fixture
async def table(world):
    """Nothing of it is marked; two versions wait that are not there."""
    table = await world.create(catalog_managed=True)
    await asyncio.gather(*(commit(world, table, f"n{number}") for number in range(PUT + 2)))
    world.log_folder(table).mkdir(parents=True)
    for version in range(PUT + 1):
        content = await world.context.index.content(table.id, version)
        world.log_file(table, version).write_bytes(content)
    return table


def started(world: World, **changed: object) -> World:
    """An instance that has just started, and is sure of no table."""
    own = {"heads": HeadChecks(), "commit": CommitQueue(run_group).commit}
    return World(replace(world.context, **own, **changed))


async def proposing(context, table):
    assert (await propose(context, table.id, body("new"))).record.version == PUT + 3


async def checking(context, table):
    assert (await conflict_check(context, table.id, body("new"))).version == PUT + 3


async def aborting(context, table):
    await abort(context, table.id, "never")


async def forgetting(context, table):
    await forget_table(context, table.id)


@pytest.mark.parametrize("asks", [proposing, checking, aborting, forgetting])
async def test_no_lock_is_held_while_it_is_read(world, table, store, database_url, asks):
    fresh = started(world)
    lock = Lock(database_url, table)
    store.reading, store.reads = lock.reading, []
    await asks(fresh.context, table)
    assert lock.held == []
    assert set(range(PUT + 2)) <= set(store.reads)
    if asks is not forgetting:
        assert (await get_table(world.context, table.id)).published_version == PUT


async def test_other_commits_go_on_while_the_store_does_not_answer(world, table, store):
    fresh = started(world)
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def hang(version: int) -> None:
        if version > 1:
            begun.set()
            await let_go.wait()

    store.reading = hang
    looking = asyncio.create_task(propose(fresh.context, table.id, body("new")))
    async with asyncio.timeout(30):
        await begun.wait()
        landed = await propose(world.context, table.id, body("other"))
    assert landed.record.version == PUT + 3
    assert not looking.done()
    let_go.set()
    assert (await looking).record.version == PUT + 4


async def test_what_was_read_is_kept_where_there_is_no_time_for_more(world, table):
    hurried = started(world.limited(marked_versions=8), commit_deadline_s=0.0)
    for published in (7, 15):
        with pytest.raises(IndexUnavailable, match="what was read is kept"):
            await propose(hurried.context, table.id, body("new"))
        assert (await get_table(world.context, table.id)).published_version == published
    landed = await propose(started(world).context, table.id, body("new"))
    assert landed.record.version == PUT + 3


async def test_what_was_read_before_the_store_failed_is_kept(world, table, store):
    async def fail(version: int) -> None:
        if version > PUT - 10:
            raise StorageUnavailable("the store is down")

    store.reading = fail
    fresh = started(world)
    with pytest.raises(StorageUnavailable):
        await propose(fresh.context, table.id, body("new"))
    assert (await get_table(world.context, table.id)).published_version == PUT - 10


async def test_a_file_that_is_not_what_was_ratified_ends_it(world, table):
    world.log_file(table, PUT - 5).write_text("other bytes")
    with pytest.raises(
        TableQuarantined, match=f"a file of version {PUT - 5}, and that version cannot be published"
    ):
        await propose(started(world).context, table.id, body("new"))
    assert (await get_table(world.context, table.id)).published_version == PUT - 6
