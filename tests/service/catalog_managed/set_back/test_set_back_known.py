"""What an instance knows of a catalog-managed table that was set back, until that is made good."""

import pytest

from tests.service.catalog_managed.restoring import Backups, body, commit, publish
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import IndexUnavailable, TableQuarantined
from tidegate_service.core.maintenance.rebuild import rebuild, rebuild_table
from tidegate_service.core.ports.records import TableRecord, TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.locking.section import PostgresCommitSection

pytestmark = pytest.mark.anyio


async def lived_on(made: Backups, url: str) -> tuple[World, TableRecord]:
    """An instance that saw c and d committed, on a database that has a and b alone."""
    world = made.instance(url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a", "b")
    await publish(world, table)
    old = await made.copy(url)
    await commit(world, table, "c", "d")
    return made.taken_over(world, old), table


async def test_a_quarantine_that_is_not_saved_is_made_again(made, database_url, monkeypatch):
    world, table = await lived_on(made, database_url)
    save = PostgresCommitSection.save
    failures = [IndexUnavailable("the database does not answer")]

    async def failing(section):
        if failures:
            raise failures.pop(0)
        await save(section)

    monkeypatch.setattr(PostgresCommitSection, "save", failing)
    with pytest.raises(IndexUnavailable):
        await propose(world.context, table.id, body("new"))
    assert failures == []
    with pytest.raises(TableQuarantined, match="versions 3 to 4"):
        await propose(world.context, table.id, body("new"))
    head = await get_table(world.context, table.id)
    assert (head.state, head.latest_version) == (TableState.QUARANTINED, 2)
    assert (await rebuild(world.context, table.id)).lost == ()
    assert (await propose(world.context, table.id, body("c"))).record.version == 3


async def test_a_rebuild_is_the_end_of_it_in_the_same_epoch_too(made, database_url):
    """The database that was lost had been rebuilt as often as the one that came back is now."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    old = await made.copy(database_url)
    await rebuild_table(world.context, table.id)
    await commit(world, table, "b")
    world = made.taken_over(world, old)
    with pytest.raises(TableQuarantined, match="versions 2 to 2"):
        await propose(world.context, table.id, body("new"))
    assert (await rebuild_table(world.context, table.id)).epoch == 1
    assert (await propose(world.context, table.id, body("new"))).record.version == 2
