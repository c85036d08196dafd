"""CLONE of vectors, and what the clone is like afterwards."""

from typing import Any

import tidegate
from tests.spark.dml.expect import check_rows_of, expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.rows import frame
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World
from tests.spark.tables import data_files
from tidegate.spark.delta import descriptions
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.log.paths import is_absolute


@operation("clone")
def clone(world: World, op: Op) -> None:
    name = f"{world.name}_clone"
    if world.place is not None:
        assert op == {"op": "clone", "shallow": True, "version": None}
        tidegate.sql(
            world.spark,
            f"CREATE TABLE {name} SHALLOW CLONE parquet.`{world.place}`",
            lake=world.lake,
        )
        world.cloned = world.lake.table(name)
        return
    if op.get("onto_itself"):
        name = world.name
    elif "target_has_rows" in op:
        schema = world.table.read(world.spark).schema
        there = world.lake.create_table(name, schema=schema)
        there.append(frame(world.spark, schema, op["target_has_rows"]))
    version = None if op["version"] is None else world.version(op["version"])
    found = world.table.clone(
        name,
        shallow=op["shallow"],
        version=version,
        replace=op.get("replace", False),
        properties=op.get("properties"),
        spark=world.spark,
    )
    world.cloned = found.table
    told = descriptions.cloned(found, world.spark)
    world.told["output_columns"] = told.columns
    world.told["metrics"] = told.collect()[0].asDict()


@expectation("clone")
def _clone(world: World, value: dict[str, Any]) -> None:
    found, files = world.clone, world.clone.scan().files
    seen = {
        "version": lambda: found.version,
        "partition_by": lambda: list(found.partition_columns),
        "data_files_in_clone_directory": lambda: len(data_files(found)),
        "absolute_paths": lambda: all(is_absolute(file.path) for file in files),
        "protocol": lambda: "same as source" if _is_as_source(world) else found.head().protocol,
    }
    for name, wanted in value.items():
        if name == "rows":
            check_rows_of(found, world.spark, wanted)
        else:
            assert seen[name]() == wanted, name


def _is_as_source(world: World) -> bool:
    features = [implied_features(each.head().protocol) for each in (world.table, world.clone)]
    return features[0] == features[1]


@expectation("absolute_paths")
def _absolute_paths(world: World, value: bool) -> None:
    files = world.table.scan().files
    assert {is_absolute(file.path) for file in files} == {value}


@expectation("output_columns")
def _output_columns(world: World, value: list[str]) -> None:
    assert world.told["output_columns"] == value
