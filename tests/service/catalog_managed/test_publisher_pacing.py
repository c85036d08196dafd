"""No wake-up is lost, and what is late holds the next proposals up."""

import asyncio

import pytest

from tests.service.world import World
from tidegate_service.background import publisher as module
from tidegate_service.background.publisher import (
    LONG_S,
    Publisher,
)
from tidegate_service.background.waits import Waits
from tidegate_service.core.catalog_managed.publish import Batch
from tidegate_service.core.ports.index import Index
from tidegate_service.core.sharing.pauses import Pauses

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


def batch(*, count: int = 10, behind: int = 0, is_over: bool = False) -> Batch:
    return Batch(count=count, through=count, behind=behind, is_over=is_over)


@pytest.fixture
async def publisher(world: World, index: Index) -> Publisher:
    """It looks by itself once, and then only where it is woken."""
    return Publisher(index, world.context.storage, interval_s=3600.0)


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
