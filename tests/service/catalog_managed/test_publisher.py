"""The publisher keeps logs up with their index, round after round, whatever one table meets."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.faults import Fault, FaultyLog, FaultyStorage
from tests.service.world import World
from tidegate_service.background.publisher import SLOTS, Publisher
from tidegate_service.core.catalog_managed.publish import TAKEN_AT_ONCE, publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Log, Storage
from tidegate_service.core.sharing.shares import most_of_one
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.publishing.calls import ALONE

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


async def test_versions_are_published_in_batches(world: World, index: Index):
    table = await world.create(catalog_managed=True)
    await commits(world, table, 7)
    ratified = [await index.content(table.id, version) for version in range(8)]
    assert await publish_table(index, world.context.storage, table, versions=3) == 3
    assert await lag(world, table) == 5
    head = await get_table(world.context, table.id)
    assert await publish_table(index, world.context.storage, head, versions=3) == 5
    assert [world.log_file(table, version).read_bytes() for version in range(8)] == ratified
    assert [await index.content(table.id, version) for version in range(8)] == [None] * 8


async def test_large_versions_do_not_come_all_at_once(world: World, engine: AsyncEngine):
    index = PostgresIndex(engine, limits=IndexLimits(expanded_bytes=100_000))
    table = await world.create(catalog_managed=True)
    for number in range(4):
        body = proposal(add(f"f{number}", tags={"large": "x" * 60_000}))
        await propose(world.context, table.id, body)
    assert [version for version, _ in await read(index, table)] == [0, 1]
    assert await publish_table(index, world.context.storage, table) == 2
    index = PostgresIndex(engine, limits=IndexLimits(expanded_bytes=10, waiting_bytes=10))
    assert [version for version, _ in await read(index, table)] == [2]
    head = await get_table(world.context, table.id)
    assert await publish_table(index, world.context.storage, head) == 3
    assert await lag(world, table) == 0


async def read(index: Index, table: TableRecord) -> Sequence[tuple[int, bytes]]:
    return (await index.unpublished_versions(table.id, limit=100)).versions


async def test_what_a_publisher_left_when_it_was_cut_off_is_taken_up(world: World, index: Index):
    """Files that nobody has told the index of, more than are looked at in one go."""
    table = await world.create(catalog_managed=True)
    await commits(world, table, TAKEN_AT_ONCE + 5)
    log = world.context.storage.log(table.location)
    left = await log.put_in_order(await read(index, table), within_s=60)
    assert left == [PutResult.CREATED] * (TAKEN_AT_ONCE + 6)
    head = await get_table(world.context, table.id)
    assert await publish_table(index, world.context.storage, head) == TAKEN_AT_ONCE + 6
    assert await lag(world, table) == 0


async def test_a_failure_in_the_middle_keeps_what_was_done(
    world: World, index: Index, faults: FaultyStorage
):
    table = await world.create(catalog_managed=True)
    await commits(world, table, 4)
    faults.faults.extend([Fault.NONE, Fault.NONE, Fault.REFUSED, Fault.REFUSED])
    publisher = Publisher(index, world.context.storage)
    assert await publisher.round() == 2
    assert await lag(world, table) == 3
    faults.faults.append(Fault.REFUSED)
    head = await get_table(world.context, table.id)
    with pytest.raises(StorageUnavailable):
        await publish_table(index, world.context.storage, head)
    assert await publisher.round() == 3


class TestOneTableOfMany:
    """What befalls one table is no other's business (promise I16)."""

    async def settled(self, world: World, tables: Sequence[TableRecord]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while any([await lag(world, table) for table in tables]):
                await asyncio.sleep(0)

    @asynccontextmanager
    async def publishing(self, publisher: Publisher) -> AsyncIterator[None]:
        running = asyncio.create_task(publisher.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def test_a_store_that_hangs(self, world: World, index: Index):
        hung = [
            await world.create(catalog_managed=True, name=f"{catalog}.{schema}.t{number}")
            for catalog in ("one", "another")
            for schema in ("s", "u")
            for number in range(SLOTS)
        ]
        well = [await world.create(catalog_managed=True) for _ in range(2)]
        places = {table.location: "hung" for table in hung}
        storage = HangingStorage(world.context.storage, places)
        publisher = Publisher(
            index, storage, interval_s=0.01, store_of=lambda url: places.get(url, "well")
        )
        async with self.publishing(publisher):
            async with asyncio.timeout(PATIENCE_S):
                await storage.all_slots.wait()
            await self.settled(world, well)
            await commits(world, well[0], 3)
            publisher.wake(well[0].id)
            await self.settled(world, well)
            assert [await lag(world, table) for table in hung] == [1] * len(hung)
            assert storage.most_waiting == SLOTS
            storage.heal()
            await self.settled(world, hung)

    @pytest.mark.parametrize(
        ("hung_in", "well_in", "slots"),
        [
            (["main.one"], "main.well", most_of_one(most_of_one(SLOTS))),
            ([f"evil.s{n}" for n in range(SLOTS + 1)], "main.well", most_of_one(SLOTS)),
        ],
        ids=["a schema", "the schemas of a catalog"],
    )
    async def test_those_whose_tables_hang_leave_slots_of_their_store(
        self, world: World, index: Index, hung_in: Sequence[str], well_in: str, slots: int
    ):
        hung = [
            await world.create(catalog_managed=True, name=f"{schema}.t{number}")
            for schema in hung_in
            for number in range(-(-(SLOTS + 1) // len(hung_in)))
        ]
        well = [await world.create(catalog_managed=True, name=f"{well_in}.t{n}") for n in (0, 1)]
        places = {table.location: "hung" for table in hung}
        storage = HangingStorage(world.context.storage, places, slots=slots)
        async with self.publishing(Publisher(index, storage, interval_s=0.01)):
            async with asyncio.timeout(PATIENCE_S):
                await storage.all_slots.wait()
            await self.settled(world, well)
            assert [await lag(world, table) for table in hung] == [1] * len(hung)
            assert storage.most_waiting == slots
            storage.heal()
            await self.settled(world, hung)

    @pytest.mark.parametrize("count", [1, ALONE + 1])
    async def test_tables_whose_locks_are_held(self, world: World, index: Index, count: int):
        tables = [await world.create(catalog_managed=True) for _ in range(count + 2)]
        held, others = tables[:count], tables[count:]
        publisher = Publisher(index, world.context.storage, interval_s=0.01)
        async with AsyncExitStack() as stack:
            for table in held:
                # As a rebuild does.
                await stack.enter_async_context(index.commit_section(table.id))
            async with self.publishing(publisher):
                await self.settled(world, others)
                await commits(world, others[0], 2)
                await self.settled(world, others)
                assert [await lag(world, table) for table in held] == [1] * count
        async with self.publishing(publisher):
            await self.settled(world, held)

    async def test_a_table_that_brings_out_a_defect(self, world: World, index: Index):
        broken, *others = [await world.create(catalog_managed=True) for _ in range(3)]
        storage = DefectiveStorage(world.context.storage, broken.location)
        async with self.publishing(Publisher(index, storage, interval_s=0.01)):
            await self.settled(world, others)
        assert await lag(world, broken) == 1


class PassedOn:
    """A storage of which all is passed on but what a test changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def probe(self) -> None:
        await self._storage.probe()


class HangingStorage(PassedOn):
    """Some locations get no answer before `heal`. `all_slots` says that as many calls as there are
    slots for them wait for one."""

    def __init__(self, storage: Storage, hung: Mapping[str, str], *, slots: int = SLOTS) -> None:
        super().__init__(storage)
        self._slots = slots
        self._hung = hung
        self._healed = asyncio.Event()
        self._waiting = self.most_waiting = 0
        self.all_slots = asyncio.Event()

    def log(self, location: str, *, who: str | None = None) -> Log:
        return HangingLog(self, self._storage.log(location, who=who), hangs=location in self._hung)

    def heal(self) -> None:
        self._healed.set()

    async def answers(self) -> None:
        self._waiting += 1
        if not self._healed.is_set():
            self.most_waiting = max(self.most_waiting, self._waiting)
        if self._waiting == self._slots:
            self.all_slots.set()
        await self._healed.wait()


class HangingLog(FaultyLog):
    def __init__(self, storage: HangingStorage, log: Log, *, hangs: bool) -> None:
        super().__init__(log, FaultyStorage(storage), [])
        self._store = storage
        self._hangs = hangs

    async def put_if_absent(self, version: int, content: bytes) -> PutResult:
        if self._hangs:
            await self._store.answers()
        return await super().put_if_absent(version, content)


class DefectiveStorage(PassedOn):
    def __init__(self, storage: Storage, location: str) -> None:
        super().__init__(storage)
        self._location = location

    def log(self, location: str, *, who: str | None = None) -> Log:
        if location == self._location:
            raise ZeroDivisionError("a defect")
        return self._storage.log(location, who=who)


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
