"""Tables that lie in a bucket already are registered there."""

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from obstore.store import S3Store

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import scanned
from tests.service.tables.delta_logs import names
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio


@pytest.fixture
def location(s3_server, s3_prefix):
    """A table of `deltalake`'s: three versions, and a checkpoint of the second."""
    url = f"{s3_prefix}/flights"
    options = s3_server.storage_options
    for version in range(3):
        data = pa.table({"x": pa.array([version], pa.int32()), "v": [str(version)]})
        write_deltalake(url, data, partition_by=["x"], mode="append", storage_options=options)
        if version == 1:
            DeltaTable(url, storage_options=options).create_checkpoint()
    return url


async def registered(world, location):
    table, created = await register_table(
        world.context, RegisterTable(name=next(names), location=location)
    )
    assert created
    return table


async def test_its_files_are_those_that_its_writer_sees(world, s3_server, location):
    table = await registered(world, location)

    found = await scan(world.context, table.id, ScanRequest())
    files = sorted([file.path for file in await scanned(found)])

    theirs = DeltaTable(location, storage_options=s3_server.storage_options)
    assert table.latest_version == theirs.version() == 2
    assert sorted(f"{location}/{path}" for path in files) == sorted(theirs.file_uris())


async def test_it_goes_on_from_there(world, s3_server, location):
    table = await registered(world, location)

    landed = await propose(world.context, table.id, proposal(add("x=1/ours")))

    assert isinstance(landed, Committed)
    assert landed.record.version == 3
    theirs = DeltaTable(location, storage_options=s3_server.storage_options)
    assert f"{location}/x=1/ours" in theirs.file_uris()


async def test_one_whose_early_versions_are_gone_starts_at_its_checkpoint(
    world, s3_server, location
):
    key = location.removeprefix(f"s3://{s3_server.bucket}/")
    store = S3Store(s3_server.bucket, config=s3_server.storage_options)
    for version in range(2):
        obstore.delete(store, f"{key}/_delta_log/{version:020d}.json")

    table = await registered(world, location)

    assert (table.first_version, table.latest_version, table.num_files) == (1, 2, 3)


async def test_a_place_without_a_log_is_refused(world, s3_prefix):
    with pytest.raises(Refused):
        await registered(world, f"{s3_prefix}/nothing-here")
