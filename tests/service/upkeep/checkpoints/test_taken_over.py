"""Checkpoints of several parts that take the parts of the last one over."""

import json

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import (
    by_deltalake,
    checkpointed,
    folder_of,
    forget_commits,
    live,
    names,
    paths_of,
    pointer,
)
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.checkpoints.taken_over import TakingOver
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.observe.faults import CheckpointStep, Side
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.checkpoints import CheckpointKind
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.upkeep.compaction import Compactions

pytestmark = pytest.mark.anyio

SOON = TakingOver(files=4, versions=3, last_files=3, most_parts=3)


async def commit(world, table, *actions, **options):
    return await propose(world.context, table.name, proposal(*actions, **options))


async def appended(world, table, *paths):
    for path in paths:
        await commit(world, table, add(path, path[-1]))


async def written(world, table, **options):
    return await checkpointed(world, table, taking_over=SOON, **options)


@pytest.fixture
async def table(world):
    """Six files, all of them in a part that the next checkpoint takes over."""
    made = await world.create()
    await checkpointed(world, made)
    await appended(world, made, *(f"a{n}" for n in range(6)))
    first = await written(world, made)
    assert (first.kind, first.files, first.files_written) == (CheckpointKind.MULTI_PART, 2, 2)
    return made


async def check(world, table, tmp_path) -> None:
    """Whoever reads the checkpoint alone meets what the index has."""
    version = pointer(table)["version"]
    forget_commits(table, version)
    theirs = by_deltalake(folder_of(table), tmp_path)
    assert theirs.version() == version
    assert paths_of(theirs) == {path for path, _ in await live(world, table, version)}


async def test_no_parts_where_the_protocol_has_v2_checkpoints(world):
    """PROTOCOL.md forbids them there, whatever kind the table's policy asks for."""
    table = await world.create(properties={"delta.feature.v2Checkpoint": "supported"})
    await checkpointed(world, table)
    await appended(world, table, *(f"a{n}" for n in range(6)))
    assert (await written(world, table)).kind is CheckpointKind.CLASSIC


async def test_the_parts_of_the_last_one_are_taken_over(world, table, tmp_path):
    log = folder_of(table) / "_delta_log"
    await appended(world, table, "b0", "b1")
    second = await written(world, table)
    assert (second.version, second.files, second.files_written) == (8, 2, 1)
    first_parts = [log / f"{v:020d}.checkpoint.{1:010d}.{2:010d}.parquet" for v in (6, 8)]
    assert first_parts[0].samefile(first_parts[1])
    found = pointer(table)
    size = sum((log / name).stat().st_size for name in names(table, f"{8:020d}.checkpoint*"))
    assert (found["parts"], found["numOfAddFiles"], found["sizeInBytes"]) == (2, 8, size)
    assert found["size"] == second.num_actions == 10
    await check(world, table, tmp_path)


async def test_the_last_part_becomes_one_that_is_taken_over(world, table, tmp_path):
    await appended(world, table, "b0", "b1", "b2")
    assert (await written(world, table)).files_written == 2
    await appended(world, table, "c0")
    third = await written(world, table)
    assert (third.files, third.files_written) == (3, 1)
    await check(world, table, tmp_path)


async def test_small_actions_and_other_columns(world, table, tmp_path):
    await appended(world, table, "b0")
    await commit(world, table, Txn(app_id="app", version=3, last_updated=5))
    assert (await written(world, table)).files_written == 1
    await check(world, table, tmp_path)
    assert by_deltalake(folder_of(table), tmp_path).transaction_version("app") == 3


async def test_a_removal_has_all_written_anew(world, table, tmp_path):
    # Later than any clock: it is kept.
    gone = remove("a3", "3", deletionTimestamp=4_102_444_800_000)
    await commit(world, table, gone, read_version=6, operation="DELETE")
    assert (await written(world, table)).kind is CheckpointKind.CLASSIC
    await check(world, table, tmp_path)
    await appended(world, table, *(f"b{n}" for n in range(3)))
    begun = await written(world, table)
    assert (begun.kind, begun.num_actions) == (CheckpointKind.MULTI_PART, 2 + 8 + 1)
    # The removed file stays named, with the parts that are taken over.
    await appended(world, table, "c0")
    assert (await written(world, table)).num_actions == 2 + 9 + 1
    await check(world, table, tmp_path)
    # It comes back: no checkpoint may name it as removed as well.
    await appended(world, table, "a3")
    last = await written(world, table)
    assert (last.kind, last.num_actions) == (CheckpointKind.CLASSIC, 2 + 10)
    await check(world, table, tmp_path)


