"""A version has one checkpoint of a file or of parts: readers of Delta Kernel take any one that is
whole, and refuse the table where `_last_checkpoint` says another number of parts."""

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import (
    SMALL,
    check_readers,
    checkpointed,
    folder_of,
    names,
    pointer,
)
from tidegate_service.core.checkpoints.taken_over import TakingOver
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.observe.faults import CheckpointStep, Side
from tidegate_service.core.ports.checkpoints import CheckpointKind

pytestmark = pytest.mark.anyio


class Once:
    """What happens at a step of a checkpoint, the first time."""

    def __init__(self, step, side, work):
        self._at, self._work = (step, side), work

    async def reached(self, step, side):
        if (step, side) == self._at and self._work is not None:
            work, self._work = self._work, None
            await work()


@pytest.fixture
async def table(world):
    """Seven files: four parts, of which the last has none."""
    return await of_seven(world)


async def of_seven(world, prefix=""):
    made = await world.create()
    await checkpointed(world, made)
    await propose(world.context, made.name, proposal(*(add(f"x=1/{prefix}{n}") for n in range(7))))
    return made


async def in_parts(world, table, **options):
    soon = TakingOver(files=4, versions=0, last_files=3, most_parts=9)
    return await checkpointed(world, table, layout=SMALL, taking_over=soon, **options)


def of_version_1(table, pattern="*checkpoint*"):
    return names(table, f"{1:020d}.{pattern}")


async def cut_off():
    raise StorageUnavailable("the store is gone")


async def test_a_second_request_points_to_the_same_one(world, table, tmp_path):
    first = await in_parts(world, table)
    before, told = names(table), pointer(table)
    again = await checkpointed(world, table)
    assert (again.kind, again.files) == (first.kind, first.files) == (CheckpointKind.MULTI_PART, 4)
    assert (again.files_written, again.bytes_written, again.bytes) == (0, 0, first.bytes)
    assert (names(table), pointer(table)) == (before, told)
    await check_readers(world, table, tmp_path, 1)


@pytest.mark.parametrize("write", [checkpointed, in_parts])
async def test_one_that_was_cut_off_before_it_was_pointed_to(world, table, write, tmp_path):
    faults = Once(CheckpointStep.LAST_CHECKPOINT_PUT, Side.BEFORE, cut_off)
    with pytest.raises(StorageUnavailable):
        await write(world, table, faults=faults)
    there = of_version_1(table)
    assert there
    await checkpointed(world, table)
    assert of_version_1(table) == there
    assert pointer(table)["version"] == 1
    assert pointer(table).get("parts", 1) == len(there)
    await check_readers(world, table, tmp_path, 1)


async def test_another_writers(world, table, tmp_path):
    """To an index that was made anew it is another's."""
    await in_parts(world, table)
    before = names(table)
    await rebuild_table(world.context, table.id)
    assert (await checkpointed(world, table)).kind is CheckpointKind.MULTI_PART
    assert names(table) == before
    await check_readers(world, table, tmp_path, 1)


async def test_its_parts_are_taken_over_by_the_next_one(world, table):
    first = await in_parts(world, table)
    assert (await checkpointed(world, table)).files == first.files
    await propose(world.context, table.name, proposal(add("x=3/a", "3")))
    last = await in_parts(world, table)
    assert (last.kind, last.files_written) == (CheckpointKind.MULTI_PART, 1)


async def test_one_that_comes_while_another_is_written(world, table, tmp_path):
    """As by an instance that stood still until its claim was another's."""

    async def other():
        assert (await checkpointed(world, table)).files == 1

    faults = Once(CheckpointStep.PARTS_PUT, Side.AFTER, other)
    with pytest.raises(StorageUnavailable, match="another checkpoint of version 1"):
        await in_parts(world, table, faults=faults)
    assert (await checkpointed(world, table)).files == 1
    assert not of_version_1(table, f"checkpoint.{4:010d}.{4:010d}.parquet")
    await check_readers(world, table, tmp_path, 1)


async def test_one_of_another_snapshot_is_not_pointed_to(world, table):
    other = await of_seven(world, prefix="b")
    await in_parts(world, other)
    for name in of_version_1(other):
        (folder_of(other) / "_delta_log" / name).rename(folder_of(table) / "_delta_log" / name)
    with pytest.raises(StorageUnavailable, match="its checkpoint is not what the index has"):
        await checkpointed(world, table)
    assert pointer(table)["version"] == 0
