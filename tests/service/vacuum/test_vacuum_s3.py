"""VACUUM on a real S3 server, whose listing is read in ranges."""

from dataclasses import replace

import obstore
import pytest

from tests.builders.by_x import add, remove
from tests.service.on_s3.conftest import faults, world
from tests.service.vacuum.vacuuming import AT_ONCE, land
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.vacuum import Stage
from tidegate_service.storage.remote.data_files import RemoteDataFiles

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
