"""Other tables that name files of one that is vacuumed, beside what `test_vacuum.py` shows."""

from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.lines import vector
from tests.service.log.foreign.foreign import foreign_commit
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import (
    AT_ONCE,
    ended,
    folder_of,
    land,
    left,
    plant,
    vacuumed,
)
from tidegate_service.core.access.roles import ANYBODY, Caller, Grant, Principal, Role

pytestmark = pytest.mark.anyio


@pytest.fixture
async def table(world):
    """With three clones, each of which names a file of it."""
    table = await world.create()
    plant(table, "0", "1", "2", "orphan")
    for number in range(3):
        clone = await world.create()
        foreign_commit(world, clone, 1, {"add": foreign_add(f"{folder_of(table)}/{number}")})
        await ended(world, clone)
    return table


async def test_more_than_are_read_are_refused(world, table):
    world = world.limited(clones=2)
    own = Principal(name="somebody", grants=(Grant(Role.ADMIN, table.name.lower()),))
    context = world.context.called_by(Caller(principal=own))
    last = (await vacuumed(replace(world, context=context), table))[-1]
    assert "3 other tables name files of it, and those of at most 2" in str(last.error)
    assert left(table) == {"0", "1", "2", "orphan"}
    # Others may have made them so that nobody vacuums the table.
    await ended(world, table)
    assert left(table) == {"0", "1", "2"}


async def test_their_names_are_told_to_those_who_may_know_them(world, table):
    async def warnings(*grants):
        caller = Caller(principal=Principal(name="somebody", grants=grants))
        asking = replace(world, context=world.context.called_by(caller))
        dry = replace(AT_ONCE, dry_run=True)
        return [warning for now in await vacuumed(asking, table, dry) for warning in now.warnings]

    own = Grant(Role.ADMIN, table.name.lower())
    assert {each.partition(" names")[0] for each in await warnings(own)} == {"another table"}
    told = await warnings(own, *ANYBODY.grants)
    assert [each.startswith("the table main.") for each in told] == [True] * 3


async def test_a_clone_of_this_service_and_its_source_keep_what_is_the_others(world):
    source = await world.create()
    clone = await world.create(properties={"delta.enableDeletionVectors": "true"})
    plant(source, "file", "vector.bin", "orphan")
    plant(clone, "own", "orphan")
    place = f"file://{folder_of(source)}"
    marks = vector(f"{place}/vector.bin", storageType="p")
    stats = '{"numRecords":1,"tightBounds":false}'
    await land(world, clone, add(f"{place}/file", deletionVector=marks, stats=stats), add("own"))
    await ended(world, clone)
    assert left(source) == {"file", "vector.bin", "orphan"}
    await ended(world, source)
    assert (left(source), left(clone)) == ({"file", "vector.bin"}, {"own"})
