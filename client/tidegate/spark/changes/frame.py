"""The change data feed as a DataFrame, on Spark's own Parquet reader."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import NamedTuple

from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField
from pyspark.sql.types import StructType as SparkStruct

from tidegate.handle import TableHandle
from tidegate.spark.application import table_of
from tidegate.spark.changes.commits import ChangedFile, descriptors
from tidegate.spark.changes.feed import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    Feed,
    feed_of,
)
from tidegate.spark.changes.span import span_of
from tidegate.spark.deletion_vectors.files import read_vectors
from tidegate.spark.read.field_ids import schemas_in_files
from tidegate.spark.read.file_numbers import file_numbers, row_positions
from tidegate.spark.read.positions import only_rows, without_rows
from tidegate.spark.read.rows import columns_of, scan
from tidegate.spark.read.times import milliseconds_of
from tidegate.spark.storage.locations import DataStore
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.assignment import chosen
from tidegate.spark.tables.places import FILE, POSITION
from tidegate.spark.tables.plans import NUMBERED, read_options

_Moment = datetime | int | str


class _Part(NamedTuple):
    """What the files of one scan have in common; each file is in it once."""

    is_change_data: bool
    is_among: bool
    is_without: bool
    schema: str
    occurrence: int


def changes(
    table: TableHandle,
    spark: SparkSession,
    *,
    from_version: int | None = None,
    to_version: int | None = None,
    from_timestamp: _Moment | None = None,
    to_timestamp: _Moment | None = None,
) -> DataFrame:
    """The rows that the versions of a span inserted, updated (before and after) and deleted, with
    `_change_type`, `_commit_version` and `_commit_timestamp`.

    A start is required. Without an end the span ends with the latest version now. Timestamps are as
    in `read`. Raises `ChangesUnavailable` (see `span_of` and `feed_of`), `VersionNotFound`,
    `UnsupportedTable`, `UnsupportedSession` and `StorageError`.
    """
    table = table_of(table, spark)
    begin, end = (
        None if moment is None else milliseconds_of(moment, spark)
        for moment in (from_timestamp, to_timestamp)
    )
    span = span_of(
        table,
        from_version=from_version,
        to_version=to_version,
        from_timestamp=begin,
        to_timestamp=end,
    )
    return frame_of(spark, feed_of(table, span))


def frame_of(spark: SparkSession, feed: Feed) -> DataFrame:
    """The rows of a feed. Raises `UnsupportedTable`, `UnsupportedSession` and `StorageError`."""
    store = store_at(feed.layout.location, spark)
    found = descriptors(feed.files)
    vectors = read_vectors(found, store)
    sets = {v.unique_id: bitmap for v, bitmap in zip(found, vectors, strict=True)}
    schemas = _schemas(feed, store)
    seen: dict[_Part, set[str]] = {}
    parts: dict[_Part, list[int]] = {}
    for number, (file, schema) in enumerate(zip(feed.files, schemas, strict=True)):
        occurrence = 0
        while True:
            part = _Part(
                is_change_data=file.change_type is None,
                is_among=file.among is not None,
                is_without=file.without is not None,
                schema=schema.json(),
                occurrence=occurrence,
            )
            if file.path not in seen.setdefault(part, set()):
                break
            occurrence += 1
        seen[part].add(file.path)
        parts.setdefault(part, []).append(number)
    frames = [
        _rows(spark, feed, part, numbers, schemas[numbers[0]], sets=sets)
        for part, numbers in parts.items()
    ]
    return reduce(DataFrame.union, frames) if frames else spark.createDataFrame([], feed.schema)


def _schemas(feed: Feed, store: DataStore) -> list[SparkStruct]:
    """The columns of each file as it calls them, with the type of change where it has that."""
    schemas = schemas_in_files(feed.layout, [file.file for file in feed.files], store)
    own = StructField(CHANGE_TYPE, StringType())
    return [
        SparkStruct([*schema.fields, own]) if file.change_type is None else schema
        for schema, file in zip(schemas, feed.files, strict=True)
    ]


def _rows(
    spark: SparkSession,
    feed: Feed,
    part: _Part,
    numbers: Sequence[int],
    schema: SparkStruct,
    *,
    sets: Mapping[str, BitMap64],
) -> DataFrame:
    files = [feed.files[number] for number in numbers]
    adds = [file.file for file in files]
    df = scan(spark, feed.layout, adds, schema, read_options(feed.layout) | NUMBERED)
    place = file_numbers(df, feed.layout, adds)
    df = df.select("*", place.alias(FILE), row_positions(df).alias(POSITION))
    at, position = F.col(FILE), F.col(POSITION)
    if part.is_among:
        df = only_rows(df, at, position, {n: _chosen(f, sets) for n, f in enumerate(files)})
    elif part.is_without:
        gone = {n: sets[f.without.unique_id] for n, f in enumerate(files) if f.without is not None}
        df = without_rows(df, at, position, gone)
    own = _of_file(at, [file.change_type for file in files], "string")
    version = _of_file(at, [file.version for file in files], "bigint")
    moment = _of_file(at, [file.timestamp for file in files], "bigint")
    width = len(feed.layout.spark_schema.fields)
    of_commit: dict[str, Column | None] = {
        CHANGE_TYPE: None if part.is_change_data else own,
        COMMIT_VERSION: version,
        COMMIT_TIMESTAMP: F.timestamp_millis(moment),
    }
    columns = columns_of(feed.layout, SparkStruct(schema.fields[:width]))
    return chosen(df, {**columns, **of_commit})


def _chosen(file: ChangedFile, sets: Mapping[str, BitMap64]) -> BitMap64:
    """The positions of the rows that changed, of a file whose vector did."""
    if file.among is None:
        raise AssertionError(f"expected a vector that was exchanged for file {file.path}")
    found = sets[file.among.unique_id]
    return found if file.without is None else found - sets[file.without.unique_id]


def _of_file(place: Column, values: Sequence[str | int | None], kind: str) -> Column:
    """What belongs to the file of each row, as a value of a type."""
    if len(set(values)) == 1:
        return F.lit(values[0]).cast(kind)
    return F.get(F.from_json(F.lit(json.dumps(values)), f"array<{kind}>"), place)
