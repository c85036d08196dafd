"""Reading a table as a Spark DataFrame: the files from the service, the rows by Spark."""

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.handle import TableHandle
from tidegate.models import Scan
from tidegate.spark.application import table_of
from tidegate.spark.read.file_values import discovered, mapped, unpartitioned
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import matching, prunable
from tidegate.spark.tables.refusals import check_readable


def read(
    table: TableHandle,
    spark: SparkSession,
    where: str | None = None,
    *,
    version: int | None = None,
    timestamp: datetime | int | str | None = None,
) -> DataFrame:
    """The table's rows for which `where` (Spark SQL text) is true, all without one.

    At `version`, or at the latest version not after `timestamp` (an aware datetime, milliseconds
    since the epoch, or ISO 8601 text with a time zone), or at the latest version now: which files
    are read is settled here, however long the DataFrame lives. Columns have the order and types
    of the table's schema as of that version, whatever is in the files; those that an old file
    lacks are null.

    Raises `VersionNotFound`, `UnsupportedTable`, `InvalidRequest` for a predicate that Spark or the
    service cannot read, and `UnsupportedSession` and `StorageError` where the session does not
    reach the files.
    """
    table = table_of(table, spark)
    scan = table.scan(where, version=version, timestamp=instant(timestamp))
    layout = TableLayout.of(name=table.name, location=table.location, metadata=scan.metadata)
    if prunable(where, layout, spark) != where:
        # Only now is the schema known that tells.
        scan = table.scan(version=scan.version)
    check_readable(layout, scan.protocol, scan.files)
    store_at(layout.location, spark)
    rows = _rows(spark, layout, scan)
    selected = rows.select(*(quoted(name) for name in layout.spark_schema.names))
    return selected if where is None else matching(selected, where)


def instant(timestamp: datetime | int | str | None) -> datetime | int | None:
    """The timestamp with text parsed. Raises `ValueError` for text that is no ISO 8601."""
    return datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp


def _rows(spark: SparkSession, layout: TableLayout, scan: Scan) -> DataFrame:
    if not scan.files:
        return spark.createDataFrame([], as_nullable(layout.spark_schema))
    if not layout.partition_columns:
        return unpartitioned(spark, layout, scan.files)
    found = discovered(spark, layout, scan.files)
    return mapped(spark, layout, scan.files) if found is None else found


def as_nullable(schema: StructType) -> StructType:
    """The schema as Spark's Parquet reader has it: nothing is NOT NULL at any depth."""
    return StructType(
        [StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in schema.fields]
    )


def _nullable(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return as_nullable(data_type)
        case ArrayType():
            return ArrayType(_nullable(data_type.elementType), True)
        case MapType():
            return MapType(_nullable(data_type.keyType), _nullable(data_type.valueType), True)
    return data_type
