"""What a caretaker has found is known as it was found last, and costs the index little."""

from contextlib import suppress

import pytest

from tests.service.upkeep.test_caretaker import KIND, commit
from tests.service.world import World
from tidegate_service.background.due_upkeep import DueUpkeep
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.upkeep.upkeep import Due, Page
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


class Clock:
    """It is as late as it is told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def due(upkeep: PostgresUpkeep, clock: Clock) -> DueUpkeep:
    """Of one table after the other, a page each second."""
    return DueUpkeep(upkeep, [KIND], tables=1, share=0.5, interval_s=1.0, monotonic_s=clock)


def behind(found: list[Due], table_id: str) -> int | None:
    return next((each.behind for each in found if each.table_id == table_id), None)


async def next_page(due: DueUpkeep, clock: Clock) -> list[Due]:
    clock.now_s += 1.0
    return [*await due.find()]


async def test_a_page_is_newer_than_what_was_woken_before(
    world: World, due: DueUpkeep, clock: Clock
):
    """Also while pages of other tables come."""
    tables = [await world.create() for _ in range(3)]
    for _ in tables:
        await next_page(due, clock)
    table = tables[0]
    await commit(world, table)
    due._next_page_s = clock.now_s + 1.0
    due.wake(table.id)
    assert behind([*await due.find()], table.id) == 2
    await commit(world, table, 3)
    # Twice round; the last page has no table.
    seen = [behind(await next_page(due, clock), table.id) for _ in range(8)]
    assert seen[-5:] == [5] * 5


class Away:
    """An index that does not answer, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def due(self, *_: object, **__: object) -> Page:
        self.asked += 1
        raise IndexUnavailable("it is away")


async def test_an_index_that_is_away_is_asked_once_an_interval(clock: Clock):
    """However often tables are woken."""
    away = Away()
    due = DueUpkeep(away, [KIND], tables=1, share=0.5, interval_s=1.0, monotonic_s=clock)
    for _ in range(25):
        due.wake("a table")
        with suppress(IndexUnavailable):
            assert await due.find() == []
        clock.now_s += 0.1
    assert away.asked == 3


async def test_what_was_begun_is_found_no_more(world: World, due: DueUpkeep, clock: Clock):
    table = await world.create()
    (found,) = await next_page(due, clock)
    assert found.table_id == table.id
    due.begin(found)
    assert await due.find() == []
    assert due.is_empty
