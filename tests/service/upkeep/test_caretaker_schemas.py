"""What one schema has the caretaker do costs the tables of others little."""

import asyncio

import pytest

from tests.service.upkeep.jobs import Counting
from tests.service.upkeep.test_caretaker import KIND, caring
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker, CaretakerLimits
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


async def test_each_has_its_turn_however_many_tables_another_has(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    many = [await world.create() for _ in range(30)]
    mine = await world.create(name="main.mine.t")
    job = Counting(every=0)
    caretaker = Caretaker(index, upkeep, [job], share=1, interval_s=0.01)
    async with caring(caretaker):
        while len(job.runs) < 40:
            await asyncio.sleep(0.01)
    ran = [table_id for table_id, _ in job.runs]
    assert ran.count(mine.id) >= 10
    assert {table.id for table in many} & set(ran)


async def test_what_takes_long_gives_up_and_is_put_off(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    table = await world.create()
    short = CaretakerLimits(run_s=0.1)
    caretaker = Caretaker(index, upkeep, [Counting(takes_s=60)], share=1, limits=short)
    assert await caretaker.round() == 1
    standing = (await upkeep.standing(table.id))[KIND]
    assert standing.failures == 1
    assert "longer than 0 s" in (standing.trouble or "")


async def test_others_do_not_rest_as_long_as_one_whose_work_takes_long(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    slow = await world.create()
    mine = await world.create(name="main.mine.quick")

    class SlowOfOne(Counting):
        async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
            self._takes_s = 0.3 if table.id == slow.id else 0.0
            return await super().run(table, record)

    job = SlowOfOne(every=0)
    limits = CaretakerLimits(rest_s=0.1)
    caretaker = Caretaker(index, upkeep, [job], share=0.01, interval_s=0.01, limits=limits)
    async with caring(caretaker):
        while not {(slow.id, 0)} <= set(job.runs):
            await asyncio.sleep(0.01)
        ran = job.runs.count((mine.id, 0))
        while job.runs.count((mine.id, 0)) < ran + 3:
            await asyncio.sleep(0.01)
    assert job.runs.count((slow.id, 0)) == 1


async def test_beside_one_that_works_for_long_another_works_for_other_schemas(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    slow = [await world.create(), await world.create()]
    mine = await world.create(name="main.mine.quick")
    at_work: set[str] = set()

    class EndlessOfOne(Counting):
        async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
            if table.id in {each.id for each in slow}:
                at_work.add(table.id)
                await asyncio.Event().wait()
            return await super().run(table, record)

    job = EndlessOfOne(every=0)
    first = Caretaker(index, upkeep, [job], share=1, interval_s=0.01)
    second = Caretaker(index, upkeep, [job], share=1, interval_s=0.01, beside=first)
    async with caring(first), caring(second):
        while not at_work or job.runs.count((mine.id, 0)) < 3:
            await asyncio.sleep(0.01)
        # Of a schema there is never more than one at work.
        assert len(at_work) == 1
