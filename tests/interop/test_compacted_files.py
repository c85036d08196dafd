"""Stock Delta Spark reads compacted files in the place of their commits, and comes to the same."""

import shutil
from pathlib import Path

import pytest

from tests.interop.processes.foreign_spark import ForeignSpark
from tests.interop.test_checkpoints import sql
from tests.service.tables.delta_logs import names
from tests.service.upkeep.checkpointed import checkpointed
from tests.service.upkeep.compacting import written
from tests.service.world import make_world
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.upkeep.compaction import Compactions
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', "
    "'delta.checkpointInterval' = '1000', 'delta.enableInCommitTimestamps' = 'true'"
)


def rows_at(spark: ForeignSpark, folder: Path, version: int, copy: Path):
    """Read under another name, of which Spark remembers nothing."""
    shutil.copytree(folder, copy)
    return sql(spark, f"SELECT * FROM delta.`{copy}` VERSION AS OF {version} ORDER BY id")


async def test_rows_are_the_same(spark, index, tmp_path):
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    folder = tmp_path / "t"
    table = f"delta.`{folder}`"
    sql(
        spark,
        f"CREATE TABLE {table} (id BIGINT, name STRING, p INT) USING delta "
        f"PARTITIONED BY (p) TBLPROPERTIES ({PROPERTIES})",
    )
    sql(spark, f"INSERT INTO {table} SELECT id, concat('n', id), id % 20 FROM range(60)")
    made, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=folder.as_uri())
    )
    await checkpointed(world, made)
    sql(spark, f"DELETE FROM {table} WHERE id = 3")
    sql(spark, f"UPDATE {table} SET name = 'u' WHERE id = 25")
    sql(spark, f"ALTER TABLE {table} RENAME COLUMN name TO named")
    sql(spark, f"INSERT INTO {table} VALUES (1000, 'late', 7)")
    await rebuild_table(world.context, made.id)
    head = await get_table(world.context, made.id)
    before = rows_at(spark, folder, head.latest_version, tmp_path / "before")

    job = Compactions(index, world.context.storage, commits=2)
    await job.run(head, UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None))
    assert written(made) == [(2, head.latest_version)]
    sql(spark, f"INSERT INTO {table} VALUES (1001, 'later', 7)")
    later = rows_at(spark, folder, head.latest_version + 1, tmp_path / "later")
    assert later == [*before, (1001, "later", 7)]

    # Commits that hold nothing show that it is the compacted file that is read.
    for version in range(2, head.latest_version):
        commit = folder / "_delta_log" / f"{version:020d}.json"
        first, _, _ = commit.read_bytes().partition(b"\n")
        commit.write_bytes(first + b"\n")
    emptied = rows_at(spark, folder, head.latest_version + 1, tmp_path / "emptied")
    assert emptied == later
