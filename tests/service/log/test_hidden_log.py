"""Other writers checkpoint a plain table and clean its log up past what the index knows."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import quarantine
from tests.service.commit.groups.grouping import instance
from tests.service.faults import FaultyLog
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.catalog_managed.ratified_log import UnknownIds
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import (
    NotFound,
    Refused,
    StorageUnavailable,
    TableQuarantined,
)
from tidegate_service.core.instance.log_checks import QUIET_MS
from tidegate_service.core.log.copying.copied_log import CopiedLog
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild, rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio

ROWS = pa.table({"x": pa.array([1], pa.int32()), "v": ["theirs"]})


async def left_behind(world):
    """A table with a version of ours, and two of deltalake's that only its checkpoint holds."""
    table = await world.create(properties={"delta.logRetentionDuration": "interval 0 seconds"})
    body = proposal(add("x=1/ours"))
    await propose(world.context, table.id, body)
    for _ in range(2):
        write_deltalake(table.location, ROWS, mode="append")
    theirs = DeltaTable(table.location)
    theirs.create_checkpoint()
    theirs.cleanup_metadata()
    kept = sorted(path.name for path in world.log_folder(table).glob("*.json"))
    assert f"{1:020d}.json" not in kept
    assert f"{2:020d}.json" not in kept
    world.checked_long_ago()
    return table, body


async def test_a_commit_goes_to_the_end_of_the_log_and_not_into_its_hole(world):
    table, _ = await left_behind(world)
    landed = await propose(world.context, table.id, proposal(add("x=1/more")))
    assert landed.record.version == 4
    theirs = DeltaTable(table.location)
    assert theirs.version() == 4
    assert len(theirs.file_uris()) == 4
    head = await get_table(world.context, table.id)
    assert (head.first_version, head.latest_version, head.num_files) == (3, 4, 4)
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_what_landed_before_is_still_answered(world):
    table, body = await left_behind(world)
    await propose(world.context, table.id, proposal(add("x=1/more")))
    again = await propose(world.context, table.id, body)
    assert (again.record.version, again.replayed) == (1, True)


async def test_a_rebuild_names_the_versions_whose_ids_are_unknown(world):
    table, _ = await left_behind(world)
    assert (await rebuild(world.context, table.id)).unknown == UnknownIds(
        first_version=2, last_version=2
    )
    assert (await rebuild(world.context, table.id)).unknown is None


async def test_so_does_the_log_of_a_service_that_reads_on_by_itself(world, caplog):
    table, _ = await left_behind(world)
    await propose(world.context, table.id, proposal(add("x=1/more")))
    told = [each for each in caplog.records if "transaction ids are unknown" in each.message]
    assert [(each.first_version, each.last_version) for each in told] == [(2, 2)]


async def test_a_transaction_that_read_before_the_hole_cannot_be_judged(world):
    table, _ = await left_behind(world)
    stale = proposal(add("x=1/more"), read_version=1, predicates=("x = 1",))
    with pytest.raises(Refused, match="version 1"):
        await propose(world.context, table.id, stale)
    fresh = proposal(add("x=1/more"), read_version=3, predicates=("x = 1",))
    # Behind the version that keeps the refused one out.
    assert (await propose(world.context, table.id, fresh)).record.version == 5
    assert isinstance(
        await propose(
            world.context, table.id, proposal(add("y"), read_version=3, predicates=("x = 1",))
        ),
        Conflict,
    )


async def test_a_conflict_check_and_an_abort_see_it_too(world):
    table, _ = await left_behind(world)
    would = await conflict_check(world.context, table.id, proposal(add("x=1/more")))
    assert would.version == 4
    table, _ = await left_behind(world)
    await abort(world.context, table.id, "never")
    assert DeltaTable(table.location).version() == 4


async def test_versions_that_the_log_forgot_cannot_be_read(world):
    table, _ = await left_behind(world)
    await propose(world.context, table.id, proposal(add("x=1/more")))
    with pytest.raises(NotFound):
        await scan(world.context, table.id, ScanRequest(version=1))


async def test_a_log_that_lost_its_end_quarantines_the_table(world):
    table = await world.create()
    for name in ("a", "b"):
        await propose(world.context, table.id, proposal(add(name)))
    world.log_file(table, 2).unlink()
    world.checked_long_ago()
    with pytest.raises(TableQuarantined, match="ends at version 1, and version 2 was committed"):
        await propose(world.context, table.id, proposal(add("c")))
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
    assert not world.log_file(table, 3).exists()


async def test_it_is_released_once_the_lost_file_is_back(world):
    table = await world.create()
    await propose(world.context, table.id, proposal(add("a")))
    content = world.log_file(table, 1).read_bytes()
    world.log_file(table, 1).unlink()
    world.checked_long_ago()
    for _ in range(2):
        with pytest.raises(TableQuarantined):
            await propose(world.context, table.id, proposal(add("b")))
    with pytest.raises(Refused, match="version 1 is not in the log"):
        await release_table(world.context, table.id)
    world.log_file(table, 1).write_bytes(content)
    await release_table(world.context, table.id)
    assert (await propose(world.context, table.id, proposal(add("b")))).record.version == 2


async def test_a_conflict_check_does_not_end_a_quarantine(world):
    table, _ = await left_behind(world)
    await quarantine(world.context.index, table, "somebody looks into it")
    with pytest.raises(TableQuarantined, match="somebody looks into it"):
        await conflict_check(world.context, table.id, proposal(add("x=1/more")))
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED


