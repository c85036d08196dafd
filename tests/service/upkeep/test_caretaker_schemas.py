"""What one schema has the caretaker do costs the tables of others little."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.jobs import Counting
from tests.service.upkeep.test_caretaker import KIND, caring, commit
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker, CaretakerLimits
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import Done, Page, UpkeepRecord
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


@pytest.mark.slow
async def test_what_is_urgent_in_one_has_half_of_the_time(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    await world.create()
    urgent = Counting(UpkeepKind.CHECKPOINT, every=0, takes_s=0.2)
    # Of a first version, one version is held. A share of 0.001 is a rest of minutes.
    caretaker = Caretaker(index, upkeep, [urgent], share=0.001, interval_s=0.01, most_behind=0)
    began = time.monotonic()
    async with asyncio.timeout(60), caring(caretaker):
        while len(urgent.runs) < 4:
            await asyncio.sleep(0.01)
    # Three that ended, and as long a rest after each.
    assert time.monotonic() - began >= 6 * 0.2


async def test_versions_before_the_first_one_held_are_none_that_are_behind(
    world: World, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    table = await world.create()
    await commit(world, table, 3)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE tables SET first_version = 2"))
    (due,) = (await upkeep.due([KIND], after=None, also=[], limit=10)).due
    assert (due.behind, due.scope) == (2, "main.test")


class SlowPages(PostgresUpkeep):
    """A look at a page of tables takes three seconds; `pages` counts them."""

    pages = 0

    async def due(self, kinds: Sequence[str], **asked: Any) -> Page:
        if asked["limit"]:
            self.pages += 1
            await asyncio.sleep(3)
        return await super().due(kinds, **asked)


async def test_looks_at_pages_rest_and_what_is_woken_is_found_meanwhile(
    world: World, index: Index, engine: AsyncEngine
):
    first, second = [await world.create(name=f"main.s{number}.t") for number in range(2)]
    upkeep, job = SlowPages(engine), Counting()
    caretaker = Caretaker(index, upkeep, [job], share=0.5, interval_s=10)
    async with caring(caretaker):
        while len(job.runs) < 2:
            await asyncio.sleep(0.01)
        # Of what the page brought, one thing after the other was done; a commit is seen at once.
        await commit(world, second)
        caretaker.wake(second.id)
        while len(job.runs) < 3:
            await asyncio.sleep(0.01)
    assert sorted(job.runs) == sorted([(first.id, 0), (second.id, 0), (second.id, 1)])
    assert upkeep.pages == 1


async def test_a_look_brings_what_one_can_choose_from_however_much_is_due(
    world: World, upkeep: PostgresUpkeep
):
    """Of each schema and kind, what is the farthest behind, and any other."""
    tables = [await world.create(name=f"main.s{n % 2}.t{n}") for n in range(40)]
    await commit(world, tables[7], 5)
    kinds = [KIND, UpkeepKind.CHECKPOINT]
    seen: set[str] = set()
    while len(seen) < len(tables):
        due = (await upkeep.due(kinds, after=None, also=[], limit=100, some=True)).due
        assert {(each.scope, each.kind) for each in due} == {
            (f"main.s{n}", kind) for n in range(2) for kind in kinds
        }
        assert len(due) <= 2 * 4
        for kind in kinds:
            assert max(due, key=lambda each: (each.kind == kind, each.behind)).behind == 6
        seen |= {each.table_id for each in due}


@pytest.mark.slow
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
