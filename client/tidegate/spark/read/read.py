"""Reading a table as a Spark DataFrame: the files from the service, the rows by Spark."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from tidegate.active import active_transaction
from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.application import table_of
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import matching, prunable
from tidegate.spark.tables.refusals import check_readable
from tidegate.transaction_content import TransactionContent
from tidegate_protocol.log.actions import Protocol


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

    Where a transaction of the table is active in the thread, this is its read (`read_in`), unless
    another version than its own or a timestamp is asked for.
    """
    active = active_transaction(table.id)
    if active is not None and timestamp is None and version in (None, active.read_version):
        return read_in(active, spark, where=where)
    table = table_of(table, spark)
    scan = table.scan(where, version=version, timestamp=instant(timestamp))
    layout = TableLayout.of(name=table.name, location=table.location, metadata=scan.metadata)
    if prunable(where, layout, spark) != where:
        # Only now is the schema known that tells.
        scan = table.scan(version=scan.version)
    return _frame(spark, layout, scan.protocol, scan.files, where=where)


def read_in(
    transaction: TransactionContent, spark: SparkSession, *, where: str | None = None
) -> DataFrame:
    """The rows for which `where` is true at the transaction's read version, all without one.

    The predicate and the files are recorded as read, the whole table where the service cannot prune
    by the predicate as this session reads it. What the DataFrame is filtered by later is not known
    here. Raises as `read` does.
    """
    transaction.table = table_of(transaction.table, spark)
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    files = transaction.filter_files(prunable(where, layout, spark))
    return _frame(spark, layout, head.protocol, files, where=where)


def instant(timestamp: datetime | int | str | None) -> datetime | int | None:
    """The timestamp with text parsed. Raises `ValueError` for text that is no ISO 8601."""
    return datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp


def _frame(
    spark: SparkSession,
    layout: TableLayout,
    protocol: Protocol,
    files: Sequence[DataFile],
    *,
    where: str | None,
) -> DataFrame:
    check_readable(layout, protocol)
    selected = rows_of_files(spark, layout, files)
    return selected if where is None else matching(selected, where)
