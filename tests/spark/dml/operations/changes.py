"""Change data of vectors, read back."""

from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.spark.dml.expect import expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.rows import Rows, expected, shown
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World
from tests.spark.tables import actions
from tidegate.spark.tables.schemas import as_nullable

_OF_THE_FEED = ("_change_type", "_commit_version")


@operation("read_changes")
def read_changes(world: World, op: Op) -> None:
    first, last = world.version(op["from"]), world.version(op["to"])
    found = world.table.changes(world.spark, from_version=first, to_version=last)
    names = [name for name in found.columns if not name.startswith("_commit_timestamp")]
    world.told["changes"] = found.select(*(f"`{name}`" for name in names))


@expectation("changes")
def _changes(world: World, value: Rows) -> None:
    found = world.told["changes"]
    data = [field for field in found.schema.fields if field.name not in _OF_THE_FEED]
    columns = [
        *data,
        StructField("_change_type", StringType()),
        StructField("_commit_version", LongType()),
    ]
    schema = as_nullable(StructType(columns))
    wanted = [[*row[:-1], world.version(row[-1])] for row in value]
    ordered = found.select(*(f"`{name}`" for name in schema.names))
    assert shown(ordered) == expected(world.spark, schema, wanted)


@expectation("cdc_files")
def _cdc_files(world: World, value: Any) -> None:
    found = actions(world.table, world.table.version, "cdc")
    assert len(found) == value
