"""How often the store is asked before reads of plain tables, and for whom."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.far_ahead import FAR, written_past
from tests.service.log.watched.reading import Held, read, waiting
from tests.service.storage.watched_store import WatchedStorage
from tidegate_service.core.access.roles import Caller, Principal
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    StorageUnavailable,
)
from tidegate_service.core.instance.log_looks import LogLooks
from tidegate_service.core.tables.lookup import get_head

pytestmark = pytest.mark.anyio


async def test_one_request_for_the_version_behind_the_head(world, store, table):
    assert await read(world.context, table) == 0
    assert (store.looks, store.reads) == ([1], [])


async def test_a_version_that_the_index_has_is_not_looked_for(world, store, table):
    await propose(world.context, table.id, proposal(add("x=1/a")))
    store.looks.clear()
    assert await read(world.context, table, through=1) == 1
    assert store.looks == []
    await read(world.context, table, through=2)
    assert store.looks == [2]


async def test_of_a_catalog_managed_table_the_store_is_not_asked(world, store):
    table = await world.create(catalog_managed=True)
    store.looks.clear()
    assert await read(world.context, table) == 0
    assert store.looks == []


async def test_it_is_looked_for_where_a_reader_asks_for_it(world, table):
    written_past(world, table, 1, 2)
    assert await read(world.context, table, through=2) == 2


async def test_those_that_come_while_it_is_asked_share_the_next_request(world, store, table):
    held = Held(store)
    first = asyncio.create_task(read(world.context, table))
    await held.asked.wait()
    others = [asyncio.create_task(read(world.context, table)) for _ in range(8)]
    await waiting(world.context, table, 9)
    written_past(world, table, 1, 1)
    held.may.set()
    # The first one's request was sent before the version was there, or after.
    assert await asyncio.gather(first, *others) in ([0] + 8 * [1], 9 * [1])
    assert len(store.looks) <= 3


async def test_principals_do_not_wait_for_each_other(world, store, table):
    held = Held(store)
    first = asyncio.create_task(read(world.context, table))
    await held.asked.wait()
    store.reading = WatchedStorage(None).reading
    another = world.context.called_by(Caller(principal=Principal(name="another", grants=())))
    async with asyncio.timeout(10):
        assert await read(another, table) == 0
    held.may.set()
    await first


async def test_an_outage_is_told_to_all_who_wait_at_once(world, store, table):
    held = Held(store)
    down = StorageUnavailable("a moment's outage")

    async def reading(version):
        await held.reading(version)
        raise down

    store.reading = reading
    asked = [asyncio.create_task(read(world.context, table)) for _ in range(9)]
    await held.asked.wait()
    held.may.set()
    assert await asyncio.gather(*asked, return_exceptions=True) == 9 * [down]
    assert len(store.looks) <= 2
    store.reading = WatchedStorage(None).reading
    assert await read(world.context, table) == 0


async def test_who_waits_for_one_that_leaves_asks_for_itself(world, store, table):
    held = Held(store)
    first = asyncio.create_task(read(world.context, table))
    await held.asked.wait()
    second = asyncio.create_task(read(world.context, table))
    await waiting(world.context, table, 2)
    first.cancel()
    written_past(world, table, 1, 1)
    held.may.set()
    assert await second == 1


async def test_what_was_begun_to_be_read_in_goes_on_where_its_reader_leaves(world, store, table):
    written_past(world, table, 1, FAR)
    held = asyncio.Event(), asyncio.Event()

    async def reading(version):
        if version == FAR:
            held[0].set()
            await held[1].wait()

    store.reading = reading
    first = asyncio.create_task(read(world.context, table))
    await held[0].wait()
    first.cancel()
    held[1].set()
    assert await world.context.running.drain(timeout_s=10)
    assert (await get_head(world.context, table.id)).latest_version == FAR


@pytest.mark.parametrize(("after_s", "asks"), [(4.9, []), (5.0, [1])])
async def test_a_setting_bounds_how_old_a_look_may_be(world, store, table, after_s, asks):
    now = [100.0]
    context = replace(world.context, log_looks=LogLooks(max_age_s=5.0), monotonic_s=lambda: now[0])
    await read(context, table)
    store.looks.clear()
    now[0] += after_s
    await read(context, table)
    assert store.looks == asks


async def test_a_look_that_failed_is_not_used_again(world, store, table):
    context = replace(world.context, log_looks=LogLooks(max_age_s=3600.0))

    async def down(version):
        raise StorageUnavailable("a moment's outage")

    store.reading = down
    with pytest.raises(StorageUnavailable):
        await read(context, table)
    store.reading = WatchedStorage(None).reading
    written_past(world, table, 1, 1)
    assert await read(context, table) == 1
