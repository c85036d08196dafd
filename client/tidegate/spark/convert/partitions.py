"""Partition columns in the names of folders: Hive's `month=5/day=1`."""

from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.partitions import FOLDER_ZONE, canonical_text, folder_value
from tidegate_protocol.log.actions import PartitionValues
from tidegate_protocol.schema.partition_values import NULL_PARTITION

Texts = tuple[str | None, ...]
"""What the folders of a file say of its partition columns, in their order."""


def partition_names(path: str) -> list[tuple[str, str]]:
    """The columns that a file's folders name, with what they say. As in Spark, the innermost
    folders that are of columns count, and those below them are passed over."""
    found: list[tuple[str, str]] = []
    for folder in reversed(path.split("/")[:-1]):
        name, mark, text = folder.partition("=")
        if name and mark:
            found.append((unquote(name), unquote(text)))
        elif found:
            break
    return found[::-1]


def partitions_of(location: str, paths: Sequence[str], schema: StructType) -> list[Texts]:
    """What the folders of each file say. Raises `InvalidCommand` for a file whose folders are not
    of these columns."""
    return [_texts(f"{location}/{path}", partition_names(path), schema) for path in paths]


def _texts(file: str, found: Sequence[tuple[str, str]], schema: StructType) -> Texts:
    if len(found) != len(schema.fields):
        names = [name for name, _ in found]
        raise InvalidCommand(
            "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            f"Expecting {len(schema.fields)} partition column(s): {schema.names}, but found "
            f"{len(names)} partition column(s): {names} from parsing the file name: {file}",
            hint="name all of them, with their types: PARTITIONED BY (...), or partitionSchema",
        )
    for (name, _), field in zip(found, schema.fields, strict=True):
        if name.lower() != field.name.lower():
            raise InvalidCommand(
                "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                f"Expecting partition column {field.name}, but found partition column {name} from "
                f"parsing the file name: {file}",
            )
    return tuple(None if text in (NULL_PARTITION, "") else text for _, text in found)


def partition_values(
    folders: Sequence[Texts], layout: TableLayout, spark: SparkSession
) -> list[PartitionValues]:
    """The log's partition values of each file. A timestamp is one of the session's time zone.
    Raises `InvalidCommand` for a text that is none of the column's type."""
    columns = layout.partition_columns
    known = [
        _cast([texts[n] for texts in folders], layout, layout.spark_schema[name], spark)
        for n, name in enumerate(columns)
    ]
    return [{name: known[n][texts[n]] for n, name in enumerate(columns)} for texts in folders]


def _cast(
    texts: Sequence[str | None], layout: TableLayout, field: StructField, spark: SparkSession
) -> dict[str | None, str | None]:
    given = sorted({text for text in texts if text is not None})
    found: dict[str | None, str | None] = {None: None}
    if not given:
        return found
    value = F.col("text").try_cast(field.dataType)
    named = folder_value(value, field.dataType, name=field.name).cast("string")
    frame = spark.createDataFrame([(text,) for text in given], "text STRING").coalesce(1)
    for text, cast in frame.select("text", named).collect():
        if cast is None:
            raise InvalidCommand(
                "DELTA_FAILED_CAST_PARTITION_VALUE",
                f"Failed to cast partition value `{text}` to {field.dataType.simpleString()}, the "
                f"type of the partition column {field.name}",
            )
        found[text] = canonical_text(layout, field.name, cast, zone=FOLDER_ZONE)
    return found
