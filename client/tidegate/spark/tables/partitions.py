"""Partition values between Spark's columns, folder names and the log.

The folder of a file says its partition values in Hive's way; the log says them as text
(PROTOCOL.md, "Partition Value Serialization"), which for timestamps is in UTC, whatever the
session's time zone. Others have written timestamps without a zone to the log; as in Delta, these
are of the session that reads them.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from urllib.parse import unquote

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, TimestampType

from tidegate.spark.errors import InvalidRows, marked
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.zones import zone_of
from tidegate_protocol.log.actions import PartitionValues
from tidegate_protocol.schema.data_types import char_length
from tidegate_protocol.schema.partition_values import (
    NULL_PARTITION,
    is_local,
    parse_value,
    serialize_value,
)
from tidegate_protocol.schema.values import InvalidValue, UnrepresentableValue

FOLDER_ZONE = "UTC"
"""That of the timestamps in folder names, as `folder_value` has Spark name them."""
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
        found = None if text == NULL_PARTITION else text
        values[column] = canonical_text(layout, column, found, zone=FOLDER_ZONE)
    return values


def canonical_text(
    layout: TableLayout, column: str, text: str | None, *, zone: str | None
) -> str | None:
    """A partition value's text in the log's spelling, of a CHAR column with the spaces that readers
    give it; `zone` names that of a timestamp without one. Raises `InvalidRows` for a value that has
    none, and what `zone_of` does."""
    field = layout.schema.field(column)
    if field is None:
        raise AssertionError(f"{column} is no column of {layout.name}")
    try:
        named = zone_of(zone) if is_local(field.type, text) else UTC
        if text and (length := char_length(field)) is not None:
            return text.ljust(length)
        return serialize_value(field.type, parse_value(field.type, text, zone=named))
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
    field = layout.spark_schema[column]
    texts = [_castable(layout, column, partition[column]) for partition in partitions]
    array = F.from_json(F.lit(json.dumps(texts)), "array<string>")
    # By its plain name it may be the type without a zone, if the session has it so.
    is_timestamp = isinstance(field.dataType, TimestampType)
    name = "timestamp_ltz" if is_timestamp else field.dataType.simpleString()
    return array.cast(f"array<{name}>")


def _castable(layout: TableLayout, column: str, text: str | None) -> str | None:
    """A partition value as Spark casts it to what it is. Raises `InvalidRows`."""
    canonical = canonical_text(layout, column, text, zone=FOLDER_ZONE)
    field = layout.schema.field(column)
    # Without its zone it is cast by the session's.
    return text if field is not None and is_local(field.type, text) else canonical
