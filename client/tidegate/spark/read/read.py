"""Reading a table as a Spark DataFrame: the files from the service, the rows by Spark."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from tidegate.active import active_transaction
from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.application import table_of
from tidegate.spark.expressions.where import ReadPredicate
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.read.times import milliseconds_of
from tidegate.spark.tables.layout import Reading, TableLayout
from tidegate.spark.tables.predicates import LONGEST, LONGEST_UNRECORDED
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
    since the epoch, or a text as in SQL, of the session's time zone where it has none), or at the
    latest version now: which files are read is settled here, however long the DataFrame lives.
    Columns have the order and types of the table's schema as of that version, whatever is in the
    files; those that an old file lacks are null.

    Raises `VersionNotFound`, `UnsupportedTable`, `InvalidRequest` for a predicate that Spark cannot
    read, and `UnsupportedSession` and `StorageError` where the session does not reach the files.

    Where a transaction of the table is active in the thread, this is its read (`read_in`), unless
    another version than its own or a timestamp is asked for. The DataFrame's plan says what it is
    a read of (`tidegate.spark.tables.plans`), and without either that it is one of now.
    """
    active = active_transaction(table.id)
    if active is not None and timestamp is None and version in (None, active.read_version):
        return read_in(active, spark, where=where)
    table = table_of(table, spark)
    at = None if timestamp is None else milliseconds_of(timestamp, spark)
    wanted = None if where is None else ReadPredicate.of(spark, where)
    # The columns say what a predicate means: the first scan with one asks for them alone.
    scan = table.scan(None if wanted is None else "false", version=version, timestamp=at)
    layout = TableLayout.of(name=table.name, location=table.location, metadata=scan.metadata)
    pruned = None if wanted is None else wanted.pruning(layout, longest=LONGEST_UNRECORDED)
    if wanted is not None:
        scan = table.scan(pruned, version=scan.version)
    is_of_now = version is None and timestamp is None
    recorded = pruned if pruned is not None and len(pruned.encode()) <= LONGEST else None
    reading = Reading(version=scan.version, where=recorded) if is_of_now else Reading(version=None)
    layout = replace(layout, reading=reading)
    return _frame(spark, layout, scan.protocol, scan.files, where=wanted)


def read_in(
    transaction: TransactionContent, spark: SparkSession, *, where: str | None = None
) -> DataFrame:
    """The rows for which `where` is true at the transaction's read version, all without one.

    The files are recorded as read, and what the predicate says in words of the service's
    (`predicate_text`), the whole table where that is nothing. What the DataFrame is filtered by
    later is not known here. A file that cannot be read makes the job fail. Raises as `read` does.
    """
    transaction.table = table_of(transaction.table, spark)
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    wanted = None if where is None else ReadPredicate.of(spark, where)
    pruned = None if wanted is None else wanted.pruning(layout, longest=LONGEST)
    files = transaction.filter_files(pruned)
    layout = replace(layout, reading=Reading(version=head.version, where=pruned))
    return _frame(spark, layout, head.protocol, files, where=wanted, is_whole=True)


def read_files_in(
    transaction: TransactionContent,
    spark: SparkSession,
    files: Sequence[DataFile],
    *,
    located: bool = False,
    with_ids: bool = False,
) -> DataFrame:
    """The rows of some files of the transaction's read version, to be written again: a file that
    cannot be read makes the job fail. Nothing is recorded as read. `located` and `with_ids` add the
    columns of `places` and `row_id_fields`. Raises as `read` does."""
    transaction.table = table_of(transaction.table, spark)
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    check_readable(layout, head.protocol)
    layout = replace(layout, reading=Reading(version=head.version, transaction=transaction.id))
    return rows_of_files(spark, layout, files, located=located, is_whole=True, with_ids=with_ids)


def _frame(
    spark: SparkSession,
    layout: TableLayout,
    protocol: Protocol,
    files: Sequence[DataFile],
    *,
    where: ReadPredicate | None,
    is_whole: bool = False,
) -> DataFrame:
    check_readable(layout, protocol)
    selected = rows_of_files(spark, layout, files, is_whole=is_whole)
    return selected if where is None else where.rows(selected)
