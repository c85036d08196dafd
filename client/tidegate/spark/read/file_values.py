"""Partition values beside the rows of each data file: the two roads of reading.

The fast road is Spark's own partition discovery, which costs nothing a row. It is right only
where the folders say what the log says, and for types that Spark reads from a folder's name as
Delta reads them from the log. Everything else takes the general road: a literal that maps each
file to its values, by which Spark still prunes files.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField
from pyspark.sql.types import StructType as SparkStruct

from tidegate.models import DataFile
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.read.file_numbers import file_numbers
from tidegate.spark.tables.layout import TRANSACTION_KEY, TableLayout
from tidegate.spark.tables.mapping import as_column
from tidegate.spark.tables.partitions import typed_partitions
from tidegate_protocol.log.paths import decode
from tidegate_protocol.schema.data_types import (
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    char_length,
)
from tidegate_protocol.schema.partition_values import partition_path

# Of the other types, the folder's text goes through the session's time zone or loses its scale.
_TYPES_OF_FOLDERS = (BOOLEAN, BYTE, DATE, INTEGER, LONG, SHORT, STRING)
_HIDDEN = re.compile(r"(?:(?:^|/)(?:\.[^/]*|_[^/=]*)|\._COPYING_)$")
"""Names of files that Spark takes for no data (`HadoopFSUtils.shouldFilterOutPathName`)."""
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_OPTIONS = {
    # A path with a bracket in it is that path, and no pattern.
    "__globPaths__": "false",
    "mergeSchema": "false",
}


def unpartitioned(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[DataFile],
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    """The rows of the files of a table without partition columns; here as below, by these further
    options of Spark's reader."""
    return _parquet(spark, layout, files, options)


def discovered(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[DataFile],
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame | None:
    """The rows with partition values from the folders; None where the folders cannot be
    trusted with them."""
    in_transactions = {file.path.startswith(TRANSACTION_KEY) for file in files}
    if len(in_transactions) != 1 or not all(_folders_agree(layout, file) for file in files):
        return None
    schema = layout.spark_schema
    if in_transactions == {True}:
        if layout.schema.field(TRANSACTION_KEY) is not None:
            return None
        # Given its type, so that Spark does not guess one from every transaction's id.
        schema = SparkStruct([*schema.fields, StructField(TRANSACTION_KEY, StringType())])
    reader = spark.read.schema(schema).options(**_OPTIONS, **options)
    reader = reader.option("basePath", layout.root)
    return reader.parquet(*_locations(layout, files))


def mapped(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[DataFile],
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    """The rows with the partition values that the log has for each file."""
    df = _parquet(spark, layout, files, options)
    partitions: dict[tuple[str | None, ...], int] = {}
    numbers = []
    for file in files:
        key = tuple(file.partition_values[column] for column in layout.partition_columns)
        numbers.append(partitions.setdefault(key, len(partitions)))
    values = typed_partitions(
        layout, [dict(zip(layout.partition_columns, key, strict=True)) for key in partitions]
    )
    number = file_numbers(df, layout, files, numbers)
    columns = (
        as_column(F.get(array, number), layout.spark_schema[name]) for name, array in values.items()
    )
    return df.select("*", *columns)


def _parquet(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[DataFile],
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    partitions = set(layout.partition_columns)
    data = SparkStruct([f for f in layout.spark_schema.fields if f.name not in partitions])
    reader = spark.read.schema(data).options(**_OPTIONS, **options)
    reader = reader.option("recursiveFileLookup", "true")
    return reader.parquet(*_locations(layout, files))


def _locations(layout: TableLayout, files: Sequence[DataFile]) -> list[str]:
    """Raises `UnsupportedTable` for a file that Spark would pass over."""
    paths = [decode(file.path) for file in files]
    if hidden := next(filter(_HIDDEN.search, paths), None):
        raise UnsupportedTable(
            f"table {layout.name} has the file {hidden}, and Spark's reader passes over files of "
            "such names",
            hint='read it by format("tidegate")',
        )
    return [layout.url(path) for path in paths]


def _folders_agree(layout: TableLayout, file: DataFile) -> bool:
    """Whether the file lies in the folders that Hive would put its partition values into."""
    folder = decode(file.path).rpartition("/")[0]
    if file.path.startswith(TRANSACTION_KEY):
        folder = folder.partition("/")[2]
    for column in layout.partition_columns:
        field = layout.schema.field(column)
        if field is None or field.type not in _TYPES_OF_FOLDERS:
            return False
        # Others than this client write values of CHAR as they are given.
        length, value = char_length(field), file.partition_values[column]
        if length is not None and value is not None and len(value) < length:
            return False
    return folder == partition_path(file.partition_values, layout.partition_columns)
