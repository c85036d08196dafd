"""What versions name that land between listing and deleting, by other names than its path."""

import pytest

from tests.builders.by_x import add_of_values, remove
from tests.service.log.foreign.foreign import foreign_commit
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import AT_ONCE, folder_of, land, left, plant
from tidegate_protocol.log.actions import DeletionVector
from tidegate_protocol.proposal.operations import VACUUM_START
from tidegate_service.core.commit.propose import conflict_check
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.commits import proposal_of
from tidegate_service.core.vacuum.vacuum import Stage

pytestmark = pytest.mark.anyio

# The example of the protocol's document.
VECTOR = DeletionVector(
    storage_type="u",
    path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^",
    offset=4,
    size_in_bytes=40,
    cardinality=6,
)
VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
WITH_VECTOR = add_of_values(
    "part", deletion_vector=VECTOR, stats='{"numRecords":9,"tightBounds":false}'
)


@pytest.fixture
async def table(world):
    return await world.create(properties={"delta.enableDeletionVectors": "true"})


async def vacuumed_beside(world, table, meanwhile):
    """Its last word, where `meanwhile` is awaited once the files are chosen."""
    vacuum = await begin_vacuum(world.context, table.id, AT_ONCE)
    async for now in vacuum.progress():
        if now.stage is Stage.DELETING and now.deleted == 0:
            await meanwhile()
    return now


async def read_in(world, table):
    await conflict_check(world.context, table.id, proposal_of(world.context, VACUUM_START, {}, {}))


async def test_a_vector_that_is_brought_back(world, table):
    plant(table, "part", VECTOR_FILE, "orphan")
    await land(world, table, WITH_VECTOR, operation="DELETE")
    gone = remove(
        "part",
        deletionVector={
            "storageType": "u",
            "pathOrInlineDv": VECTOR.path_or_inline_dv,
            "offset": 4,
            "sizeInBytes": 40,
            "cardinality": 6,
        },
    )
    await land(world, table, gone, operation="DELETE")

    async def restore():
        await land(world, table, WITH_VECTOR, operation="DELETE")

    last = await vacuumed_beside(world, table, restore)
    assert last.stage is Stage.ENDED
    assert left(table) == {"part", VECTOR_FILE}


async def test_a_path_that_is_spelled_in_another_way(world, table):
    plant(table, "absolute", "odd", "orphan")

    async def write():
        head = await get_table(world.context, table.id)
        paths = [f"file:{folder_of(table)}/absolute", "x//../odd"]
        actions = ({"add": foreign_add(path)} for path in paths)
        foreign_commit(world, table, head.latest_version + 1, *actions)
        await read_in(world, table)

    await vacuumed_beside(world, table, write)
    assert left(table) == {"absolute", "odd"}


@pytest.mark.parametrize("named_before", [False, True])
async def test_a_clone(world, table, named_before):
    clone = await world.create()
    plant(table, "before", "since", "orphan")
    before = {"add": foreign_add(f"{folder_of(table)}/before")}
    since = {"add": foreign_add(f"{folder_of(table)}/since")}
    if named_before:
        foreign_commit(world, clone, 1, before)
        await read_in(world, clone)

    async def write():
        foreign_commit(world, clone, 1 + named_before, before, since)
        await read_in(world, clone)

    await vacuumed_beside(world, table, write)
    assert left(table) == {"before", "since"}


async def test_more_of_them_than_memory_is_for(world, table):
    world = world.limited(late_names=1)
    plant(table, "a", "b", "orphan")

    async def write():
        head = await get_table(world.context, table.id)
        actions = ({"add": foreign_add(f"{folder_of(table)}/{name}")} for name in "ab")
        foreign_commit(world, table, head.latest_version + 1, *actions)
        await read_in(world, table)

    last = await vacuumed_beside(world, table, write)
    assert (last.stage, type(last.error)) == (Stage.FAILED, Unavailable)
    assert left(table) == {"a", "b", "orphan"}
