"""The target of a vector: created by the client, its rows appended."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from tests.spark.dml import folders
from tests.spark.dml.rows import Rows, are_plain, frame, in_arrow, in_files, parsed
from tests.spark.dml.world import World
from tidegate.spark.alter.definitions import as_stored
from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.commands.making import Making
from tidegate.spark.data_files.arrow_columns import BatchColumns
from tidegate.spark.data_files.arrow_files import TaskFiles
from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.delta.making import make_table
from tidegate.spark.storage.arrow import NO_SETTINGS, ArrowStore
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.write.write import commit_write
from tidegate.spark.write_options import AS_USUAL, WriteOptions
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.log.actions import Add

_SOURCE = "source"
_PLAIN = WriteOptions.parse({}, is_overwrite=False)
_COMPUTED = ("generated", "defaults", "identity")


def build(world: World) -> None:
    """Make what the vector begins with."""
    vector = world.vector
    if vector.source is not None:
        rows = frame(world.spark, parsed(vector.source["schema"]), vector.source["rows"])
        rows.createOrReplaceTempView(_SOURCE)
    target = vector.target
    if target.get("create") is False:
        return
    if "format" in target:
        folders.build(world)
        return
    create(
        world,
        _columns(target),
        target["partition_by"],
        properties=target["properties"]
        | {f"delta.constraints.{name}": sql for name, sql in target["constraints"].items()},
    )
    groups = _groups(target)
    plain = StructType([StructField(f.name, f.dataType) for f in parsed(target["schema"]).fields])
    has_rules = any(target.get(name) for name in _COMPUTED) or bool(target["constraints"])
    for rows, files in groups:
        parts = in_files(rows, files)
        if has_rules or not all(part and are_plain(plain, part) for part in parts):
            _append(world, [frame(world.spark, plain, part) for part in parts])
        else:
            _append_arrow(world, plain, parts)
    world.first = 1 if groups else 0


def _append(world: World, parts: Sequence[DataFrame]) -> None:
    """Append the parts in one commit. Spark may make one file of a union of them."""
    if len(parts) == 1:
        world.table.append(parts[0])
        return
    with world.table.transaction() as txn:
        for part in parts:
            txn.add(txn.write_files(part))
        txn.commit("WRITE")


def _append_arrow(world: World, schema: StructType, parts: Sequence[Rows]) -> None:
    """The same by what tasks of the data source do, which takes no Spark: what a vector is about
    comes after it."""
    head = world.table.head()
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    columns, store = BatchColumns(schema, layout), ArrowStore(layout.location, NO_SETTINGS)
    with world.table.transaction(head=head) as txn:
        adds: list[Add] = []
        for task, rows in enumerate(parts):
            files = TaskFiles(layout, new_folder(txn.id), store, task=task, options=AS_USUAL)
            adds += files.write(map(columns.conform, in_arrow(schema, rows).to_batches()))
        written = DataFiles(adds=tuple(adds), rows=sum(map(len, parts)))
        commit_write(txn, written, mode="Append", options=_PLAIN)


def create(
    world: World,
    schema: StructType,
    partition_by: Sequence[str] = (),
    *,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Create the table, empty, as CREATE TABLE does."""
    kind = {f"delta.feature.{CATALOG_MANAGED}": "supported"} if world.catalog_managed else {}
    definition = TableDefinition(
        schema=schema, partition_by=partition_by, properties={**kind, **(properties or {})}
    )
    world.found = make_table(
        world.lake,
        world.spark,
        Making.CREATE,
        definition,
        found=None,
        name=world.name,
        location=None,
    )


def _groups(target: Mapping[str, Any]) -> list[tuple[Rows, int]]:
    """The rows of each commit, and how many files they make."""
    files = target.get("files", 1)
    if isinstance(files, list):
        return [(rows, 1) for rows in files]
    return [(target["rows"], files)] if target["rows"] else []


def _columns(target: Mapping[str, Any]) -> StructType:
    """The columns, with what the log says of computed ones."""
    fields = []
    for field in map(as_stored, parsed(target["schema"]).fields):
        metadata = dict(field.metadata)
        if (sql := target.get("generated", {}).get(field.name)) is not None:
            metadata["delta.generationExpression"] = sql
        if (sql := target.get("defaults", {}).get(field.name)) is not None:
            metadata["CURRENT_DEFAULT"] = sql
        if (identity := target.get("identity", {}).get(field.name)) is not None:
            metadata["delta.identity.start"] = identity["start"]
            metadata["delta.identity.step"] = identity["step"]
            metadata["delta.identity.allowExplicitInsert"] = identity["allow_explicit_insert"]
        fields.append(StructField(field.name, field.dataType, field.nullable, metadata))
    return StructType(fields)
