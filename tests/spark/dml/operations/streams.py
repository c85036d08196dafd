"""Streaming queries of vectors, into the table and of it."""

import json
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tests.spark.dml.expect import expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.rows import Rows, expected, frame, parsed, shown
from tests.spark.dml.target import create
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World
from tests.spark.streams.queries import Stream
from tidegate.spark import register
from tidegate.spark.tables.schemas import as_nullable


@operation("stream")
def stream(world: World, op: Op) -> None:
    """By a query on files of rows; what no query can be brought to do (batches under given
    numbers, a given result of an aggregation) by calling the sink as a query does."""
    schema = parsed(op["schema"])
    if world.found is None:
        # A sink is that of a table which is there, and which has types.
        typed = StructType([f for f in schema.fields if f.dataType.typeName() != "void"])
        create(world, typed, op.get("partition_by", ()))
        world.first = 1
    options: dict[str, Any] = {"mergeSchema": True} if op.get("merge_schema") else {}
    numbers = op.get("batch_ids")
    if numbers is not None or op["mode"] != "append":
        sink = world.table.sink(
            output_mode=op["mode"], app_id=op.get("app_id", world.name), **options
        )
        for number, rows in zip(numbers or range(len(op["batches"])), op["batches"], strict=True):
            sink(frame(world.spark, schema, rows), number)
        return
    source = Stream(world.spark, world.folder, op["schema"])
    sink = world.table.sink(source.df, **options)
    for rows in op["batches"]:
        source.feed(*(json.dumps(dict(zip(schema.names, row, strict=True))) for row in rows))
        if op["restart_between"]:
            source.run(lambda writer: writer.foreachBatch(sink))
    if not op["restart_between"]:
        source.run(lambda writer: writer.foreachBatch(sink))


@operation("read_stream")
def read_stream(world: World, op: Op) -> None:
    """By the table's one query, which goes on where it ended, up to what there is now."""
    assert op["until"] == "available"
    register(world.spark)
    found: list[str] = world.told.setdefault("stream_rows", [])

    def take(df: DataFrame, _: int) -> None:
        found.extend(shown(df))

    reader = world.spark.readStream.format("tidegate").options(url=world.lake.url, **op["options"])
    query = (
        reader.load(world.table.name)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(world.folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@expectation("stream_rows")
def _stream_rows(world: World, value: Rows) -> None:
    """All rows that the query has seen, also where it failed in the end."""
    schema = as_nullable(world.table.read(world.spark).schema)
    assert sorted(world.told["stream_rows"]) == expected(world.spark, schema, value)
