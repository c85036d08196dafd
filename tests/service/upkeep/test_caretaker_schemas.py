"""What one schema has the caretaker do costs the tables of others little."""

import asyncio
import time

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.jobs import Counting
from tests.service.upkeep.test_caretaker import KIND, caring, commit
from tests.service.world import World
from tidegate_service.background import caretaker as module
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep import Done, UpkeepRecord
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
    world: World, index: Index, upkeep: PostgresUpkeep, monkeypatch
):
    monkeypatch.setattr(module, "RUN_S", 0.1)
    table = await world.create()
    assert await Caretaker(index, upkeep, [Counting(takes_s=60)], share=1).round() == 1
    standing = (await upkeep.standing(table.id))[KIND]
    assert standing.failures == 1
    assert "longer than 0 s" in (standing.trouble or "")


async def test_others_do_not_rest_as_long_as_one_whose_work_takes_long(
    world: World, index: Index, upkeep: PostgresUpkeep, monkeypatch
):
    monkeypatch.setattr(module, "MOST_REST_S", 0.1)
    slow = await world.create()
    mine = await world.create(name="main.mine.quick")

    class SlowOfOne(Counting):
        async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
            self._takes_s = 0.3 if table.id == slow.id else 0.0
            return await super().run(table, record)

    job = SlowOfOne(every=0)
    caretaker = Caretaker(index, upkeep, [job], share=0.01, interval_s=0.01)
    async with caring(caretaker):
        while not {(slow.id, 0)} <= set(job.runs):
            await asyncio.sleep(0.01)
        ran = job.runs.count((mine.id, 0))
        while job.runs.count((mine.id, 0)) < ran + 3:
            await asyncio.sleep(0.01)
    assert job.runs.count((slow.id, 0)) == 1


async def test_what_is_urgent_in_one_has_half_of_the_time(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    await world.create()
    urgent = Counting(UpkeepKind.CHECKPOINT, every=0, takes_s=0.2)
    # Of a first version, one version is held.
    caretaker = Caretaker(index, upkeep, [urgent], share=0.01, interval_s=0.01, most_behind=0)
    async with caring(caretaker):
        await asyncio.sleep(2.0)
    assert 2 <= len(urgent.runs) <= 6


async def test_versions_before_the_first_one_held_are_none_that_are_behind(
    world: World, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    table = await world.create()
    await commit(world, table, 3)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE tables SET first_version = 2"))
    (due,) = (await upkeep.due([KIND], after=None, also=[], limit=10)).due
    assert (due.behind, due.scope) == (2, "main.test")


async def test_what_bridges_a_rest_does_not_wait_for_it(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    """And takes no more than its own share of it, however many schemas have some to be done."""
    for number in range(5):
        await world.create(name=f"main.s{number}.t")
    slow = Counting(every=0, takes_s=0.5)
    bridging = Counting(UpkeepKind.COMPACTION, every=0, takes_s=0.01)
    caretaker = Caretaker(index, upkeep, [slow, bridging], share=0.02, interval_s=0.01)
    async with caring(caretaker):
        while not slow.runs:
            await asyncio.sleep(0.01)
        ran, began = len(bridging.runs), time.monotonic()
        while len(bridging.runs) < ran + 3:
            await asyncio.sleep(0.01)
        took_s = time.monotonic() - began
    # The slow one rests for 24 s, and each of these for half a second.
    assert len(slow.runs) == 1
    assert took_s > 0.9


async def test_what_bridges_does_not_make_the_others_rest(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    await world.create()
    usual = Counting(every=0)
    bridging = Counting(UpkeepKind.COMPACTION, every=0, takes_s=0.3)
    caretaker = Caretaker(index, upkeep, [usual, bridging], share=0.02, interval_s=0.01)
    async with caring(caretaker):
        while not bridging.runs:
            await asyncio.sleep(0.01)
        ran = len(usual.runs)
        while len(usual.runs) < ran + 3:
            await asyncio.sleep(0.01)
    assert len(bridging.runs) == 1


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
