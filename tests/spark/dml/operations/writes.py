"""All operations: those of writing here, others in the modules that are imported."""

from typing import Any

import tests.spark.dml.operations.alters
import tests.spark.dml.operations.changes
import tests.spark.dml.operations.clones
import tests.spark.dml.operations.commands
import tests.spark.dml.operations.converts
import tests.spark.dml.operations.restores
import tests.spark.dml.operations.streams  # noqa: F401
import tidegate
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.rows import frame, parsed
from tests.spark.dml.target import create
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World

_OPTIONS = {
    "merge_schema": "mergeSchema",
    "overwrite_schema": "overwriteSchema",
    "partition_overwrite_mode": "partitionOverwriteMode",
    "data_change": "dataChange",
    "txn_app_id": "txnAppId",
    "txn_version": "txnVersion",
}


@operation("append")
def append(world: World, op: Op) -> None:
    _write(world, op, replace_where=None)


@operation("overwrite")
def overwrite(world: World, op: Op) -> None:
    _write(world, op, replace_where=op["replace_where"])


@operation("insert_values")
def insert_values(world: World, op: Op) -> None:
    world.table.insert(world.spark, op["values"], columns=op["columns"])


@operation("create_as_select")
def create_as_select(world: World, op: Op) -> None:
    found = world.lake.create_table(
        f"{world.name}_copy",
        as_select=world.table.read(world.spark),
        location=f"{world.table.location}_copy",
        properties=op["properties"],
        catalog_managed=world.catalog_managed,
    )
    world.told["new_table_defaults"] = {
        field.name: field.metadata["CURRENT_DEFAULT"]
        for field in found.schema.fields
        if "CURRENT_DEFAULT" in field.metadata
    }


def _write(world: World, op: Op, *, replace_where: str | None) -> None:
    schema = parsed(op["schema"])
    rows = frame(world.spark, schema, op["rows"])
    if world.found is None:
        # The client's writes are to a table that is there.
        create(world, schema, op.get("partition_by", ()))
        world.first = 1
    options: dict[str, Any] = {name: op[key] for key, name in _OPTIONS.items() if key in op}
    if "partition_by" in op:
        options["partition_by"] = op["partition_by"]
    if op.get("on") == "clone":
        assert op["op"] == "append"
        world.clone.append(rows, **options)
    elif op.get("by") == "position":
        assert op["op"] == "append"
        assert not options
        rows.createOrReplaceTempView("inserted_rows")
        tidegate.sql(
            world.spark, f"INSERT INTO {world.table.name} TABLE inserted_rows", lake=world.lake
        )
    elif op["op"] == "append":
        world.table.append(rows, **options)
    else:
        world.table.overwrite(rows, replace_where=replace_where, **options)
