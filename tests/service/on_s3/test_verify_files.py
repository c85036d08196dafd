"""Looking for data files in a bucket."""

from dataclasses import replace

import obstore
import pytest

from tests.builders.by_x import add
from tests.builders.lines import vector
from tests.service.maintenance.test_verify_files import foreign, looked, seen
from tests.service.on_s3.conftest import faults, world
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import land
from tidegate_protocol.base.problems import Code
from tidegate_service.core.maintenance.verify_files import FilesStage
from tidegate_service.storage import ObjectStorage

__all__ = ["faults", "world"]

pytestmark = pytest.mark.anyio


async def test_a_bucket_that_is_missing_is_no_lost_file(world, s3_server):
    storage = ObjectStorage("s3://another-bucket/x", options=s3_server.storage_options)
    table = await world.create(catalog_managed=True)
    await land(world, table, add("a"))
    elsewhere = replace(world, context=replace(world.context, storage=Elsewhere(storage)))
    last = (await seen(elsewhere, table))[-1]
    assert (last.stage, last.error.code) == (FilesStage.FAILED, Code.STORAGE_UNAVAILABLE)
    assert "NoSuchBucket" in last.error.detail


class Elsewhere:
    """Storage where every table is in another bucket."""

    def __init__(self, storage):
        self._storage = storage

    def log(self, _location, **of):
        return self._storage.log("s3://another-bucket/x/table", **of)

    def data_files(self, _location, **of):
        return self._storage.data_files("s3://another-bucket/x/table", **of)


async def test_files_of_a_table_and_of_its_clone(world):
    source, clone = await world.create(), await world.create()
    key = source.location.removeprefix("s3://").partition("/")[2]
    for path in ("short", "x=1/a b%2F ü", "vector.bin"):
        obstore.put(world.store, f"{key}/{path}", b"12345")
    paths = ["short", "x=1/a%20b%252F%20%C3%BC", "gone", "y" * 1_000]
    await land(world, source, *(add(path, size=5 + (path == "short")) for path in paths))
    last, bad = await looked(world, source)
    wrong = {
        "short": "the file has 5 bytes, and the log says 6",
        "gone": "the file is missing",
        "y" * 1_000: "the file is missing",
    }
    assert (last.files, last.skipped, bad) == (4, 0, wrong)

    # Hadoop's name of S3.
    place = source.location.replace("s3://", "s3a://")
    marks = vector(f"{place}/vector.bin", storageType="p")
    adds = [{**foreign_add(f"{place}/{path}"), "deletionVector": marks} for path in paths]
    await foreign(world, clone, *adds)
    last, bad = await looked(world, clone)
    assert (last.files, last.vectors, last.skipped) == (4, 4, 0)
    assert bad[f"{place}/{paths[1]}"] == (
        f"the file of its deletion vector, {source.location}/vector.bin, has 5 bytes, and the "
        "vector ends at 49"
    )