async def test_a_head_that_only_a_checkpoint_is_left_of_is_the_end_of_the_log(world):
    """As after registering such a table: nothing is hidden, and nothing is read again."""
    table = await world.create()
    await propose(world.context, table.id, proposal(add("x=1/ours")))
    DeltaTable(table.location).create_checkpoint()
    for version in (0, 1):
        world.log_file(table, version).unlink()
    world.checked_long_ago()
    landed = await propose(world.context, table.id, proposal(add("x=1/more")))
    assert landed.record.version == 2
    assert DeltaTable(table.location).version() == 2
    assert (await get_table(world.context, table.id)).first_version == 0


@pytest.fixture
def looks(monkeypatch):
    """The versions that were looked for in a log."""
    real, seen = FaultyLog.read_dated, []

    async def read(self, version):
        seen.append(version)
        return await real(self, version)

    monkeypatch.setattr(FaultyLog, "read_dated", read)
    return seen


async def test_commits_behind_a_look_need_none_for_a_while(world, looks):
    one = instance(world)
    table = await world.create()
    for name in "abc":
        await one.propose(table, proposal(add(f"x=1/{name}")))
    # A creation looks, too.
    assert looks == []
    one.context.log_checks.quiet_ms = 0
    await one.propose(table, proposal(add("x=1/later")))
    # The head, and the first one.
    assert looks == [3, 0]
    await one.propose(table, proposal(add("x=1/later still")))
    # The head, and the one that was found before.
    assert looks == [3, 0, 4, 3]
    one.context.log_checks.quiet_ms = QUIET_MS
    await one.propose(table, proposal(add("x=1/more")))
    made = one.context.log_checks._made[table.id]

    async def is_spared():
        head = await get_table(world.context, table.id)
        return one.context.log_checks.spare(head, made.at_ms, database=made.database)

    assert await is_spared()
    await rebuild_table(one.context, table.id)
    assert not await is_spared()


async def test_a_look_that_no_commit_followed_is_for_nothing(world):
    """What lies unread behind the head that was found may be of any age, and go with it."""
    table = await world.create(properties={"delta.logRetentionDuration": "interval 0 seconds"})
    await propose(world.context, table.id, proposal(add("x=1/ours")))
    for _ in range(2):
        write_deltalake(table.location, ROWS, mode="append")
    world.checked_long_ago()
    nothing = await propose(world.context, table.id, proposal(skip_if_empty=True))
    assert isinstance(nothing, NothingToCommit)
    theirs = DeltaTable(table.location)
    theirs.create_checkpoint()
    theirs.cleanup_metadata()
    landed = await propose(world.context, table.id, proposal(add("x=1/more")))
    assert landed.record.version == 4


async def test_a_log_that_was_made_again_is_not_taken_for_the_table(world):
    """Dropped and made again by another writer, with as many versions or more."""
    table = await world.create()
    await propose(world.context, table.id, proposal(add("x=1/ours")))
    for file in world.log_folder(table).iterdir():
        file.unlink()
    for _ in range(3):
        write_deltalake(table.location, ROWS, mode="append", partition_by="x")
    world.checked_long_ago()
    with pytest.raises(TableQuarantined, match="version 0 in the log is not the one"):
        await propose(world.context, table.id, proposal(add("x=1/more")))
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
    assert not world.log_file(table, 3).exists()
    with pytest.raises(Refused, match="stays quarantined: version 0 in the log"):
        await release_table(world.context, table.id)
    rebuilt = await rebuild_table(world.context, table.id)
    assert (rebuilt.latest_version, rebuilt.num_files) == (2, 3)


async def test_a_rebuild_that_breaks_off_is_not_saved_by_the_next_of_its_group(world, monkeypatch):
    table, landed = await left_behind(world)
    one = instance(world)
    real, failed = FaultyLog.read_dated, []

    async def read(self, version):
        if version == 3 and not failed:
            failed.append(version)
            raise StorageUnavailable("a moment's outage")
        return await real(self, version)

    monkeypatch.setattr(FaultyLog, "read_dated", read)
    told = await one.at_once(table, *(proposal(add(f"x=1/m{n}")) for n in range(3)))
    assert failed
    assert all(isinstance(outcome, Committed | StorageUnavailable) for outcome in told)
    # Its id is known for ever, whatever was made anew.
    assert (await propose(world.context, table.id, landed)).replayed


async def test_a_log_that_cannot_be_taken_in_is_copied_once(world, monkeypatch):
    """The table is quarantined until the log is mended."""
    table, _ = await left_behind(world)
    poison = world.log_file(table, 4)
    features = {"readerFeatures": ["someday"], "writerFeatures": ["someday"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    poison.write_text(json.dumps({"protocol": protocol}) + "\n")
    copies, copy = [], CopiedLog.copy

    async def copied(log, *, through):
        copies.append(through)
        await copy(log, through=through)

    monkeypatch.setattr(CopiedLog, "copy", copied)
    for _ in range(3):
        with pytest.raises(TableQuarantined, match=r"cannot be taken in.*someday"):
            await propose(world.context, table.id, proposal(add("x=1/n")))
    assert len(copies) == 1
    now = await get_table(world.context, table.id)
    assert (now.state, now.latest_version) == (TableState.QUARANTINED, 1)
    poison.unlink()
    assert (await rebuild_table(world.context, table.id)).state is TableState.ACTIVE
    landed = await propose(world.context, table.id, proposal(add("x=1/n")))
    assert landed.record.version == 4
