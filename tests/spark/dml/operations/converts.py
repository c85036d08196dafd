"""CONVERT TO DELTA of vectors, by SQL."""

from typing import Any

import tidegate
from tests.spark.dml.expect import expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.rows import shown
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World


@operation("convert")
def convert(world: World, op: Op) -> None:
    # What is no folder of Parquet files is given without a word on what it is.
    is_parquet = world.vector.target["format"] == "parquet"
    place = f"parquet.`{world.place}`" if is_parquet else f"`{world.place}`"
    schema = op["partition_schema"]
    partitions = "" if schema is None else f"PARTITIONED BY ({schema})"
    tidegate.sql(
        world.spark, f"CONVERT TO DELTA {place} {partitions} AS {world.name}", lake=world.lake
    )
    world.found = world.lake.table(world.name)


@expectation("rows_by_name")
def _rows_by_name(world: World, value: list[dict[str, Any]]) -> None:
    names = sorted({name for row in value for name in row})
    found = world.table.read(world.spark).select(*names)
    assert shown(found) == sorted(repr(tuple(row[name] for name in names)) for row in value)
