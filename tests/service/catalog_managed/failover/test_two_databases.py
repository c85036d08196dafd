"""Work that was begun on one database and would end on another, which lacks some of it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.service.catalog_managed.restoring import body, commit, publish
from tidegate_service.core.catalog_managed.publish import publish_batch, publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import IndexUnavailable, TableQuarantined
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.files.scanned import Wanted
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import QuarantineCause, TableState, Waiting
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


class FailingOver:
    """An index whose connections are to another database once it was asked what waits."""

    def __init__(self, index: Index, other: Index) -> None:
        self._index = index
        self._other = other

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)

    async def unpublished_versions(self, table_id: str, **asked: Any) -> Waiting:
        waiting = await self._index.unpublished_versions(table_id, **asked)
        self._index = self._other
        return waiting


@pytest.mark.parametrize("others", [0, 2])
async def test_versions_are_marked_where_they_were_read(made, database_url, others):
    """What lies in the log is theirs, and not what the other database has in their places."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    old = await made.copy(database_url)
    await commit(world, table, "a", "b")
    waiting = await world.context.index.unpublished_versions(table.id, limit=10)
    other = made.instance(old)
    await commit(other, table, *"xy"[:others])
    with pytest.raises(IndexUnavailable, match="from another database"):
        await other.context.index.mark_published(table.id, 0, 2, database=waiting.database)
    assert (await get_table(other.context, table.id)).published_version == -1
    await world.context.index.mark_published(table.id, 0, 2, database=waiting.database)
    assert (await get_table(world.context, table.id)).published_version == 2


async def test_a_table_is_quarantined_for_what_its_own_database_was_asked(made, database_url):
    """The old primary had published version 2, and a file of others lies in the place of version 3.
    Where the database has neither, that file is not what is wrong."""
    world, own = made.instance(database_url), OwnLogs()
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await publish(world, table)
    other = made.instance(await made.copy(database_url))
    await commit(world, table, "b")
    head = await get_table(world.context, table.id)
    await publish_table(world.context.index, made.storage, head, own=own)
    await commit(world, table, "c")
    world.log_file(table, 3).write_text("other bytes")
    index = FailingOver(world.context.index, other.context.index)
    with pytest.raises(IndexUnavailable, match="from another database"):
        await publish_batch(index, made.storage, table, own=own)
    assert (await get_table(other.context, table.id)).state is TableState.ACTIVE
    with pytest.raises(TableQuarantined, match=r"version 2 is published .* was set back"):
        await propose(other.context, table.id, body("d"))
    found = await get_table(other.context, table.id)
    assert found.quarantine_cause is QuarantineCause.SET_BACK


async def test_a_log_is_the_tables_in_the_database_that_versions_were_read_from(made, database_url):
    """The log holds the old primary's version 2, and the database another one; what the old one
    ratified behind it is not put there."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await publish(world, table)
    other = made.instance(await made.copy(database_url))
    await commit(other, table, "x")
    await commit(world, table, "b")
    await publish(world, table)
    await commit(world, table, "c")
    index = FailingOver(world.context.index, other.context.index)
    with pytest.raises(IndexUnavailable, match="from another database"):
        await publish_table(index, made.storage, await get_table(world.context, table.id))
    assert not world.log_file(table, 3).exists()


class ReadBefore:
    """An index whose history was read in another database than all else."""

    def __init__(self, before: Index, index: Index) -> None:
        self._index = index
        self.history = before.history

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)


async def test_a_log_is_compared_with_what_the_database_has_by_now(made, database_url):
    """The other one takes its own version 2 for the one that is published."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await publish(world, table)
    other = made.instance(await made.copy(database_url))
    await commit(other, table, "x")
    await other.context.index.mark_published(table.id, 2, 2)
    await commit(world, table, "b")
    await publish(world, table)
    index = ReadBefore(other.context.index, world.context.index)
    with pytest.raises(IndexUnavailable, match="changed meanwhile"):
        await forget_table(replace(world.context, index=index), table.id)
    assert (await get_table(world.context, table.id)).state is TableState.ACTIVE
    with pytest.raises(TableQuarantined, match="version 2 lies in the log with other bytes"):
        await forget_table(other.context, table.id)


async def test_a_version_that_the_database_has_not_is_no_snapshot(made, database_url):
    """A scan asks for the head first, and for its files afterwards."""
    world = made.instance(database_url)
    table = await world.create()
    await commit(world, table, "a")
    other = made.instance(await made.copy(database_url))
    await commit(world, table, "b")
    index = other.context.index
    with pytest.raises(IndexUnavailable, match="failed over"):
        [page async for page in index.stored_files(table.id, 2, Wanted())]
    with pytest.raises(IndexUnavailable, match="failed over"):
        [page async for page in index.files(table.id, 2)]
    assert [len(page) async for page in index.files(table.id, 1)] == [1]
