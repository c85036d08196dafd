"""Checksums say of a table what it is, at each version where these are few at a time."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, add_of_values, remove
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_protocol.checksum.checksum import decode
from tidegate_protocol.checksum.histograms import SIZE_BINS
from tidegate_protocol.log.actions import DeletionVector, Txn
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.upkeep.checksums import Checksums
from tidegate_service.index.limits import COUNTING_LIMITS, CountingLimits, IndexLimits
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


Summing = Callable[..., Caretaker]


@pytest.fixture
def summing(world: World, index: Index, engine: AsyncEngine) -> Summing:
    """A caretaker that writes checksums within limits."""

    def summing(counting: CountingLimits = COUNTING_LIMITS, **limits: int) -> Caretaker:
        upkeep = PostgresUpkeep(engine, limits=IndexLimits(counting=counting))
        job = Checksums(upkeep, world.context.storage, limits=UpkeepLimits(**limits))
        return Caretaker(index, upkeep, [job], share=1)

    return summing


@pytest.fixture
def caretaker(summing: Summing) -> Caretaker:
    return summing()


def written(world: World, table: TableRecord) -> dict[int, dict[str, object]]:
    files = sorted(Path(str(world.log_folder(table))).glob("*.crc"))
    return {int(file.name[:20]): json.loads(file.read_bytes()) for file in files}


async def test_each_version_of_an_ordinary_table_has_one(world: World, caretaker: Caretaker):
    table = await world.create()
    for number in range(3):
        await caretaker.round()
        await propose(world.context, table.id, proposal(add(f"f{number}", size=9_000)))
    await propose(
        world.context, table.id, proposal(remove("f0"), read_version=3, operation="DELETE")
    )
    await caretaker.round()
    found = written(world, table)
    assert list(found) == [0, 1, 2, 3, 4]
    assert sorted(file["path"] for file in found[3]["allFiles"]) == ["f0", "f1", "f2"]
    assert (found[3]["numFiles"], found[3]["tableSizeBytes"]) == (3, 27_000)
    assert found[3]["txnId"] == world.actions_of(table, 3)[0]["commitInfo"]["txnId"]
    assert (await verify_table(world.context, table.id)).differences == ()
    head = found[4]
    assert (head["numFiles"], head["tableSizeBytes"]) == (2, 18_000)
    assert (head["numMetadata"], head["numProtocol"]) == (1, 1)
    assert head["fileSizeHistogram"]["fileCounts"][SIZE_BINS.index(8192)] == 2
    assert sum(head["fileSizeHistogram"]["totalBytes"]) == 18_000
    assert sorted(file["path"] for file in head["allFiles"]) == ["f1", "f2"]
    assert head["txnId"] == world.actions_of(table, 4)[0]["commitInfo"]["txnId"]
    actions = [action for action in world.actions_of(table, 0) if "metaData" in action]
    assert head["metadata"] == actions[0]["metaData"]
    assert "numDeletedRecordsOpt" not in head
    assert await caretaker.round() == 0


async def test_versions_between_two_heads(world: World, caretaker: Caretaker, summing: Summing):
    """What they were is told where it is still known."""
    table = await world.create(properties={"delta.feature.domainMetadata": "supported"})
    await caretaker.round()
    await propose(world.context, table.id, proposal(add("a"), Txn(app_id="app", version=7)))
    await propose(world.context, table.id, proposal(add("b")))
    await propose(world.context, table.id, proposal(add("c"), Txn(app_id="app", version=8)))
    await propose(world.context, table.id, proposal(add("d")))
    await caretaker.round()
    found = written(world, table)
    assert [len(each["allFiles"]) for each in found.values()] == [0, 1, 2, 3, 4]
    told = {version: each.get("setTransactions") for version, each in found.items()}
    assert (told[1], told[2]) == (None, None)
    assert [each["version"] for each in (*told[3], *told[4])] == [8, 8]
    # A domain may have been removed since.
    assert [each.get("domainMetadata") for each in found.values()] == [[], None, None, None, []]
    assert (await verify_table(world.context, table.id)).differences == ()
    # Of a hot table, and of a large one, the head alone has one.
    for path in "efg":
        await propose(world.context, table.id, proposal(add(path)))
    await summing(checksums_between=1).round()
    for path in "hij":
        await propose(world.context, table.id, proposal(add(path)))
    await summing(CountingLimits(rows=8)).round()
    assert list(written(world, table)) == [0, 1, 2, 3, 4, 7, 10]


async def test_all_fields(world: World, caretaker: Caretaker):
    table = await world.create(
        properties={
            "delta.enableDeletionVectors": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.feature.domainMetadata": "supported",
        }
    )
    vector = DeletionVector(
        storage_type="i", path_or_inline_dv="a" * 20, size_in_bytes=10, cardinality=42
    )
    stats = '{"numRecords":100,"tightBounds":false}'
    actions = [
        add_of_values("a", stats=stats, deletion_vector=vector),
        add("b"),
        Txn(app_id="app", version=7),
    ]
    await propose(world.context, table.id, proposal(*actions))
    await caretaker.round()
    head = written(world, table)[1]
    commit = world.actions_of(table, 1)[0]["commitInfo"]
    assert head["inCommitTimestampOpt"] == commit["inCommitTimestamp"]
    assert (head["numDeletedRecordsOpt"], head["numDeletionVectorsOpt"]) == (42, 1)
    assert head["deletedRecordCountsHistogramOpt"] == {
        "deletedRecordCounts": [1, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    }
    assert [each["appId"] for each in head["setTransactions"]] == ["app"]
    assert head["domainMetadata"] == []
    assert decode(json.dumps(head).encode()).num_files == 2


async def test_of_a_large_table_what_takes_long_is_left_out(world: World, summing: Summing):
    table = await world.create()
    await propose(world.context, table.id, proposal(*(add(f"f{n}") for n in range(3))))
    await summing(CountingLimits(rows=2)).round()
    head = written(world, table)[1]
    assert head["numFiles"] == 3
    assert not {"fileSizeHistogram", "allFiles"} & set(head)


async def test_one_waits_until_its_version_is_published(
    world: World, index: Index, upkeep: PostgresUpkeep, caretaker: Caretaker
):
    table = await world.create(catalog_managed=True)
    publisher = Publisher(index, world.context.storage)
    await publisher.round()
    await propose(world.context, table.id, proposal(add("a")))
    assert await caretaker.round() == 1
    assert written(world, table) == {}
    assert await caretaker.round() == 0
    await publisher.round()
    await propose(world.context, table.id, proposal(add("b")))
    assert await caretaker.round() == 1
    found = written(world, table)
    assert {version: each["numFiles"] for version, each in found.items()} == {0: 0, 1: 1}
    standing = (await upkeep.standing(table.id))[UpkeepKind.CHECKSUM]
    assert standing.version == 1


async def test_others_are_left_as_they_are(world: World, caretaker: Caretaker):
    table = await world.create()
    theirs = Path(str(world.log_folder(table))) / f"{0:020d}.crc"
    theirs.write_text("of another writer")
    assert await caretaker.round() == 1
    assert theirs.read_text() == "of another writer"
    assert (await get_table(world.context, table.id)).latest_version == 0


@pytest.mark.parametrize("there", [None, b'{"commitInfo":{}}'])
async def test_a_log_that_is_not_the_tables_is_left_alone(
    world: World, upkeep: PostgresUpkeep, caretaker: Caretaker, there: bytes | None
):
    """As where a restore brought back the row of a table that is gone."""
    table = await world.create()
    file = world.log_file(table, 0)
    file.unlink()
    if there is not None:
        file.write_bytes(there)
    assert await caretaker.round() == 1
    assert written(world, table) == {}
    standing = (await upkeep.standing(table.id))[UpkeepKind.CHECKSUM]
    assert standing.trouble == "version 0 in the log is not what the index has"


async def test_long_metadata_is_not_written_with_every_version(world: World, summing: Summing):
    table = await world.create()
    assert await summing(checksum_metadata_bytes=10).round() == 1
    assert written(world, table) == {}
