"""The caretaker finds what is due, does it once, and takes no more than its share."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.jobs import Counting
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker, CaretakerLimits
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.upkeep.checkpoint_interval import Checkpoints
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0
KIND = UpkeepKind.CHECKSUM


async def commit(world: World, table: TableRecord, count: int = 1) -> None:
    for _ in range(count):
        name = world.context.new_id()
        await propose(world.context, table.id, proposal(add(name)))


async def age(engine: AsyncEngine) -> None:
    """Let claims and waits be over."""
    async with engine.begin() as connection:
        await connection.execute(
            text(
                "UPDATE table_upkeep SET due_at = due_at - interval '2 hours', "
                "claimed_until = claimed_until - interval '2 hours'"
            )
        )


@asynccontextmanager
async def caring(caretaker: Caretaker) -> AsyncIterator[None]:
    running = asyncio.create_task(caretaker.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_what_is_due_is_done_once(world: World, index: Index, upkeep: PostgresUpkeep):
    tables = [await world.create() for _ in range(3)]
    job = Counting(every=2)
    caretaker = Caretaker(index, upkeep, [job], share=1)
    assert await caretaker.round() == 3
    assert sorted(job.runs) == sorted((table.id, 0) for table in tables)
    assert await caretaker.round() == 0
    await commit(world, tables[1])
    assert await caretaker.round() == 0
    await commit(world, tables[1])
    assert await caretaker.round() == 1
    assert job.runs[-1] == (tables[1].id, 2)
    assert job.records[-1].version == 0


async def test_only_what_is_published_counts(world: World, index: Index, upkeep: PostgresUpkeep):
    table = await world.create(catalog_managed=True)
    job = Counting()
    caretaker = Caretaker(index, upkeep, [job], share=1)
    assert await caretaker.round() == 0
    await Publisher(index, world.context.storage).round()
    assert await caretaker.round() == 1
    await commit(world, table, 2)
    assert await caretaker.round() == 0
    await Publisher(index, world.context.storage).round()
    assert await caretaker.round() == 1
    assert [version for _, version in job.runs] == [0, 2]


async def test_each_page_of_tables_is_looked_at(world: World, index: Index, upkeep: PostgresUpkeep):
    for _ in range(5):
        await world.create()
    two = CaretakerLimits(tables=2)
    assert await Caretaker(index, upkeep, [Counting()], share=1, limits=two).round() == 5


async def test_two_instances_share_the_work(
    world: World, index: Index, other_index: Index, upkeep: PostgresUpkeep
):
    for _ in range(6):
        await world.create()
    job = Counting(takes_s=0.01)
    both = [Caretaker(one, upkeep, [job], share=1) for one in (index, other_index)]
    counts = await asyncio.gather(*(each.round() for each in both))
    assert sum(counts) == len(job.runs) == len(set(job.runs)) == 6


async def test_what_a_dead_instance_claimed_is_taken_up(
    world: World, index: Index, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    table = await world.create()
    assert await upkeep.claim(table.id, KIND, by="a dead one", for_s=60) is not None
    job = Counting()
    caretaker = Caretaker(index, upkeep, [job], share=1)
    assert await caretaker.round() == 0
    await age(engine)
    assert await caretaker.round() == 1


async def test_a_lost_claim_is_let_go_of_by_whoever_has_it(
    world: World, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    table = await world.create()
    assert await upkeep.claim(table.id, KIND, by="the first", for_s=60) is not None
    await age(engine)
    assert await upkeep.claim(table.id, KIND, by="the second", for_s=60) is not None
    await upkeep.extend_claim(table.id, KIND, by="the first", for_s=60)
    await upkeep.failed(table.id, KIND, "late", by="the first", again_in_s=1)
    assert (await upkeep.standing(table.id))[KIND].trouble is None
    assert await upkeep.claim(table.id, KIND, by="the third", for_s=60) is None


async def test_a_claim_is_held_while_the_work_goes_on(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    short = CaretakerLimits(claim_s=0.3, renew_s=0.05)
    table = await world.create()
    job = Counting(takes_s=1.0)
    first = asyncio.create_task(Caretaker(index, upkeep, [job], share=1, limits=short).round())
    async with asyncio.timeout(PATIENCE_S):
        while not job.runs:
            await asyncio.sleep(0.01)
    other = Caretaker(index, upkeep, [job], share=1, limits=short)
    while not first.done():
        assert await other.round() == 0
        await asyncio.sleep(0.05)
    assert await first == 1
    assert job.runs == [(table.id, 0)]


async def test_a_failure_is_tried_again_later_and_is_no_other_tables_business(
    world: World, index: Index, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    broken, well = [await world.create() for _ in range(2)]
    fails = True

    def meets(table: TableRecord) -> None:
        if fails and table.id == broken.id:
            raise StorageUnavailable("the store is down")

    job = Counting(meets=meets)
    caretaker = Caretaker(index, upkeep, [job], share=1)
    assert await caretaker.round() == 2
    standing = (await upkeep.standing(broken.id))[KIND]
    assert (standing.failures, standing.trouble) == (1, "the store is down")
    assert (await upkeep.standing(well.id))[KIND].failures == 0
    await commit(world, broken)
    assert await caretaker.round() == 0, "it is left alone for a while"
    await age(engine)
    assert await caretaker.round() == 1
    assert (await upkeep.standing(broken.id))[KIND].failures == 2
    fails = False
    await age(engine)
    assert await caretaker.round() == 1
    standing = (await upkeep.standing(broken.id))[KIND]
    assert (standing.failures, standing.trouble, standing.version) == (0, None, 1)


async def test_a_defect_ends_nothing(world: World, index: Index, upkeep: PostgresUpkeep, caplog):
    table = await world.create()

    def meets(table: TableRecord) -> None:
        raise ValueError("a bug")

    assert await Caretaker(index, upkeep, [Counting(meets=meets)], share=1).round() == 1
    assert (await upkeep.standing(table.id))[KIND].failures == 1
    assert "upkeep met a defect" in caplog.text


async def test_what_hinders_is_said_once(
    world: World, index: Index, upkeep: PostgresUpkeep, caplog
):
    caplog.set_level(logging.WARNING)
    table = await world.create()
    job = Counting(trouble="nothing may be deleted")
    caretaker = Caretaker(index, upkeep, [job], share=1)
    for _ in range(3):
        assert await caretaker.round() == 1
        await commit(world, table)
    assert caplog.text.count("upkeep is hindered") == 1
    assert (await upkeep.standing(table.id))[KIND].trouble == "nothing may be deleted"


async def test_an_index_that_was_made_anew_begins_anew(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    table = await world.create()
    job = Counting(every=100)
    caretaker = Caretaker(index, upkeep, [job], share=1)
    assert await caretaker.round() == 1
    await rebuild_table(world.context, table.id)
    assert await upkeep.standing(table.id) == {}
    assert await caretaker.round() == 1
    assert job.records[-1].version == -1


async def test_a_table_can_be_forgotten_with_its_upkeep(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    table = await world.create()
    await Caretaker(index, upkeep, [Counting()], share=1).round()
    await forget_table(world.context, table.id)
    assert await upkeep.standing(table.id) == {}


async def test_a_quarantined_table_is_left_alone(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    table = await world.create()
    async with index.commit_section(table.id) as section:
        await section.quarantine("for a test")
        await section.save()
    assert await Caretaker(index, upkeep, [Counting()], share=1).round() == 0


class TestTheShare:
    async def test_it_rests_as_its_share_says(
        self, world: World, index: Index, upkeep: PostgresUpkeep
    ):
        table = await world.create()
        job = Counting(every=0, takes_s=0.05)
        caretaker = Caretaker(index, upkeep, [job], share=0.1, interval_s=0.01)
        async with caring(caretaker):
            await asyncio.sleep(2.0)
        # At work for a tenth of two seconds, and once more at their end.
        assert 2 <= len(job.runs) <= 5
        assert {table_id for table_id, _ in job.runs} == {table.id}

    async def test_what_is_far_behind_does_not_wait(
        self, world: World, index: Index, upkeep: PostgresUpkeep
    ):
        table = await world.create()
        slow = Counting(every=0, takes_s=0.5)
        urgent = Counting(UpkeepKind.CHECKPOINT, every=1)
        caretaker = Caretaker(
            index, upkeep, [slow, urgent], share=0.01, interval_s=0.01, most_behind=3
        )
        async with caring(caretaker):
            while not slow.runs:
                await asyncio.sleep(0.01)
            ran = len(urgent.runs)
            await commit(world, table, 4)
            while len(urgent.runs) == ran:
                await asyncio.sleep(0.01)
        assert len(slow.runs) == 1

    async def test_a_wake_up_does_not_wait_for_the_interval(
        self, world: World, index: Index, upkeep: PostgresUpkeep
    ):
        table = await world.create()
        job = Counting()
        caretaker = Caretaker(index, upkeep, [job], share=1, interval_s=3600)
        async with caring(caretaker):
            while not job.runs:
                await asyncio.sleep(0.01)
            await commit(world, table)
            caretaker.wake(table.id)
            while len(job.runs) < 2:
                await asyncio.sleep(0.01)


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("properties", "interval"), [({}, 10), ({"delta.checkpointInterval": "3"}, 3)]
    )
    async def test_one_is_due_by_the_tables_interval(
        self, world: World, index: Index, upkeep: PostgresUpkeep, properties, interval
    ):
        table = await world.create(properties=properties)
        written: list[int] = []

        async def write(table: TableRecord) -> int:
            written.append(table.published_version)
            return table.published_version

        caretaker = Caretaker(index, upkeep, [Checkpoints(write)], share=1)
        for _ in range(2 * interval + 1):
            await caretaker.round()
            await commit(world, table)
        assert written == [interval, 2 * interval]
        standing = (await upkeep.standing(table.id))[UpkeepKind.CHECKPOINT]
        assert standing.version == 2 * interval
