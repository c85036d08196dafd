"""Stock Delta Spark reads tables from our checkpoints alone, and writes on from there."""

import shutil
from types import SimpleNamespace
from typing import Any

import pytest

from tests.interop.foreign_spark import ForeignSpark
from tests.service.tables.delta_logs import names
from tests.service.upkeep.checkpoints import SMALL, checkpointed, forget_commits
from tests.service.world import make_world
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
STRUCTS = "'delta.checkpoint.writeStatsAsStruct' = 'true'"
V2 = "'delta.checkpointPolicy' = 'v2'"
ONLY_STRUCTS = f"{STRUCTS}, 'delta.checkpoint.writeStatsAsJson' = 'false'"
TABLES = {
    "classic": (MAPPED, {}),
    "structs": (f"{MAPPED}, {ONLY_STRUCTS}", {}),
    "parts": (f"{MAPPED}, {STRUCTS}", {"layout": SMALL}),
    "v2": (f"{MAPPED}, {V2}, {STRUCTS}", {"layout": SMALL}),
}
COLUMNS = "id BIGINT, at TIMESTAMP, day DATE, price DECIMAL(10, 2), name STRING, p INT"


def sql(spark: ForeignSpark, statement: str) -> list[tuple[Any, ...]]:
    return spark.sql(statement, SimpleNamespace(location="none is named in it"))


async def test_all_kinds(spark, index, tmp_path):
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    for kind, (properties, options) in TABLES.items():
        table = f"delta.`{tmp_path}/{kind}`"
        sql(
            spark,
            f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p) "
            f"TBLPROPERTIES ({properties})",
        )
        for p in range(4):
            sql(
                spark,
                f"INSERT INTO {table} SELECT id, timestamp'2024-02-29 12:00:00.123456', "
                f"date'2024-02-29', 1.25, concat('n', id), {p} FROM range(10)",
            )
        sql(spark, f"DELETE FROM {table} WHERE id = 3 AND p = 1")
        query = "SELECT * FROM {} WHERE p > 0 AND id > 1 ORDER BY p, id"
        expected = sql(spark, query.format(table))
        made, _ = await register_table(
            world.context,
            RegisterTable(name=next(names), location=(tmp_path / kind).as_uri()),
        )
        written = await checkpointed(world, made, **options)
        assert written.version == made.latest_version
        forget_commits(made, made.latest_version)
        # Under another name, of which Spark remembers nothing.
        shutil.copytree(tmp_path / kind, tmp_path / f"{kind}-read")
        copy = f"delta.`{tmp_path}/{kind}-read`"
        assert sql(spark, query.format(copy)) == expected, kind
        sql(spark, f"DELETE FROM {copy} WHERE p = 2")
        assert sql(spark, query.format(copy)) == [row for row in expected if row[-1] != 2]
