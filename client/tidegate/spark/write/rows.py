"""The rows of a DataFrame as files of a transaction: conformed, written, and what the table has to
remember of them."""

from pyspark.sql import DataFrame

from tidegate.spark.columns.conform import conform
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder
from tidegate.spark.expressions.where import ReplacePredicate
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.identity import moved_marks, unnumbered
from tidegate.spark.write.replaced_rows import (
    ReplacedRows,
    conformed_with_kept,
    replaced_rows,
    replaces_nothing,
    rows_inside,
)
from tidegate.spark.write_options import AS_USUAL, FileOptions
from tidegate.transaction_content import TransactionContent


def write_rows(
    transaction: TransactionContent,
    folder: TransactionFolder,
    df: DataFrame,
    options: FileOptions = AS_USUAL,
) -> DataFiles:
    """Write a DataFrame's rows into the folder, in one Spark job; the transaction has the marks of
    the identity columns that gave numbers out. Raises as `conform` and `TransactionFolder.write`
    do."""
    return write_conformed(transaction, folder, df, conform(df, folder.layout), options)


def write_conformed(
    transaction: TransactionContent,
    folder: TransactionFolder,
    df: DataFrame,
    conformed: DataFrame,
    options: FileOptions = AS_USUAL,
    *,
    copied: int = 0,
) -> DataFiles:
    """As `write_rows`, of a DataFrame `df` that was conformed before, with so many rows of the
    table's own, which move no mark."""
    layout = folder.layout
    files = folder.write(arranged(conformed, layout, options), options)
    numbers = {
        name: files.numbers[name]
        for name in unnumbered(layout, df.columns)
        if name in files.numbers and files.rows > copied
    }
    moved = moved_marks(transaction.metadata.schema_string, layout, numbers)
    if moved is not None:
        transaction.move_identity_marks(moved)
    return files


def write_replacing(
    transaction: TransactionContent,
    folder: TransactionFolder,
    df: DataFrame,
    where: ReplacePredicate,
    *,
    passes: Passes,
    options: FileOptions = AS_USUAL,
) -> tuple[DataFiles, ReplacedRows]:
    """Write a DataFrame's rows in the place of those for which a predicate over any columns is
    true, with what has to be copied of the files that hold those. Raises as `write_rows` and
    `replaced_rows` do, and `InvalidRows` for a row for which the predicate is not true."""
    layout = folder.layout
    if replaces_nothing(where):
        found = ReplacedRows(files=(), deleted=0, copied=0, kept=None)
        passes.writes_rows()
        return write_rows(transaction, folder, df, options), found
    found = replaced_rows(transaction, layout, where, passes)
    conformed = conformed_with_kept(df, layout, found.kept, [rows_inside(where)])
    passes.writes_rows(f"rows in the place of those in {len(found.files)} files")
    files = write_conformed(transaction, folder, df, conformed, options, copied=found.copied)
    return files, found


def arranged(df: DataFrame, layout: TableLayout, options: FileOptions) -> DataFrame:
    """The rows in partitions of the size that the session's adaptive execution is to have, those of
    one partition of the table together, where `optimizeWrite` asks for it."""
    if not options.optimize:
        return df
    return df.hint("rebalance", *layout.partition_columns)
