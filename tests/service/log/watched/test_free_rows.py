"""While a slow store is waited for, the table's row is free for everybody else."""

import asyncio
from dataclasses import replace
from itertools import count

import pytest

from tests.service.catalog_managed.restoring import body, commit, publish
from tests.service.commit.far_ahead import Lock, written_past
from tests.service.log.test_hidden_log import left_behind
from tests.service.maintenance.pictures import checkpointed
from tests.service.world import World, make_world
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

HANGS_S = 3.0
ASKED_EACH_S = 0.25


class SlowOnce:
    """The first call to the store hangs; the row is asked for at each call, and all the while."""

    def __init__(self, store, url, table):
        self.lock = Lock(url, table)
        self.calls = 0
        store.reads = []
        store.reading, store.listing = self.call, lambda: self.call(-1)

    async def call(self, version):
        self.calls += 1
        for _ in range(int(HANGS_S / ASKED_EACH_S) if self.calls == 1 else 0):
            await self.lock.reading(version)
            await asyncio.sleep(ASKED_EACH_S)
        await self.lock.reading(version)


async def proposing(context, table):
    await propose(context, table.id, body("new"))


async def reading_ahead(context, table):
    await propose(context, table.id, replace(body("new"), read_version=2))


async def checking(context, table):
    await conflict_check(context, table.id, body("new"))


async def aborting(context, table):
    await abort(context, table.id, "never")


async def again_aborted(context, table):
    with pytest.raises(Exception, match="aborted"):
        await propose(context, table.id, body("closed"))


@pytest.mark.parametrize("asks", [proposing, checking, aborting])
async def test_of_a_plain_table_that_was_left_alone(world, store, database_url, asks):
    table = await world.create()
    await commit(world, table, "a")
    world.checked_long_ago()
    slow = SlowOnce(store, database_url, table)
    await asks(world.context, table)
    # Its head's file, and what is behind it.
    assert slow.calls >= 2
    assert slow.lock.held == []


@pytest.mark.parametrize("asks", [proposing, checking, aborting])
async def test_of_a_plain_table_whose_log_was_cleaned_up_past_its_index(
    world, store, database_url, asks
):
    table, _ = await left_behind(world)
    slow = SlowOnce(store, database_url, table)
    await asks(world.context, table)
    # The head, the log's names, and the whole log.
    assert slow.calls >= 4
    assert slow.lock.held == []
    assert (await get_table(world.context, table.id)).first_version == 3


async def test_of_a_plain_table_that_is_rebuilt(world, store, database_url):
    table = await world.create()
    written_past(world, table, 1, 4)
    checkpointed(world, table, 2)
    slow = SlowOnce(store, database_url, table)
    assert (await rebuild_table(world.context, table.id)).latest_version == 4
    assert slow.calls >= 5
    assert slow.lock.held == []


@pytest.mark.parametrize("asks", [reading_ahead, checking, again_aborted])
async def test_of_a_plain_table_that_others_write_to(world, store, database_url, asks):
    table = await world.create()
    if asks is again_aborted:
        await abort(world.context, table.id, "closed")
    written_past(world, table, 2 if asks is again_aborted else 1, 2)
    slow = SlowOnce(store, database_url, table)
    await asks(world.context, table)
    assert slow.calls >= 2
    assert slow.lock.held == []


async def test_a_slow_put_that_found_its_version_taken_is_the_only_one_under_its_lock(
    world, store, database_url
):
    table = await world.create()
    written_past(world, table, 1, 4)
    slow = SlowOnce(store, database_url, table)
    store.puts = []
    await proposing(world.context, table)
    assert store.puts == [1, 5]
    # What the PUT found.
    assert set(slow.lock.held) == {1}


def started(world):
    """An instance that has just started, and is sure of no table."""
    own = {"heads": HeadChecks(), "commit": CommitQueue(run_group).commit}
    return World(replace(world.context, **own))


async def unpublished(world, table):
    """Nothing is there."""


async def published(world, table):
    await publish(world, table)


async def unmarked(world, table):
    world.log_folder(table).mkdir(parents=True)
    for version in range(2):
        content = await world.context.index.content(table.id, version)
        world.log_file(table, version).write_bytes(content)


async def cleaned_up(world, table):
    """Only a checkpoint is left."""
    await publish(world, table)
    checkpointed(world, table, 1)
    for version in range(2):
        world.log_file(table, version).unlink()


@pytest.mark.parametrize(
    ("asks", "log"),
    [
        (proposing, unpublished),
        (proposing, published),
        (proposing, unmarked),
        (proposing, cleaned_up),
        (checking, cleaned_up),
        (aborting, unmarked),
    ],
)
async def test_of_a_catalog_managed_table_that_is_met_first(world, store, database_url, asks, log):
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await log(world, table)
    slow = SlowOnce(store, database_url, table)
    await asks(started(world).context, table)
    assert slow.calls
    assert slow.lock.held == []


async def test_of_a_plain_table_whose_quarantine_ends(world, store, database_url):
    table = await world.create()
    async with world.context.index.commit_section(table.id) as section:
        await section.quarantine("to see")
        await section.save()
    written_past(world, table, 1, 2)
    slow = SlowOnce(store, database_url, table)
    assert (await release_table(world.context, table.id)).latest_version == 2
    assert slow.lock.held == []


async def test_a_check_is_good_although_another_instance_commits_meanwhile(
    world, store, other_index, tmp_path
):
    """Steadily, so that the row is never where it was when the store was asked."""
    table = await world.create()
    await commit(world, table, "first")
    other = make_world(other_index, store, tmp_path.as_uri())
    names, asked = count(), []

    async def overtaken(version):
        if version == 0:
            asked.append(version)
            await commit(other, table, f"theirs-{next(names)}")

    await commit(other, table, "other")
    world.checked_long_ago()
    store.reading = overtaken
    landed = await propose(world.context, table.id, body("ours"))
    assert (landed.record.version, asked) == (4, [0])
