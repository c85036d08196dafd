"""The publisher keeps logs up with their index, round after round, whatever one table meets."""

import asyncio

import pytest

from tests.service.faults import Fault, FaultyStorage
from tests.service.world import World, add, proposal
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.ports import Index
from tidegate_service.core.propose import propose
from tidegate_service.core.records import TableRecord
from tidegate_service.core.tables import get_table

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


async def commits(world: World, table: TableRecord, count: int) -> None:
    for number in range(count):
        await propose(world.context, table.id, proposal(add(f"f{number}")))


async def lag(world: World, table: TableRecord) -> int:
    head = await get_table(world.context, table.id)
    return head.latest_version - head.published_version


async def test_a_round_publishes_every_table_that_lags(world: World, index: Index):
    tables = [await world.create(catalog_managed=True) for _ in range(3)]
    for table in tables:
        await commits(world, table, 2)
    publisher = Publisher(index, world.context.storage)
    assert await publisher.round() == 9
    assert [await lag(world, table) for table in tables] == [0, 0, 0]
    assert await publisher.round() == 0


async def test_a_table_whose_store_fails_waits_for_the_next_round(
    world: World, index: Index, faults: FaultyStorage
):
    tables = [await world.create(catalog_managed=True) for _ in range(2)]
    publisher = Publisher(index, world.context.storage)
    faults.faults.append(Fault.REFUSED)
    assert await publisher.round() == 1
    assert sorted([await lag(world, table) for table in tables]) == [0, 1]
    assert await publisher.round() == 1
    assert [await lag(world, table) for table in tables] == [0, 0]


async def test_an_answer_that_is_lost_is_settled_by_looking(
    world: World, index: Index, faults: FaultyStorage
):
    table = await world.create(catalog_managed=True)
    publisher = Publisher(index, world.context.storage)
    faults.faults.extend([Fault.LOST, Fault.ANSWER_LOST])
    assert await publisher.round() == 0
    assert await publisher.round() == 1
    assert await lag(world, table) == 0


async def test_two_publishers_agree(world: World, index: Index):
    table = await world.create(catalog_managed=True)
    await commits(world, table, 5)
    publishers = [Publisher(index, world.context.storage) for _ in range(2)]
    await asyncio.gather(*(publisher.round() for publisher in publishers))
    assert await lag(world, table) == 0
    assert [world.log_file(table, version).exists() for version in range(6)] == [True] * 6


async def test_a_wake_up_does_not_wait_for_the_interval(world: World, index: Index):
    table = await world.create(catalog_managed=True)
    publisher = Publisher(index, world.context.storage, interval_s=3600.0)
    running = asyncio.create_task(publisher.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while await lag(world, table):
                await asyncio.sleep(0)
            await commits(world, table, 1)
            publisher.wake(table.id)
            while await lag(world, table):
                await asyncio.sleep(0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
