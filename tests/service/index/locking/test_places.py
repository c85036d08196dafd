"""Places for sections: turns go round the principals, and none of them has all places."""

import asyncio

import pytest

from tests.service.commit.committing import create, new_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import ConnectionSettings, create_engine

pytestmark = pytest.mark.anyio


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
