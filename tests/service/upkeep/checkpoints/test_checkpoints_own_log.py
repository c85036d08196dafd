"""A checkpoint is written into the table's own log, and into no other."""

import shutil

import pytest

from tests.service.tables.delta_logs import line
from tests.service.upkeep.aged import LogOf, commit, rows_of
from tests.service.upkeep.checkpointed import checkpointed, forget_commits, names, pointer
from tests.service.upkeep.checkpoints.test_checkpoints import KINDS
from tests.service.world import World
from tidegate_protocol.log.actions import Txn
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.checkpoints.comparison import difference
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.ports.checkpoints import SmallActionLimits
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", KINDS)
async def test_none_is_written_into_another_tables_log(world: World, kind: str):
    request, options = KINDS[kind]
    table = await world.create(**request)
    other = await world.create()
    await commit(world, table, 2)
    await commit(world, other, 2)
    folder = world.log_folder(table)
    shutil.rmtree(folder)
    shutil.copytree(world.log_folder(other), folder)
    before = LogOf(world, table).names
    with pytest.raises(StorageUnavailable, match="version 2 in the log is not what the index has"):
        await checkpointed(world, table, **options)
    assert LogOf(world, table).names == before
    assert not (folder / "_sidecars").exists()


async def test_none_where_the_version_is_gone(world: World):
    table = await world.create()
    await commit(world, table, 2)
    world.log_file(table, 2).unlink()
    with pytest.raises(StorageUnavailable, match="its commit is not there"):
        await checkpointed(world, table)
    assert names(table) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_put_there_meanwhile_is_not_pointed_to(world: World, monkeypatch, kind: str):
    request, options = KINDS[kind]
    table = await world.create(**request)
    await commit(world, table, 4)
    index = type(world.context.index)
    rows = index.file_rows

    async def replaced(*args, **more):
        async for page in rows(*args, **more):
            world.log_file(table, 4).write_text("another\n")
            yield page

    monkeypatch.setattr(index, "file_rows", replaced)
    with pytest.raises(StorageUnavailable, match="its commit has other bytes"):
        await checkpointed(world, table, **options)
    assert not (world.log_folder(table) / "_last_checkpoint").exists()
    # A part of several, and a sidecar, are nothing that a reader finds.
    assert LogOf(world, table).names.count(f"{4:020d}.checkpoint.parquet") == 0


async def registered(world: World):
    """A table whose index was made from a checkpoint of its newest version, 2."""
    first = await world.create()
    await commit(world, first, 2)
    await checkpointed(world, first)
    forget_commits(first, 3)
    await world.lose(first)
    table, _ = await register_table(
        world.context, RegisterTable(name="main.test.from_checkpoint", location=first.location)
    )
    assert (table.first_version, table.latest_version) == (2, 2)
    return table


async def test_the_checkpoint_that_an_index_was_made_from_has_to_be_there(world: World):
    table = await registered(world)
    await checkpointed(world, table)
    log = LogOf(world, table)
    log.path(2, "checkpoint.parquet").unlink()
    with pytest.raises(StorageUnavailable, match="made from is not there"):
        await checkpointed(world, table)
    assert log.checkpoints == []


async def test_and_to_be_the_tables_own(world: World):
    table = await registered(world)
    other = await world.create()
    await commit(world, other, 2)
    log = LogOf(world, table)
    log.path(2, "checkpoint.parquet").unlink()
    log.checkpoint(2, await rows_of(world.context.index, other, 2))
    with pytest.raises(StorageUnavailable, match="another metaData"):
        await checkpointed(world, table)


async def test_another_writers_is_pointed_to_where_it_is_the_same(world: World):
    table = await world.create()
    await commit(world, table, 2)
    log = LogOf(world, table)
    log.checkpoint(2, await rows_of(world.context.index, table, 2))
    theirs = log.path(2, "checkpoint.parquet").read_bytes()
    await checkpointed(world, table)
    assert log.path(2, "checkpoint.parquet").read_bytes() == theirs
    assert (pointer(table)["version"], pointer(table)["sizeInBytes"]) == (2, len(theirs))


async def test_a_schema_of_any_depth_is_another(world: World):
    table = await world.create()
    await commit(world, table, 2)
    log = LogOf(world, table)
    rows = await rows_of(world.context.index, table, 2)
    deep = {**rows[1]["metaData"], "schemaString": "[" * 5000 + "]" * 5000}
    log.checkpoint(2, [{**rows[1], "metaData": deep}, rows[0], *rows[2:]])
    checkpoint = Checkpoint(version=2, files=(f"{2:020d}.checkpoint.parquet",))
    of = world.context.storage.log(table.location)
    assert await difference(world.context.index, of, table, checkpoint) == "another metaData"


@pytest.mark.parametrize("limits", [SmallActionLimits(number=3), SmallActionLimits(size=120)])
async def test_and_none_is_compared_that_has_more_transactions_than_are_held(
    world: World, limits: SmallActionLimits
):
    table = await world.create()
    await commit(world, table, 2)
    log = LogOf(world, table)
    rows = await rows_of(world.context.index, table, 2)
    three = [line(Txn(app_id=f"a{number}", version=1)) for number in range(3)]
    index, of = world.context.index, world.context.storage.log(table.location)
    checkpoint = Checkpoint(version=2, files=(f"{2:020d}.checkpoint.parquet",))
    log.checkpoint(2, [*rows, *three])
    assert await difference(index, of, table, checkpoint, limits=limits) is None
    log.checkpoint(2, [*rows, *three, line(Txn(app_id="a0", version=1))])
    with pytest.raises(UnreadableFile, match=r"more than .* transactions and domains"):
        await difference(index, of, table, checkpoint, limits=limits)


@pytest.mark.parametrize(
    ("is_torn", "error", "why"),
    [(True, Refused, "cannot be read"), (False, StorageUnavailable, "other files")],
)
async def test_and_not_where_it_is_another(world: World, is_torn, error, why):
    table = await world.create()
    await commit(world, table, 2)
    log = LogOf(world, table)
    log.checkpoint(2, (await rows_of(world.context.index, table, 2))[:-1])
    if is_torn:
        log.path(2, "checkpoint.parquet").write_bytes(b"torn")
    with pytest.raises(error, match=why):
        await checkpointed(world, table)
    assert "_last_checkpoint" not in log.names
