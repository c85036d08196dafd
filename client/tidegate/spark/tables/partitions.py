"""Partition values between Spark's columns, folder names and the log.

The folder of a file says its partition values in Hive's way; the log says them as text
(PROTOCOL.md, "Partition Value Serialization"), which for timestamps is in UTC, whatever the
session's time zone.
"""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, TimestampType

from tidegate.spark.errors import InvalidRows, marked
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import PartitionValues
from tidegate_protocol.schema.partition_values import NULL_PARTITION, parse_value, serialize_value
from tidegate_protocol.schema.values import InvalidValue, UnrepresentableValue

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def folder_value(value: Column, data_type: DataType, *, name: str) -> Column:
    """What to partition by so that Spark names the folders independently of its session.

    Only timestamps need another form: their local time in UTC as text. Bytes that are not UTF-8
    have no name; the column raises for them (`errors.refused_rows`).
    """
    if isinstance(data_type, TimestampType):
        # Through timestamp_ntz, because every other way to text asks for the session's zone.
        since = F.unix_micros(value)
        return F.timestamp_add("MICROSECOND", since, F.expr(_EPOCH)).cast("string")
    if isinstance(data_type, BinaryType):
        text = value.cast("string")
        refusal = F.raise_error(
            F.lit(marked(f"partition column {name} holds bytes that are not UTF-8"))
        )
        return F.when(~F.is_valid_utf8(text), refusal).otherwise(text)
    return value


def empty_as_null(value: Column, field: StructField) -> Column:
    """The value of a partition column, null where it is an empty text: folder names cannot tell
    the one from the other, and neither can the log."""
    if isinstance(field.dataType, StringType | BinaryType):
        return F.when(value != F.lit(""), value)
    return value


def values_of_folder(folder: str, layout: TableLayout) -> PartitionValues:
    """The log's partition values of a file, from the Hive-style part of its path as Spark wrote
    it: `month=5/day=1`, and "" without partition columns. Raises `InvalidRows`."""
    segments = folder.split("/") if folder else []
    values: PartitionValues = {}
    for column, segment in zip(layout.partition_columns, segments, strict=True):
        name, _, escaped = segment.partition("=")
        if unquote(name) != column:
            raise AssertionError(f"expected a folder {column}=..., found {segment}")
        text = unquote(escaped)
        values[column] = canonical_text(layout, column, None if text == NULL_PARTITION else text)
    return values


def canonical_text(layout: TableLayout, column: str, text: str | None) -> str | None:
    """A partition value's text in the log's spelling. Raises `InvalidRows` for a value that has
    none."""
    field = layout.schema.field(column)
    if field is None:
        raise AssertionError(f"{column} is no column of {layout.name}")
    try:
        return serialize_value(field.type, parse_value(field.type, text))
    except UnrepresentableValue:
        return text
    except InvalidValue as error:
        raise InvalidRows(f"partition column {column}: {error}") from None


def typed_partitions(
    layout: TableLayout, partitions: Sequence[Mapping[str, str | None]]
) -> dict[str, Column]:
    """For each partition column, an array literal of its typed values in the given partitions."""
    return {column: _typed(layout, column, partitions) for column in layout.partition_columns}


def _typed(
    layout: TableLayout, column: str, partitions: Sequence[Mapping[str, str | None]]
) -> Column:
    texts = [canonical_text(layout, column, partition[column]) for partition in partitions]
    array = F.from_json(F.lit(json.dumps(texts)), "array<string>")
    return array.cast(f"array<{layout.spark_schema[column].dataType.simpleString()}>")
