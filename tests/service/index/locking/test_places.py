"""Places for sections: turns go round the principals, and none of them has all places."""

import asyncio

import pytest

from tests.service.commit.committing import create, new_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.locking.places import Places
from tidegate_service.index.postgres.engine import ConnectionSettings, create_engine

pytestmark = pytest.mark.anyio


async def asked(places: Places, *principals: str | None) -> list[asyncio.Task[None]]:
    """Those who ask, in this order, each of which keeps what it gets."""
    tasks = [asyncio.create_task(places.take(who)) for who in principals]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def had(tasks: list[asyncio.Task[None]]) -> int:
    return sum(task.done() for task in tasks)


async def test_one_leaves_a_quarter_to_others():
    places = Places(12)
    evil = await asked(places, *["evil"] * 20)
    assert had(evil) == 9
    good = await asked(places, "good", "good", "good", "good")
    assert had(good) == 3
    # The next one is the other's, however many wait.
    places.give_back("evil")
    await asyncio.wait([good[3]])
    assert had(evil) == 9
    for _ in range(11):
        places.give_back("evil")
        await asyncio.sleep(0)
    await asyncio.gather(*evil)


async def test_who_asks_for_much_waits_behind_itself():
    places = Places(4)
    await asked(places, "x", "x", "x", "y")
    much = await asked(places, "a", "a", "a")
    little = await asked(places, "b")
    for _ in range(2):
        places.give_back("x")
        await asked(places)
    assert (had(much), had(little)) == (1, 1)
    for who in ("x", "y"):
        places.give_back(who)
    await asyncio.gather(*much, *little)


async def test_who_leaves_the_line_takes_nothing_along():
    places = Places(2)
    first, second = await asked(places, "a", "a")
    assert (first.done(), second.done()) == (True, False)
    second.cancel()
    await asyncio.wait([second])
    places.give_back("a")
    assert had(await asked(places, "a", "b")) == 2
    third, fourth = await asked(places, "b", "c")
    for task in (third, fourth):
        task.cancel()
    await asyncio.wait([third, fourth])
    places.give_back("a")
    places.give_back("b")
    # Nothing is remembered of those who have none.
    assert places.principals == 0
    assert had(await asked(places, "d", "e")) == 2


async def test_where_nobody_is_told_from_anybody_all_are_theirs():
    assert had(await asked(Places(4), *[None] * 5)) == 4


@pytest.fixture
async def narrow(database_url):
    """An index of four sections at a time."""
    engine = create_engine(database_url, ConnectionSettings(pool_size=4, overflow=4))
    yield PostgresIndex(engine, sections_at_once=4)
    await engine.dispose()


async def test_registrations_that_hang_leave_places_to_others(narrow):
    """Each holds its section for as long as its log is read."""
    theirs = await create(narrow)
    let_go = asyncio.Event()
    within = asyncio.Semaphore(0)

    async def register() -> None:
        async with narrow.creation_section(new_table(), who="evil"):
            within.release()
            await let_go.wait()

    hanging = [asyncio.create_task(register()) for _ in range(14)]
    for _ in range(3):
        await within.acquire()
    async with narrow.commit_section(theirs.id, who="good") as section:
        assert section.table == theirs
        assert within.locked(), "the other has no more than three of the four"
    async with narrow.creation_section(new_table(), who="good"):
        pass
    let_go.set()
    await asyncio.gather(*hanging)
