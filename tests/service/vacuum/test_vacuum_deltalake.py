"""VACUUM beside deltalake's own: on one table, both name the same files."""

import os
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.service.vacuum.vacuuming import AT_ONCE, left, named, plant, vacuumed
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


def rows(*values):
    return pa.table({"x": pa.array(values, pa.int64()), "v": [f"é {value}%" for value in values]})


async def test_both_name_the_same_files(world, tmp_path):
    folder = tmp_path / "main" / "theirs"
    for values in ((1, 2, 3), (4, 5), (1, 6)):
        write_deltalake(folder, rows(*values), partition_by=["v"], mode="append")
    theirs = DeltaTable(folder)
    theirs.delete("x = 1")
    theirs.optimize.compact()
    asked = RegisterTable(name="main.test.theirs", location=folder.as_uri())
    table, _ = await register_table(world.context, asked)
    plant(table, "orphan.parquet", "v=é 1%25/orphan.parquet", "_hidden/x", "_change_data/cdc-1")
    old = time.time() - 40 * 24 * 3600
    for file in folder.rglob("*.parquet"):
        os.utime(file, (old, old))
    expected = theirs.vacuum(
        retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True
    )
    assert len(expected) >= 5
    ours = await named(world, table, AT_ONCE)
    assert ours == {str(each).removeprefix(f"{folder}/") for each in expected}
    before = DeltaTable(folder).to_pyarrow_table().sort_by("x")
    await vacuumed(world, table)
    assert ours.isdisjoint(left(table))
    assert DeltaTable(folder).to_pyarrow_table().sort_by("x") == before
