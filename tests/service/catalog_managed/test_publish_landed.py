"""Publishing what has just landed with the bytes at hand, and when these are read back instead."""

from typing import Any

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_service.core.catalog_managed.publish import publish_landed, publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


@pytest.fixture
def own() -> OwnLogs:
    return OwnLogs()


@pytest.fixture
async def table(world: World, index: Index, own: OwnLogs) -> TableRecord:
    """One whose log was seen to be its own, with all of it published."""
    table = await world.create(catalog_managed=True)
    await publish_table(index, world.context.storage, table, own=own)
    return table


async def landed(world: World, table: TableRecord, name: str) -> tuple[Committed, bytes]:
    outcome = await propose(world.context, table.id, proposal(add(name)))
    assert isinstance(outcome, Committed)
    content = await world.context.index.content(table.id, outcome.record.version)
    assert isinstance(content, bytes)
    return outcome, content


async def put(world: World, own: OwnLogs, outcome: Committed, content: bytes, **said: Any) -> bool:
    assert outcome.database is not None
    given = {"database": outcome.database, "is_fresh": lambda: True} | said
    await publish_landed(world.context.storage, outcome.table, content, own=own, **given)
    return own.database_of(outcome.table) is not None


async def published(world: World, table: TableRecord) -> int:
    return (await get_table(world.context, table.id)).published_version


async def test_its_bytes_are_put_and_it_is_marked_later(world, index, own, table):
    for version, name in enumerate(("a", "b"), start=1):
        # The second one, too: this log is known, and has what is before.
        outcome, content = await landed(world, table, name)
        assert await put(world, own, outcome, content)
        assert world.log_file(table, version).read_bytes() == content
    assert await published(world, table) == 0
    head = await landed(world, table, "c")
    assert await publish_table(index, world.context.storage, head[0].table, own=own) == 3
    assert await published(world, table) == 3
    assert await index.content(table.id, 2) is None
    assert await put(world, own, *await landed(world, table, "d"))


async def test_what_was_put_and_is_gone_is_put_again(world, index, own, table):
    outcome, content = await landed(world, table, "a")
    assert await put(world, own, outcome, content)
    world.log_file(table, 1).unlink()
    assert await publish_table(index, world.context.storage, outcome.table, own=own) == 1
    assert world.log_file(table, 1).read_bytes() == content


async def test_not_in_a_log_that_was_not_seen_to_be_its_own(world, own, table):
    outcome, content = await landed(world, table, "a")
    assert not await put(world, OwnLogs(), outcome, content)
    assert not await put(world, own, outcome, content, database="another one")
    assert not world.log_file(table, 1).exists()


async def test_not_before_an_earlier_version(world, own, table):
    await landed(world, table, "a")
    assert not await put(world, own, *await landed(world, table, "b"))
    assert not world.log_file(table, 2).exists()


async def test_not_after_a_long_stop(world, own, table):
    outcome, content = await landed(world, table, "a")
    assert not await put(world, own, outcome, content, is_fresh=lambda: False)
    assert not world.log_file(table, 1).exists()


async def test_not_over_what_is_there(world, own, table):
    outcome, content = await landed(world, table, "a")
    world.log_file(table, 1).write_bytes(b"others")
    assert not await put(world, own, outcome, content)
    assert world.log_file(table, 1).read_bytes() == b"others"
    assert await published(world, table) == 0
