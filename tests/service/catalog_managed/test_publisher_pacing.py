"""How long a table rests between two batches, and that no wake-up is lost."""

import asyncio

import pytest

from tests.service.world import World
from tidegate_service.background import publisher as module
from tidegate_service.background.publisher import (
    BEAT_S,
    LONG_S,
    LONGEST_REST_S,
    REST_OF_MANY_S,
    REST_OF_ONE_S,
    Publisher,
)
from tidegate_service.background.waits import Waits
from tidegate_service.core.catalog_managed.publish import Batch
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.sharing.pauses import Pauses

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


def batch(*, count: int = 10, behind: int = 0, is_over: bool = False) -> Batch:
    return Batch(count=count, through=count, behind=behind, is_over=is_over)


@pytest.fixture
async def publisher(world: World, index: Index) -> Publisher:
    """It looks by itself once, and then only where it is woken."""
    return Publisher(index, world.context.storage, interval_s=3600.0)


async def test_a_table_that_is_alone_gives_way_to_commits(publisher: Publisher):
    publisher._kept = {"a"}
    assert publisher._rest_s(batch(), 0.001, 0.0) == pytest.approx(REST_OF_ONE_S)
    assert publisher._rest_s(batch(), 0.05, 0.0) == pytest.approx(0.2)
    assert publisher._rest_s(batch(), 10.0, 0.0) == pytest.approx(LONGEST_REST_S)


async def test_many_tables_rest_in_step(publisher: Publisher):
    publisher._kept = {str(n) for n in range(64)}
    rests = [publisher._rest_s(batch(), took, 0.0) for took in (0.001, 0.05, 0.1)]
    assert all(REST_OF_MANY_S <= rest <= REST_OF_MANY_S + BEAT_S for rest in rests)


@pytest.mark.parametrize("tables", [1, 64])
async def test_a_table_that_does_not_keep_up_waits_for_nobody(publisher: Publisher, tables: int):
    publisher._kept = {str(n) for n in range(tables)}
    assert publisher._rest_s(batch(behind=11), 0.01, 0.0) == pytest.approx(0.04)


async def test_a_table_rests_the_less_the_longer_its_versions_have_waited(publisher: Publisher):
    publisher._kept = {"a"}
    far, took = batch(behind=100_000), 0.1
    rests = [publisher._rest_s(far, took, LONG_S * part) for part in (0, 0.25, 0.5, 0.75, 1, 9)]
    assert rests == pytest.approx([0.4, 0.3, 0.2, 0.1, 0, 0])


async def test_a_commit_behind_the_last_look_wakes_the_table(
    world: World, publisher: Publisher, monkeypatch
):
    await world.create(catalog_managed=True)
    looks, ended = 0, asyncio.Event()

    async def publish(index, storage, found, **effects) -> Batch:
        nonlocal looks
        looks += 1
        if looks == 1:
            publisher.wake(found.id)
        else:
            ended.set()
        return batch(count=0, is_over=True)

    monkeypatch.setattr(module, "publish_batch", publish)
    running = asyncio.create_task(publisher.run())
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (looks, publisher._woken, publisher._tasks) == (2, set(), {})


@pytest.mark.parametrize(("left", "holds"), [(20, True), (0, False)])
async def test_a_batch_of_what_is_late_holds_the_next_proposals_up(
    world: World, index: Index, monkeypatch, left: int, holds: bool
):
    """Unless it takes all that waits: then other tables made it late, and not the proposals."""
    table = await world.create(catalog_managed=True)
    pauses = Pauses()
    publisher = Publisher(index, world.context.storage, interval_s=3600.0, pauses=pauses)
    held: list[bool] = []
    ended = asyncio.Event()
    waited = iter((0.0, LONG_S + 1, 0.0))

    async def publish(index, storage, found, **effects) -> Batch:
        passed = asyncio.create_task(pauses.ended(table.id))
        await asyncio.sleep(0.01)
        held.append(not passed.done())
        publisher.wake(found.id)
        if len(held) == 3:
            ended.set()
        return batch(behind=0 if len(held) > 3 else left)

    monkeypatch.setattr(module, "publish_batch", publish)
    monkeypatch.setattr(Waits, "waited_s", lambda self, first, *, at_s: next(waited, 0.0))
    running = asyncio.create_task(publisher.run())
    publisher.wake(table.id)
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert held == [False, False, holds]


class Clock:
    """Says how long a look, or a batch, took, without its taking that long."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Rests(list[float]):
    """How long a publisher rests, which ends with the third time."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)
        if len(self) == 3:
            raise asyncio.CancelledError
        await asyncio.sleep(0)


@pytest.mark.parametrize(("took_s", "rest_s"), [(0.1, 1.0), (0.75, 3.0), (60.0, 5.0)])
async def test_a_look_that_takes_long_rests_longer(took_s, rest_s):
    clock, rests = Clock(), Rests()

    class SlowIndex:
        async def unpublished(self, *, limit: int) -> list[TableRecord]:
            clock.now_s += took_s
            return []

    with pytest.raises(asyncio.CancelledError):
        await Publisher(SlowIndex(), None, monotonic_s=clock, sleep=rests.sleep).run()
    assert list(rests) == pytest.approx([rest_s] * 3)


@pytest.mark.parametrize(("took_s", "rest_s"), [(0.1, 1.0), (3.0, 3.0), (60.0, 5.0)])
async def test_a_table_whose_batch_failed_rests_as_long_as_that_took(
    world: World, monkeypatch, took_s, rest_s
):
    table = await world.create(catalog_managed=True)
    clock, rests = Clock(), Rests()

    async def fails(*_args: object, **_options: object) -> Batch:
        clock.now_s += took_s
        raise StorageUnavailable("the store is down")

    monkeypatch.setattr(module, "publish_batch", fails)
    context = world.context
    publisher = Publisher(context.index, context.storage, monotonic_s=clock, sleep=rests.sleep)
    await publisher._keep_publishing(table.id, None)
    assert list(rests) == pytest.approx([rest_s])
