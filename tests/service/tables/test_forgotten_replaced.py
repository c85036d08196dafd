"""Forgotten tables that others replaced (`CREATE OR REPLACE`), before or after: same log, another
`metaData.id`."""

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.tables.test_forgotten import AT_ONCE, cleaned_up, kept, refused_code, register
from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

SCHEMA = pa.schema([("x", pa.int32()), ("v", pa.string())])
BODY = proposal(add("x=1/once"), transaction_id="landed")
ABORTED = proposal(add("x=1/late"), transaction_id="aborted")


def replaced(table):
    before = DeltaTable(table.location)
    DeltaTable.create(
        table.location, SCHEMA, mode="overwrite", partition_by=["x"], configuration=AT_ONCE
    )
    after = DeltaTable(table.location)
    assert after.metadata().id != before.metadata().id
    assert after.version() == before.version() + 1


@pytest.fixture
async def table(world):
    made = await world.create(properties=AT_ONCE)
    await propose(world.context, made.id, BODY)
    await abort(world.context, made.id, "aborted")
    return made


async def is_the_same(world, again):
    replay = await propose(world.context, again.id, BODY)
    assert (replay.replayed, replay.record.version) == (True, 1)
    assert await refused_code(world, again, ABORTED) is Code.TRANSACTION_ABORTED
    assert await kept(world) == ()


@pytest.mark.parametrize("clean", [False, True], ids=["whole", "cleaned-up"])
async def test_one_that_was_replaced_since_has_its_ids(world, table, clean):
    await forget_table(world.context, table.id)
    replaced(table)
    if clean:
        cleaned_up(table)
        assert not world.log_file(table, 2).exists()
    again = await register(world, table)
    assert again.first_version == (3 if clean else 0)
    await is_the_same(world, again)


async def test_one_whose_replacement_was_lost_since_has_its_ids(world, table):
    replaced(table)
    await propose(world.context, table.id, proposal(add("x=1/more")))
    assert (await get_table(world.context, table.id)).latest_version == 4
    await forget_table(world.context, table.id)
    for version in (3, 4):
        world.log_file(table, version).unlink()
    again = await register(world, table)
    assert again.latest_version == 2
    await is_the_same(world, again)


async def test_of_tables_that_a_log_has_left_behind_the_last_one_is_it(world, table, tmp_path):
    await forget_table(world.context, table.id)
    world.log_folder(table).parent.rename(tmp_path / "aside")
    other = await world.create(name=table.name, properties=AT_ONCE)
    theirs = proposal(add("x=1/theirs"))
    await propose(world.context, other.id, theirs)
    for number in range(2):
        await propose(world.context, other.id, proposal(add(f"x=1/{number}")))
    await forget_table(world.context, other.id)
    replaced(other)
    cleaned_up(other)
    again = await register(world, other)
    assert again.first_version == 4
    assert (await propose(world.context, again.id, theirs)).replayed
    assert [one.id for one in await kept(world)] == [table.id]


async def test_one_that_was_rebuilt_behind_its_replacement_has_its_ids(world, table, tmp_path):
    """Its folder is put back as it was before."""
    await propose(world.context, table.id, proposal(add("x=1/more")))
    folder, aside = world.log_folder(table).parent, tmp_path / "aside"
    cleaned_up(table)
    assert not world.log_file(table, 1).exists()
    shutil.copytree(folder, aside)
    replaced(table)
    cleaned_up(table)
    assert (await rebuild_table(world.context, table.id)).first_version == 4
    await forget_table(world.context, table.id)
    shutil.rmtree(folder)
    aside.rename(folder)
    again = await register(world, table)
    assert (again.first_version, again.latest_version) == (3, 3)
    await is_the_same(world, again)
