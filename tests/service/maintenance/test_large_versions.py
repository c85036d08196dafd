"""A large version is compared a piece at a time, and is not expanded at once."""

import re

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.rows import stored_content
from tidegate_service.index.rows.stored_content import StoredContent

pytestmark = pytest.mark.anyio

NAMES = [f"f{number}" for number in range(10)]


@pytest.fixture(autouse=True)
def low_bounds(monkeypatch):
    monkeypatch.setattr(stored_content, "LARGE_BYTES", 100)


@pytest.fixture
def index(engine: AsyncEngine) -> PostgresIndex:
    return PostgresIndex(engine, limits=IndexLimits(compared_rows=4, compared_bytes=1_000))


async def large(world):
    """A table whose version 1 is large, and the last one."""
    table = await world.create()
    actions = [*map(add, NAMES), *(Txn(app_id=f"a{n}", version=1) for n in range(6))]
    await propose(world.context, table.id, proposal(*actions, read_version=0))
    return await get_table(world.context, table.id)


async def test_what_the_index_keeps_is_not_expanded_at_once(world):
    table = await large(world)
    world.log_file(table, 1).unlink()
    assert isinstance(await world.context.index.stored_content(table.id, 1), StoredContent)
    (gone,) = (await verify_table(world.context, table.id)).differences
    assert "missing from the log" in gone.detail


async def test_its_differences_are_found_in_all_pieces(world, engine):
    table = await large(world)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE files SET stats = '{}'")
        await connection.exec_driver_sql("DELETE FROM app_transactions")
    details = [one.detail for one in (await verify_table(world.context, table.id)).differences]
    files, transactions = details
    assert re.fullmatch(r"files it adds .*: ('f\d', ){4}'f\d' and 5 more", files)
    assert re.fullmatch(r"application transactions .*: ('a\d', ){4}'a\d' and 1 more", transactions)
