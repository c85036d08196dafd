"""Others drop a plain table's folder and make another table there, while commits go on."""

import shutil
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders import actions
from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.catalog_managed.guarded import rows
from tests.service.log.foreign.test_late_writes import told
from tests.service.log.test_used_places import ROWS
from tests.service.upkeep.checkpointed import checkpointed
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import Refused, StorageUnavailable, TableQuarantined
from tidegate_service.core.instance.log_checks import LogChecks
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

OTHERS = pa.table({"z": ["theirs"]})


def restarted(context):
    return replace(context, log_checks=LogChecks())


async def land(context, table, name):
    return (await propose(context, table.id, proposal(add(f"x=1/{name}")))).record.version


def remake(table, versions):
    """Another writer's table in the place of the table, with so many versions."""
    shutil.rmtree(table.location.removeprefix("file://"))
    for _ in range(versions):
        write_deltalake(table.location, OTHERS, mode="append")


@pytest.fixture
async def busy(world):
    """A table with versions 0 to 3, whose log was checked when its head was version 2, and is
    checked again when a test says so, however slow the machine is."""
    world.context.log_checks.quiet_ms = 3_600_000
    table = await world.create()
    for name in ("a", "b"):
        await land(world.context, table, name)
    world.checked_long_ago()
    await land(world.context, table, "c")
    return table


def move_away_what_the_service_put(world, table):
    """As the text of the quarantine says."""
    log, moved = world.log_folder(table), 0
    for file in list(log.iterdir()):
        is_marked = file.suffix == ".json" and '"tidegate":{' in file.read_text()
        if is_marked or file.name.endswith((".crc", ".compacted.json")):
            file.unlink()
            moved += is_marked
    assert moved


async def registered_as_another(world, table):
    await forget_table(world.context, table.id)
    asked = RegisterTable(name="main.test.other", location=table.location)
    other, _ = await register_table(world.context, asked)
    return other


# Fewer than the head: commits land behind a hole. As many, and more: they land behind the others',
# which are read in before.
@pytest.mark.parametrize("versions", [1, 2, 3, 4, 6])
async def test_the_next_check_finds_it_however_steadily_commits_come(world, busy, versions):
    remake(busy, versions)
    landed = [await land(world.context, busy, f"late{number}") for number in range(3)]
    assert landed[0] == max(4, versions)
    world.checked_long_ago()
    # The file of version 2 is gone, or another one.
    found = "version 3 is missing" if versions < 3 else "version 2 in the log is not the one"
    with pytest.raises(TableQuarantined, match=found):
        await land(world.context, busy, "refused")
    head = await get_table(world.context, busy.id)
    assert head.state is TableState.QUARANTINED
    assert "register what is there" in head.state_reason
    assert not world.log_file(busy, landed[-1] + 1).exists()


@pytest.mark.parametrize("versions", [1, 6])
async def test_the_way_out_that_the_text_names(world, busy, versions):
    remake(busy, versions)
    await land(world.context, busy, "late")
    world.checked_long_ago()
    with pytest.raises(TableQuarantined):
        await land(world.context, busy, "refused")
    move_away_what_the_service_put(world, busy)
    other = await registered_as_another(world, busy)
    assert (other.latest_version, other.num_files) == (versions - 1, versions)
    new = proposal(actions.add("new", stats=None))
    assert (await propose(restarted(world.context), other.id, new)).record.version == versions
    assert len(DeltaTable(busy.location).file_uris()) == versions + 1
    assert (await verify_table(world.context, other.id)).differences == ()


async def test_where_others_have_committed_behind_the_service_they_undo_what_it_did(world, busy):
    remake(busy, 4)
    assert await land(world.context, busy, "late") == 4
    theirs = DeltaTable(busy.location)
    theirs.restore(3)
    theirs.create_checkpoint()
    world.checked_long_ago()
    with pytest.raises(TableQuarantined):
        await land(world.context, busy, "refused")
    for version in range(5):
        world.log_file(busy, version).unlink()
    other = await registered_as_another(world, busy)
    assert (other.first_version, other.latest_version, other.num_files) == (5, 5, 4)
    assert len(DeltaTable(busy.location).file_uris()) == 4


async def test_a_table_that_was_moved_there_may_begin_with_a_checkpoint(world, busy, tmp_path):
    """None of the index's first versions is there, and all later ones are."""
    moved = tmp_path / "moved"
    cleaned = {"delta.logRetentionDuration": "interval 0 seconds"}
    write_deltalake(str(moved), OTHERS, configuration=cleaned)
    for _ in range(5):
        write_deltalake(str(moved), OTHERS, mode="append")
    for version in (3, 5):
        theirs = DeltaTable(str(moved), version=version)
        theirs.create_checkpoint()
    theirs.cleanup_metadata()
    folder = busy.location.removeprefix("file://")
    shutil.rmtree(folder)
    shutil.move(moved, folder)
    assert not world.log_file(busy, 1).exists()
    await land(world.context, busy, "late")
    with pytest.raises(TableQuarantined, match="its metadata has the id"):
        await land(restarted(world.context), busy, "refused")
    with pytest.raises(Refused, match="stays quarantined: its log can be read from a version"):
        await release_table(world.context, busy.id)


