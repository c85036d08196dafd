"""On a store that requests travel to, a place rests after its table was forgotten."""

import obstore
import psycopg
import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import TableExists
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.tables.delete_forgotten import delete_forgotten
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


async def forgotten(world):
    table = await world.create()
    await propose(world.context, table.id, proposal(add("x=1/old")))
    await forget_table(world.context, table.id)
    return table


def delete_log(world, table):
    folder = world.log_folder(table)
    for batch in obstore.list(folder.store, folder.key):
        for entry in batch:
            obstore.delete(folder.store, entry["path"])
    assert not folder.exists()


async def test_nothing_is_created_while_a_late_write_may_arrive(world, database_url):
    table = await forgotten(world)
    delete_log(world, table)
    for catalog_managed in (False, True):
        with pytest.raises(TableExists, match="may yet arrive") as refused:
            await world.create(name=table.name, catalog_managed=catalog_managed)
        assert "after" in refused.value.hint
    assert not world.log_folder(table).exists()

    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE forgotten_tables SET forgotten_at = forgotten_at - interval '15 minutes'"
        )
    assert (await world.create(name=table.name)).latest_version == 0


async def test_it_is_when_the_table_was_deleted_for_good(world):
    table = await forgotten(world)
    delete_log(world, table)
    await delete_forgotten(world.context, table.id)
    assert (await world.create(name=table.name)).latest_version == 0


async def test_the_table_itself_comes_back_at_once(world):
    table = await forgotten(world)
    again, created = await register_table(
        world.context, RegisterTable(name=table.name, location=table.location)
    )
    assert (created, again.latest_version) == (True, 1)
