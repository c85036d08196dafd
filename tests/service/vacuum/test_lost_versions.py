"""VACUUM beside catalog-managed tables whose database was set back: a clone among them may name
files of the table in a version that the database has lost."""

import pytest

from tests.builders.by_x import add, remove
from tests.service.catalog_managed.restoring import publish
from tests.service.vacuum.test_others_logs import cloned, refused
from tests.service.vacuum.vacuuming import ended, land, left, plant
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import TableQuarantined
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.freshness import read_in
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.ports.records import QuarantineCause
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


@pytest.fixture
async def restored(made, database_url):
    """An instance on a database that has lost the version of the clone which names `a` of the
    table; the table, which has removed that file; and the clone."""
    world = made.instance(database_url)
    table, clone = await world.create(), await world.create(catalog_managed=True)
    await publish(world, clone)
    plant(table, "a", "orphan")
    await land(world, table, add("a"))
    backup = await made.copy(database_url)
    await land(world, clone, add(cloned(table, "a")))
    await publish(world, clone)
    await land(world, table, remove("a"))
    restored = made.instance(backup)
    await read_in(restored.context, table.id)
    return restored, table, clone


async def test_the_lost_version_is_found_before_a_file_goes(restored):
    world, table, clone = restored
    for _ in range(2):
        error = await refused(world, table)
        assert error.code is Code.TABLE_QUARANTINED
        assert f"{clone.name} may name files of it" in str(error)
        assert "version 1 is published in the log and not in the index" in str(error)
    await rebuild(world.context, clone.id)

    assert (await ended(world, table)).deleted == 1
    assert left(table) == {"a"}


async def test_one_that_is_forgotten_names_nothing(restored):
    world, table, clone = restored
    await refused(world, table)
    await rebuild(world.context, clone.id)
    await forget_table(world.context, clone.id)

    assert (await ended(world, table)).deleted == 2


async def test_one_that_was_looked_at_a_moment_ago_is_not_looked_at_again(
    made, database_url, monkeypatch
):
    world = made.instance(database_url)
    table, other = await world.create(), await world.create(catalog_managed=True)
    await publish(world, other)
    await land(world, other, add("x"))
    asked, log_of = [], made.storage.log

    def log(location, **who):
        asked.append(location)
        return log_of(location, **who)

    monkeypatch.setattr(made.storage, "log", log)
    assert (await ended(world, table)).logs == 1
    assert other.location not in asked


async def test_one_whose_log_others_have_spoiled_names_what_the_index_has(made, database_url):
    """Nobody but the service writes its versions, so the index knows what they name."""
    world = made.instance(database_url)
    table, other = await world.create(), await world.create(catalog_managed=True)
    await publish(world, other)
    world.log_file(other, 1).write_text("{}")
    plant(table, "orphan", "named")
    await land(world, table, add("named"))
    with pytest.raises(TableQuarantined):
        await land(made.instance(database_url), other, add("x"))

    assert (await get_table(world.context, other.id)).quarantine_cause is QuarantineCause.LOG
    assert (await ended(world, table)).deleted == 1