async def test_an_index_is_not_made_anew_from_another_table(world, busy):
    """Which the others have cleaned up past the index's head."""
    remake(busy, 6)
    DeltaTable(busy.location).create_checkpoint()
    for version in range(5):
        world.log_file(busy, version).unlink()
    world.checked_long_ago()
    with pytest.raises(TableQuarantined, match="its metadata has the id"):
        await land(world.context, busy, "refused")
    assert (await get_table(world.context, busy.id)).latest_version == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda context, table: conflict_check(context, table.id, proposal(add("x=1/new"))),
        lambda context, table: abort(context, table.id, "never"),
    ],
    ids=["conflict check", "abort"],
)
async def test_no_other_request_goes_on_either(world, busy, ask):
    remake(busy, 2)
    await land(world.context, busy, "late")
    world.checked_long_ago()
    with pytest.raises(TableQuarantined, match="register what is there"):
        await ask(world.context, busy)


@pytest.mark.parametrize("versions", [1, 6])
async def test_an_instance_that_never_saw_the_log_finds_it_by_the_first_version(
    world, busy, versions
):
    remake(busy, versions)
    await land(world.context, busy, "late")
    with pytest.raises(TableQuarantined, match="version 0 in the log is not the one"):
        await land(restarted(world.context), busy, "refused")


@pytest.mark.parametrize("versions", [2, 6])
async def test_no_checkpoint_hides_the_other_table(world, busy, versions):
    """A checkpoint of the index would make a table of the two that every reader opens."""
    remake(busy, versions)
    await land(world.context, busy, "late")
    with pytest.raises(StorageUnavailable, match="version 0 has other bytes"):
        await checkpointed(world, busy)
    assert not list(world.log_folder(busy).glob("*.checkpoint*"))
    assert not (world.log_folder(busy) / "_last_checkpoint").exists()


@pytest.mark.parametrize(
    ("versions", "why"), [(2, "version 3 is missing"), (6, "version 3 has other bytes")]
)
async def test_nor_where_an_earlier_one_was_written(world, busy, versions, why):
    await checkpointed(world, busy)
    remake(busy, versions)
    await land(world.context, busy, "late")
    with pytest.raises(StorageUnavailable, match=why):
        await checkpointed(world, busy)
    assert not list(world.log_folder(busy).glob("*.checkpoint*"))


async def test_it_is_released_once_its_own_files_are_back(world, busy, tmp_path):
    folder, kept = busy.location.removeprefix("file://"), tmp_path / "kept"
    shutil.copytree(folder, kept)
    remake(busy, 2)
    version = await land(world.context, busy, "late")
    context = world.context
    world.checked_long_ago()
    with pytest.raises(TableQuarantined):
        await land(context, busy, "refused")
    with pytest.raises(Refused, match="stays quarantined: version 0 in the log is not the one"):
        await release_table(context, busy.id)
    late = world.log_file(busy, version).read_bytes()
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    with pytest.raises(Refused, match="version 4 is not in the log"):
        await release_table(context, busy.id)
    world.log_file(busy, version).write_bytes(late)
    middle = world.log_file(busy, 3).read_bytes()
    world.log_file(busy, 3).unlink()
    with pytest.raises(Refused, match="version 3 is missing"):
        await release_table(context, busy.id)
    world.log_file(busy, 3).write_bytes(middle)
    await release_table(context, busy.id)
    assert await land(context, busy, "more") == 5
    assert (await verify_table(context, busy.id)).differences == ()


async def test_a_folder_that_is_gone_takes_no_commits(world, busy):
    shutil.rmtree(busy.location.removeprefix("file://"))
    world.checked_long_ago()
    with pytest.raises(TableQuarantined, match="there is no commit and no complete checkpoint"):
        await land(world.context, busy, "refused")


async def test_commits_that_come_within_ten_seconds_share_one_check(world, busy, database_url):
    reads: list[int] = []
    context = told(world, reads.append).context
    for number in range(5):
        await land(context, busy, f"more{number}")
    assert reads == []
    # The date of its newest commit is nothing that a check goes by.
    assert rows(database_url, "UPDATE tables SET latest_timestamp = 9000000000000 RETURNING 1")
    await land(context, busy, "last")
    assert reads == []
    world.checked_long_ago()
    await land(context, busy, "checked")
    assert Counter(reads) == {2: 1, 9: 1}


async def test_a_checkpoint_of_others_stands_for_what_they_have_cleaned_up(world):
    table = await world.create(properties={"delta.logRetentionDuration": "interval 0 seconds"})
    context = world.context
    for number in range(4):
        world.checked_long_ago()
        head = await land(context, table, f"{number}")
        theirs = DeltaTable(table.location)
        theirs.create_checkpoint()
        theirs.cleanup_metadata()
        assert not world.log_file(table, head - 1).exists()
        if number > 1:
            write_deltalake(table.location, ROWS, mode="append")
    last = await get_table(context, table.id)
    assert (last.state, last.epoch) == (TableState.ACTIVE, table.epoch)
    assert await land(context, table, "last") == theirs.version() + 2
    await checkpointed(world, table)
