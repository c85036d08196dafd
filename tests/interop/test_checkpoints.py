"""Stock Delta Spark reads tables from our checkpoints alone, at each version that is left, and
writes on from there."""

import shutil
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders.proposals import proposal
from tests.interop.processes.foreign_spark import ForeignSpark
from tests.service.tables.delta_logs import names
from tests.service.upkeep.checkpointed import SMALL, checkpointed, forget_commits
from tests.service.world import World, make_world
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.checkpoints.taken_over import TakingOver
from tidegate_service.core.commit.propose import conflict_check
from tidegate_service.core.ports.checkpoints import CheckpointKind
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
STRUCTS = "'delta.checkpoint.writeStatsAsStruct' = 'true'"
V2 = "'delta.checkpointPolicy' = 'v2'"
SOON = TakingOver(files=2, versions=1, last_files=3)
ONLY_STRUCTS = f"{STRUCTS}, 'delta.checkpoint.writeStatsAsJson' = 'false'"
TABLES = {
    "structs": (f"{MAPPED}, {ONLY_STRUCTS}", {}),
    "v2": (f"{MAPPED}, {V2}, {STRUCTS}", {"layout": SMALL}),
    "taken-over": (MAPPED, {"taking_over": SOON}),
}
INSERT = (
    "INSERT INTO {} SELECT n.id, timestamp'2024-02-29 12:00:00.123456', date'2024-02-29', 1.25, "
    "concat('n', n.id), p.id FROM range(10) n CROSS JOIN range({}, {}) p"
)
COLUMNS = "id BIGINT, at TIMESTAMP, day DATE, price DECIMAL(10, 2), name STRING, p INT"


def sql(spark: ForeignSpark, statement: str) -> list[tuple[Any, ...]]:
    return spark.sql(statement, SimpleNamespace(location="none is named in it"))


@pytest.mark.parametrize("kind", TABLES)
async def test_each_version_that_is_left(spark, index, tmp_path, kind):
    properties, options = TABLES[kind]
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    table = f"delta.`{tmp_path}/{kind}`"
    sql(
        spark,
        f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties})",
    )
    # A file for each partition.
    sql(spark, INSERT.format(table, 0, 4))
    sql(spark, f"DELETE FROM {table} WHERE id = 3 AND p = 1")
    location = (tmp_path / kind).as_uri()
    made, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=location)
    )
    first = await checkpointed(world, made, **options)
    assert first.version == made.latest_version
    # Parts are taken over from the checkpoint before.
    for p in (4, 5):
        sql(spark, INSERT.format(table, p, p + 1))
        await taken_in(world, made)
        if p == 5 or kind == "taken-over":
            last = await checkpointed(world, made, **options)
    if kind == "taken-over":
        assert last.kind is CheckpointKind.MULTI_PART
        assert last.files_written < last.files
    sql(spark, f"UPDATE {table} SET name = 'other' WHERE id = 5 AND p = 2")
    versions = range(first.version, last.version + 2)
    expected = rows_at(spark, table, versions)
    assert {row[0] for row in expected} == {*versions}
    forget_commits(made, first.version)
    # Under another name, of which Spark remembers nothing.
    shutil.copytree(tmp_path / kind, tmp_path / f"{kind}-read")
    copy = f"delta.`{tmp_path}/{kind}-read`"
    assert rows_at(spark, copy, versions) == expected
    if kind == "v2":
        sql(spark, f"DELETE FROM {copy} WHERE p = 3")
        then = last.version + 2
        left = [(then, *row[1:]) for row in expected if row[0] == last.version + 1 and row[-1] != 3]
        assert rows_at(spark, copy, [then]) == left


def rows_at(spark: ForeignSpark, table: str, versions: Iterable[int]) -> list[tuple[Any, ...]]:
    """The rows of some partitions at these versions, the version first."""
    query = "SELECT {0} AS version, * FROM {1} VERSION AS OF {0} WHERE p > 0 AND id > 1"
    each = (query.format(version, table) for version in versions)
    return sql(spark, f"{' UNION ALL '.join(each)} ORDER BY version, p, id")


async def taken_in(world: World, table: TableRecord) -> None:
    """Have the index read what Spark wrote past it."""
    await conflict_check(world.context, table.name, proposal(Txn(app_id="asks", version=1)))
