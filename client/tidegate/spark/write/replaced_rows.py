"""Replacing the rows for which a predicate over any columns is true.

Files that hold such rows are removed, and what they hold of others is written again with the new
rows, in one job. Which files those are is found by a job before it, in the files that the service
does not rule out by their statistics.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidegate.errors import InvalidRequest
from tidegate.models import DataFile
from tidegate.spark.columns.conform import conform
from tidegate.spark.columns.constraints import Constraint
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.expressions.resolution import has_subquery
from tidegate.spark.expressions.where import Where, refused
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.read.read import read_files_in
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.places import FILE
from tidegate.spark.tables.row_ids import ids_among
from tidegate.transaction_content import TransactionContent

_TRUE = "__tidegate_true"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRows:
    """The files to remove, how many of their rows go, and those that stay (None where all go)."""

    files: Sequence[DataFile]
    deleted: int
    copied: int
    kept: DataFrame | None

    @property
    def metrics(self) -> dict[str, str]:
        """As Delta's operation has them."""
        return {"numDeletedRows": str(self.deleted), "numCopiedRows": str(self.copied)}


def is_over_partitions(where: Where, layout: TableLayout) -> bool:
    """Whether the predicate needs none but the table's partition columns, of which it needs some.

    Raises `InvalidRequest` for one that is no condition over a row's columns, or not the same each
    time.
    """
    names = layout.partition_columns
    schema = layout.spark_schema
    _check(where, schema)
    if not names or _is_constant(where):
        return False
    return _is_over(where, StructType([schema[name] for name in names]))


def replaces_nothing(where: Where) -> bool:
    """Whether the predicate is true of no row whatever it holds, such as `1 = 2`. As in Delta, the
    rows that are written need not keep it then."""
    if not _is_constant(where):
        return False
    frame = where.spark.range(1)
    (row,) = frame.select(where.over(frame)).collect()
    return row[0] is not True


def rows_inside(where: Where) -> Constraint:
    """The condition that every row is one of those that are replaced; the current time in it is
    that at which the rows are written, as of their own."""
    return Constraint(
        name="of replace_where",
        expression=f"({where.text})",
        condition=where.column,
        error_class="DELTA_REPLACE_WHERE_MISMATCH",
        says="Written data does not conform to partial table overwrite condition or constraint",
    )


def replaced_rows(
    transaction: TransactionContent,
    layout: TableLayout,
    where: Where,
    passes: Passes,
) -> ReplacedRows:
    """Find what the predicate is true of, recorded as read; a Spark job runs where a file may hold
    such rows.

    Raises `UnsupportedTable` where rows would have to be copied in a table whose change data feed
    is on, in which what is copied would pass for changed.
    """
    spark = where.spark
    candidates = transaction.filter_files(where.pruning(layout))
    if not candidates:
        return ReplacedRows(files=(), deleted=0, copied=0, kept=None)
    passes.scans(len(candidates))
    rows = read_files_in(transaction, spark, candidates, located=True)
    counts = _counts(rows, _is_true(where, rows))
    files = [candidates[number] for number in counts]
    deleted = sum(deleted for deleted, _ in counts.values())
    partly = [candidates[number] for number, (going, rows) in counts.items() if going < rows]
    if not partly:
        return ReplacedRows(files=files, deleted=deleted, copied=0, kept=None)
    if layout.properties.change_data_feed:
        raise UnsupportedTable(
            f"table {layout.name} has its change data feed on, and replacing rows by data columns "
            "would need change data files, which this client does not write here",
            hint="replace whole partitions or files, or delete and append",
        )
    kept = read_files_in(transaction, spark, partly, with_ids=True)
    kept = kept.where(~_is_true(where, kept))
    copied = sum(rows - going for going, rows in counts.values())
    return ReplacedRows(files=files, deleted=deleted, copied=copied, kept=kept)


def conformed_with_kept(
    df: DataFrame, layout: TableLayout, kept: DataFrame | None, inside: Sequence[Constraint]
) -> DataFrame:
    """The new rows, of which the constraints hold, too, and those that stay, with the ids that they
    keep, as one DataFrame."""
    rows = conform(df, layout, further=inside)
    if kept is None:
        return rows
    ids = ids_among(kept, layout)
    none = (F.lit(None).cast("bigint").alias(name) for name in ids)
    return rows.select("*", *none).union(conform(kept, layout, is_copy=True, beside=ids))


def _is_true(where: Where, rows: DataFrame) -> Column:
    """The predicate over these rows, false where it is null."""
    return F.coalesce(where.over(rows), F.lit(False))


def _counts(rows: DataFrame, is_true: Column) -> dict[int, tuple[int, int]]:
    """Of how many rows of each file the condition is true, and how many it has, by the file's
    number; without the files where there are none."""
    found = (
        rows.select(FILE, is_true.cast("int").alias(_TRUE))
        .groupBy(FILE)
        .agg(F.sum(_TRUE), F.count(_TRUE))
        .collect()
    )
    return {file: (going, size) for file, going, size in found if going}


def _check(where: Where, schema: StructType) -> None:
    frame = _without_rows(where, schema)
    if not where.is_shown:
        where.over(frame)
        return
    found = where.resolved(frame)
    if has_subquery(where.spark, found.java):
        raise refused(
            f"the predicate {where.text!r} holds a subquery; expected a condition on a row's "
            "columns",
            error_class="DELTA_UNSUPPORTED_SUBQUERY",
        )
    if not found.is_deterministic:
        raise refused(
            f"the predicate {where.text!r} is not deterministic; expected one that is true of the "
            "same rows each time",
            error_class="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        )


def _is_constant(where: Where) -> bool:
    return _is_over(where, StructType([]))


def _is_over(where: Where, schema: StructType) -> bool:
    """Whether the predicate is a condition over these columns."""
    try:
        where.over(_without_rows(where, schema))
    except InvalidRequest:
        return False
    return True


def _without_rows(where: Where, schema: StructType) -> DataFrame:
    return where.spark.createDataFrame([], schema)
