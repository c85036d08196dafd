"""VACUUM on a real S3 server, whose listing is read in ranges."""

from dataclasses import replace
from datetime import UTC, datetime

import obstore
import pyarrow as pa
import pytest
from pyarrow.fs import S3FileSystem

from tests.builders.by_x import add, remove
from tests.service.on_s3.conftest import faults, world
from tests.service.vacuum.vacuuming import AT_ONCE, land
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.vacuum import Stage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.remote.data_files import RemoteDataFiles
from tidegate_service.storage.remote.root import RemoteRoot

__all__ = ["faults", "world"]

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("ranges", [1, 5])
@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_what_no_version_names_goes(world, monkeypatch, ranges, catalog_managed):
    async def ranges_at_once(self):
        return ranges

    monkeypatch.setattr(RemoteDataFiles, "ranges_at_once", ranges_at_once)
    table = await world.create(catalog_managed=catalog_managed)
    key = table.location.removeprefix("s3://").partition("/")[2]
    live = [f"x={n % 4}/live-{n}" for n in range(40)]
    orphans = [f"x={n % 4}/orphan-{n}" for n in range(30)] + ["ü %/o", "removed"]
    for path in [*live, *orphans, "_hidden/x", "_change_data/c"]:
        obstore.put(world.store, f"{key}/{path}", b"12345")
    await land(world, table, *(add(path, x=path[2]) for path in live), add("removed"))
    await land(world, table, remove("removed"))
    assert (await get_table(world.context, table.id)).num_files == 40
    vacuum = await begin_vacuum(world.context, table.id, AT_ONCE)
    # The server says when they were written: now.
    vacuum.horizon = replace(vacuum.horizon, modified_ms=2**62)
    last = [now async for now in vacuum.progress()][-1]
    assert (last.stage, last.deleted, last.error) == (Stage.ENDED, 33, None)
    prefix = f"{key}/"
    left = {
        entry["path"].removeprefix(prefix)
        for batch in obstore.list(world.store, key)
        for entry in batch
    }
    assert {path for path in left if "_delta_log" not in path} == {*live, "_hidden/x"}


async def test_a_clone_is_listed_in_ranges(world, monkeypatch):
    """Its paths of the source's files are no keys of its own folder. The server lists the keys of
    one folder in their order."""

    async def in_order(self):
        return True

    monkeypatch.setattr(RemoteRoot, "_lists_in_order", in_order)
    source, clone = await world.create(), await world.create()
    cloned = [f"{source.location}/{n}" for n in range(10)]
    await land(world, clone, *map(add, [*cloned, "k", "l", "m"]))
    key = clone.location.removeprefix("s3://").partition("/")[2]
    for path in ("k", "l", "m", "orphan"):
        obstore.put(world.store, f"{key}/{path}", b"12345")
    vacuum = await begin_vacuum(world.context, clone.id, replace(AT_ONCE, dry_run=True))
    vacuum.horizon = replace(vacuum.horizon, modified_ms=2**62)
    said = [now async for now in vacuum.progress()]
    assert (said[-1].stage, said[-1].error) == (Stage.ENDED, None)
    assert [path for now in said for path in now.paths] == ["orphan"]


async def test_marks_of_folders_are_no_files(world, s3_server):
    """An object of no bytes whose key ends with a slash, as consoles and Hadoop make."""
    table = await world.create()
    bucket_and_key = table.location.removeprefix("s3://")
    store = S3FileSystem(
        access_key=s3_server.access_key,
        secret_key=s3_server.secret_key,
        endpoint_override=s3_server.endpoint,
        region=s3_server.region,
        scheme="http",
    )
    for folder in ("p=1", "empty"):
        store.create_dir(f"{bucket_and_key}/{folder}", recursive=False)
    key = bucket_and_key.partition("/")[2]
    obstore.put(world.store, f"{key}/p=1/orphan", b"12345")
    vacuum = await begin_vacuum(world.context, table.id, replace(AT_ONCE, dry_run=True))
    vacuum.horizon = replace(vacuum.horizon, modified_ms=2**62)
    said = [now async for now in vacuum.progress()]
    assert [path for now in said for path in now.paths] == ["p=1/orphan"]


class Pages:
    """Pages of a store that lists keys by their bytes, as S3 itself does. Of the key of a folder's
    mark, the client takes the slash away."""

    def __init__(self, *objects):
        self._objects = objects

    def __call__(self, store, prefix, *, offset, chunk_size, return_arrow):
        at = datetime.fromtimestamp(0, UTC)
        rows = [
            {"path": key.removesuffix("/"), "size": size, "last_modified": at}
            for key, size in sorted(self._objects, key=lambda each: each[0].encode())
            if offset is None or key > offset
        ]
        return self._pages([rows[n : n + 3] for n in range(0, len(rows), 3)])

    async def _pages(self, pages):
        for page in pages:
            yield pa.RecordBatch.from_pylist(page)


class TestOrder:
    @pytest.fixture
    def files(self, world, monkeypatch):
        def files(*objects):
            monkeypatch.setattr(obstore, "list", Pages(*((f"k/{key}", n) for key, n in objects)))
            return RemoteDataFiles(
                world.store,
                "k",
                hides=lambda path: False,
                raised=None,
                is_ordered=in_order,
                share=world.context.scan_threads.of(""),
                limits=StorageLimits(),
            )

        async def in_order():
            return True

        return files

    async def test_a_range_ends_at_its_end_whatever_marks_there_are(self, files):
        """Files behind the end are the next range's, which would meet them a second time."""
        keys = [*(f"p=1-{n}" for n in "abcd"), *(f"p=1/{n}" for n in range(9))]
        store = files(*((key, 5) for key in keys), ("p=1/", 0), ("", 0))
        for cut in keys:
            first = [path async for page in store.listed(until=cut) for path in page.paths]
            rest = [path async for page in store.listed(after=cut) for path in page.paths]
            assert first + rest == keys

    async def test_one_that_comes_out_of_order_ends_the_listing(self, files):
        store = files(("p=1-a", 5), ("p=1/", 5), ("p=1/0", 5))
        with pytest.raises(StorageUnavailable, match="'p=1' does not come in the order of names"):
            async for _ in store.listed():
                pass
