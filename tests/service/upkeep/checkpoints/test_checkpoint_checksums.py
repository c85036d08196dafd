"""The version of a checkpoint has a checksum, also where commits land all the while."""

import json

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import checkpointed
from tidegate_protocol.log.actions import Txn
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.maintenance.verify import verify_table

pytestmark = pytest.mark.anyio


async def land(world, table, number):
    body = proposal(add(f"f{number}", size=10 + number), Txn(app_id="a", version=number))
    await propose(world.context, table.id, body)


def checksums(world, table):
    return {
        int(file.name[:20]): json.loads(file.read_text())
        for file in sorted(world.log_folder(table).glob("*.crc"))
    }


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_commit_lands_while_it_is_written(world, monkeypatch, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    publisher = Publisher(world.context.index, world.context.storage)
    for number in range(3):
        await land(world, table, number)
    await publisher.round()
    files = type(world.context.storage.checkpoints(table.location))
    put = files.point_to

    async def late(self, version, content):
        await land(world, table, 3)
        await put(self, version, content)

    monkeypatch.setattr(files, "point_to", late)
    written = await checkpointed(world, table)
    await publisher.round()
    assert written.version == 3
    (found,) = checksums(world, table).items()
    assert found[0] == 3
    assert (found[1]["numFiles"], found[1]["tableSizeBytes"]) == (3, 33)
    assert [each["version"] for each in found[1]["setTransactions"]] == [2]
    assert [each["path"] for each in found[1]["allFiles"]] == ["f0", "f1", "f2"]
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_an_earlier_version_has_none(world):
    table = await world.create()
    for number in range(2):
        await propose(world.context, table.id, proposal(add(f"f{number}")))
    assert (await checkpointed(world, table, version=1)).version == 1
    assert checksums(world, table) == {}
    assert (await checkpointed(world, table)).version == 2
    assert list(checksums(world, table)) == [2]


async def test_another_writers_stays(world):
    table = await world.create()
    theirs = world.log_folder(table) / f"{0:020d}.crc"
    theirs.write_text("{}")
    await checkpointed(world, table)
    assert theirs.read_text() == "{}"
