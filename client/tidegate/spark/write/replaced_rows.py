"""Replacing the rows for which a predicate over any columns is true.

Files that hold such rows are removed, and what they hold of others is written again with the new
rows, in one job. Which files those are is found by a job before it, in the files that the service
does not rule out by their statistics.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidegate.models import DataFile
from tidegate.spark.columns.conform import conform
from tidegate.spark.columns.constraints import Constraint
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.expressions.pruning import names_partitions_only
from tidegate.spark.expressions.resolution import has_subquery, names_of
from tidegate.spark.expressions.where import ReplacePredicate, refused
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.read.read import read_files_in
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.places import FILE
from tidegate.spark.tables.plans import with_columns_of
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


def is_over_partitions(where: ReplacePredicate, layout: TableLayout) -> bool:
    """Whether the predicate needs none but the table's partition columns, of which it needs some.
    Raises `InvalidRequest` for one with a subquery, or that is not the same each time."""
    if where.resolved is None:
        partitions = [layout.spark_schema[name] for name in layout.partition_columns]
        return not _is_constant(where) and _is_over(where, partitions)
    java = where.resolved.java
    if has_subquery(where.spark, java):
        raise refused(
            f"the predicate {where.text!r} holds a subquery; expected a condition on a row's "
            "columns",
            error_class="DELTA_UNSUPPORTED_SUBQUERY",
        )
    if not where.resolved.is_deterministic:
        raise refused(
            f"the predicate {where.text!r} is not deterministic; expected one that is true of the "
            "same rows each time",
            error_class="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        )
    return not _is_constant(where) and names_partitions_only(layout, java)


def replaces_nothing(where: ReplacePredicate) -> bool:
    """Whether the predicate is true of no row whatever it holds, such as `1 = 2`. As in Delta, the
    rows that are written need not keep it then."""
    if not _is_constant(where):
        return False
    (row,) = where.spark.range(1).select(where.condition).collect()
    return row[0] is not True


def rows_inside(where: ReplacePredicate) -> Constraint:
    """The condition that every row is one of those that are replaced; the current time in it is
    that at which the rows are written, as of their own."""
    return Constraint(
        name="of replace_where",
        expression=f"({where.text})",
        condition=where.given,
        error_class="DELTA_REPLACE_WHERE_MISMATCH",
        says="Written data does not conform to partial table overwrite condition or constraint",
    )


def replaced_rows(
    transaction: TransactionContent,
    layout: TableLayout,
    where: ReplacePredicate,
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
    is_true = F.coalesce(where.condition, F.lit(False))
    rows = read_files_in(transaction, spark, candidates, located=True)
    counts = _counts(with_columns_of(where.columns, rows), is_true)
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
    kept = with_columns_of(where.columns, kept).where(~is_true)
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


def _is_constant(where: ReplacePredicate) -> bool:
    if where.resolved is None:
        return _is_over(where, [])
    return not names_of(where.resolved.java)


def _is_over(where: ReplacePredicate, fields: list[StructField]) -> bool:
    """Whether the predicate is a condition over these columns, which Connect says where it is
    asked."""
    try:
        where.spark.createDataFrame([], StructType(fields)).where(where.condition).schema  # noqa: B018
    except AnalysisException:
        return False
    return True
