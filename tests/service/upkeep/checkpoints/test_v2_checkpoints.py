"""V2 checkpoints: what did not change is named again."""

import json

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import (
    SMALL,
    check_readers,
    checkpointed,
    folder_of,
    names,
    of_twelve_files,
    pointer,
)
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.observe.faults import CheckpointStep, Side
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(world, engine):
    """One whose snapshots have three files a page."""
    return world.over(PostgresIndex(engine, limits=IndexLimits(snapshot_files_a_page=3)))


@pytest.fixture
async def table(world):
    return await of_twelve_files(world)


def sidecars(table) -> set[str]:
    return {path.name for path in (folder_of(table) / "_delta_log/_sidecars").iterdir()}


async def test_nothing_changed(world, table, tmp_path):
    before = sidecars(table)
    written = await checkpointed(world, table, layout=SMALL)
    assert (written.files, written.files_written) == (5, 1)
    assert sidecars(table) == before
    await check_readers(world, table, tmp_path, 1)


async def test_an_append_to_one_partition(world, table, tmp_path):
    before = sidecars(table)
    await propose(world.context, table.name, proposal(add("x=2/9.parquet", "2")))
    written = await checkpointed(world, table, layout=SMALL)
    assert len(sidecars(table) - before) == written.files_written - 1 == 2
    assert written.files == 6
    await check_readers(world, table, tmp_path, 2)


async def test_a_removal(world, table, tmp_path):
    gone = [remove(f"x=1/{n}.parquet", "1") for n in range(3)]
    await propose(world.context, table.name, proposal(*gone, read_version=1, operation="DELETE"))
    written = await checkpointed(world, table, layout=SMALL)
    assert (written.files, written.files_written) == (5, 2)
    await check_readers(world, table, tmp_path, 2)
    # The sidecar that has no file any more still stands for the keys that it had.
    await propose(world.context, table.name, proposal(add("x=1/11.parquet")))
    assert (await checkpointed(world, table, layout=SMALL)).files_written == 2
    await check_readers(world, table, tmp_path, 3)


async def test_files_before_and_behind_all_others(world, table, tmp_path):
    files = [add("a.parquet", "1"), add("z.parquet", "1")]
    await propose(world.context, table.name, proposal(*files))
    written = await checkpointed(world, table, layout=SMALL)
    assert written.files_written == 5
    await check_readers(world, table, tmp_path, 2)


async def test_all_is_written_anew_where_a_sidecar_is_gone(world, table, tmp_path):
    (folder_of(table) / "_delta_log/_sidecars" / min(sidecars(table))).unlink()
    await propose(world.context, table.name, proposal(add("x=3/9.parquet", "3")))
    written = await checkpointed(world, table, layout=SMALL)
    assert (written.files, written.files_written) == (6, 6)
    await check_readers(world, table, tmp_path, 2)


async def test_and_where_the_index_was_made_anew(world, table, tmp_path):
    await rebuild_table(world.context, table.id)
    assert (await checkpointed(world, table, layout=SMALL)).files_written == 5
    await check_readers(world, table, tmp_path, 1)


async def test_the_pointer_names_the_main_file(world, table):
    found = json.loads((folder_of(table) / "_delta_log/_last_checkpoint").read_text())
    main = folder_of(table) / "_delta_log" / found["v2Checkpoint"]["path"]
    assert main.stat().st_size == found["v2Checkpoint"]["sizeInBytes"]
    assert found["numOfAddFiles"] == 12
    size = sum((main.parent / "_sidecars" / name).stat().st_size for name in sidecars(table))
    assert found["sizeInBytes"] == main.stat().st_size + size


class CleanedUp:
    """A clean-up takes a sidecar behind a step."""

    def __init__(self, table, at: CheckpointStep) -> None:
        self._at = at
        self._folder = folder_of(table) / "_delta_log/_sidecars"

    async def reached(self, step, side) -> None:
        if (step, side) == (self._at, Side.AFTER):
            min(self._folder.iterdir()).unlink()


async def test_sidecars_that_are_deleted_meanwhile_are_not_named(world, table):
    faults = CleanedUp(table, CheckpointStep.PARTS_PUT)
    before = names(table)
    with pytest.raises(StorageUnavailable, match="sidecars of the checkpoint were deleted"):
        await checkpointed(world, table, layout=SMALL, faults=faults)
    assert names(table) == before
    assert (await checkpointed(world, table, layout=SMALL)).files_written == 5


async def test_nor_is_pointed_to_what_names_them(world, table):
    before = pointer(table)
    faults = CleanedUp(table, CheckpointStep.CHECKPOINT_PUT)
    with pytest.raises(StorageUnavailable, match="sidecars of the checkpoint were deleted"):
        await checkpointed(world, table, layout=SMALL, faults=faults)
    assert pointer(table) == before
