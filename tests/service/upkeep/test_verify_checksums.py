"""`verify` holds checksums, ours and others', against the index."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_protocol.log.actions import Txn
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.maintenance.verify import DifferenceKind, verify_table
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.upkeep.checksums import Checksums
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(world: World, engine: AsyncEngine) -> World:
    return World(replace(world.context, upkeep=PostgresUpkeep(engine)))


@pytest.fixture
async def table(world: World, index: Index, engine: AsyncEngine) -> TableRecord:
    """A table with three versions, each with a checksum."""
    table = await world.create(properties={"delta.enableDeletionVectors": "true"})
    upkeep = PostgresUpkeep(engine)
    caretaker = Caretaker(index, upkeep, [Checksums(upkeep, world.context.storage)], share=1)
    await caretaker.round()
    for number in range(2):
        body = proposal(add(f"f{number}"), Txn(app_id="a", version=number))
        await propose(world.context, table.id, body)
        await caretaker.round()
    return table


def checksum_file(world: World, table: TableRecord, version: int) -> Path:
    return world.log_folder(table) / f"{version:020d}.crc"


async def found(world: World, table: TableRecord) -> list[tuple[int | None, str]]:
    verified = await verify_table(world.context, table.id)
    assert all(each.kind is DifferenceKind.STORAGE for each in verified.differences)
    return [(each.version, each.detail) for each in verified.differences]


async def test_ours_say_what_the_index_says(world: World, table: TableRecord):
    assert [checksum_file(world, table, version).exists() for version in range(3)] == [True] * 3
    assert await found(world, table) == []


@pytest.mark.parametrize(
    ("version", "change", "detail"),
    [
        (2, ("numFiles", 7), "expected 2, found 7"),
        (2, ("tableSizeBytes", 7), "expected 20, found 7"),
        (2, ("allFiles", []), "it is another one"),
        (2, ("setTransactions", []), "it is another one"),
        (2, ("numDeletedRecordsOpt", 5), "expected 0, found 5"),
        (2, ("histogramOpt", None), None),
        (1, ("txnId", "x"), "found 'x'"),
        (1, ("protocol", {"minReaderVersion": 1, "minWriterVersion": 1}), "it is another one"),
        (0, ("metadata", {"id": "x"}), "it is another one"),
    ],
)
async def test_what_one_says_otherwise_is_told(
    world: World, table: TableRecord, version, change, detail
):
    file = checksum_file(world, table, version)
    field, value = change
    body = json.loads(file.read_bytes())
    file.write_text(json.dumps({**body, field: value}))
    differences = await found(world, table)
    if detail is None:
        assert differences == []
        return
    ((of, said),) = differences
    assert of == version
    assert f"{field} of its checksum is not what the index has" in said
    assert detail in said


async def test_the_bins_of_other_writers_are_their_own(world: World, table: TableRecord):
    file = checksum_file(world, table, 2)
    body = json.loads(file.read_bytes())
    body["histogramOpt"] = {
        "sortedBinBoundaries": [0, 10],
        "fileCounts": [0, 2],
        "totalBytes": [0, 20],
    }
    del body["fileSizeHistogram"]
    file.write_text(json.dumps(body))
    assert await found(world, table) == []


async def test_one_that_cannot_be_read_is_told(world: World, table: TableRecord):
    checksum_file(world, table, 1).write_text("torn")
    ((version, said),) = await found(world, table)
    assert (version, "its checksum cannot be read" in said) == (1, True)


async def test_very_many_applications_of_another_writer(world: World, table: TableRecord):
    file = checksum_file(world, table, 2)
    body = json.loads(file.read_bytes())
    body["setTransactions"] = [{"appId": f"a{n}", "version": n} for n in range(200_000)]
    file.write_text(json.dumps(body))
    ((version, said),) = await found(world, table)
    assert version == 2
    assert "setTransactions" in said, said