async def test_a_removal_that_has_left_the_index(world, table, upkeep, tmp_path):
    """The part that names the file as removed is not taken over: nothing else tells of that."""
    now_ms = world.context.now_ms()
    gone = remove("a3", "3", deletionTimestamp=now_ms)
    await commit(world, table, gone, read_version=6, operation="DELETE")
    await written(world, table)
    await appended(world, table, *(f"b{n}" for n in range(3)))
    assert (await written(world, table)).num_actions == 2 + 8 + 1
    head = await get_table(world.context, table.id)
    kind = UpkeepKind.EXPIRED_VERSIONS
    cut = await upkeep.drop_versions(table.id, kind, below=9, epoch=head.epoch)
    assert (cut.first, cut.dropped) == (9, 9)
    await appended(world, table, "c0")
    last = await written(world, table)
    assert (last.kind, last.num_actions) == (CheckpointKind.CLASSIC, 2 + 9 + 1)
    await appended(world, table, "d0", "d1", "d2")
    begun = await written(world, table)
    assert (begun.kind, begun.num_actions) == (CheckpointKind.MULTI_PART, 2 + 12 + 1)
    # The run ends behind the part that was begun meanwhile.
    files = await upkeep.drop_files(table.id, removed_before_ms=now_ms + 1, after=None)
    assert files.dropped == 1
    await upkeep.claim(table.id, kind, by="me", for_s=60)
    await upkeep.done(table.id, kind, Done(version=9, due_in_s=60), by="me")
    await appended(world, table, "a3")
    last = await written(world, table)
    assert (last.kind, last.num_actions) == (CheckpointKind.CLASSIC, 2 + 13)
    await check(world, table, tmp_path)


async def test_a_file_that_is_added_while_it_is_live(world, table, tmp_path):
    other = folder_of(table) / "_delta_log" / f"{7:020d}.json"
    again = {**json.loads(add("a3", "3").raw)["add"], "size": 77}
    other.write_text(json.dumps({"add": again}, separators=(",", ":")))
    await appended(world, table, "b0")
    last = await written(world, table)
    assert (last.kind, last.num_actions) == (CheckpointKind.CLASSIC, 2 + 7)
    await check(world, table, tmp_path)


async def test_a_part_that_is_gone(world, table, tmp_path):
    (folder_of(table) / "_delta_log" / f"{6:020d}.checkpoint.{1:010d}.{2:010d}.parquet").unlink()
    await appended(world, table, "b0")
    assert (await written(world, table)).kind is CheckpointKind.CLASSIC
    await check(world, table, tmp_path)


async def test_an_index_that_was_made_anew(world, table, tmp_path):
    await rebuild_table(world.context, table.id)
    await appended(world, table, "b0")
    assert (await written(world, table)).kind is CheckpointKind.CLASSIC
    await check(world, table, tmp_path)


async def test_whoever_asks_for_a_checkpoint_gets_a_whole_one(world, table, tmp_path):
    await appended(world, table, "b0")
    assert (await checkpointed(world, table)).kind is CheckpointKind.CLASSIC
    # Nothing of it can be taken over.
    await appended(world, table, "b1")
    assert (await written(world, table)).kind is CheckpointKind.CLASSIC
    await check(world, table, tmp_path)


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("step", CheckpointStep)
async def test_one_that_is_cut_off(world, table, tmp_path, step, side):
    await appended(world, table, *(f"b{n}" for n in range(3)))

    class CutOff:
        async def reached(self, at, where):
            if (at, where) == (step, side):
                raise StorageUnavailable("cut off")

    with pytest.raises(StorageUnavailable, match="cut off"):
        await written(world, table, faults=CutOff())
    theirs = by_deltalake(folder_of(table), tmp_path)
    assert paths_of(theirs) == {path for path, _ in await live(world, table, 9)}
    await appended(world, table, "c0")
    await written(world, table)
    await check(world, table, tmp_path)


async def test_no_compacted_file_is_written_beside_them(world, index, table):
    for number in range(4):
        await appended(world, table, f"b{number}")
    record = UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None)
    now = await get_table(world.context, table.id)
    done = await Compactions(index, world.context.storage, commits=2).run(now, record)
    assert (done.version, done.due_version) == (6, 8)
    assert names(table, "*.compacted.json") == []
