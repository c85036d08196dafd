"""Numbers of identity columns for the rows that a MERGE inserts."""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.identity import Numbering, identity_columns, moved_marks
from tidegate.spark.write.staging import DataFiles
from tidegate.transaction import Transaction


def with_numbers(rows: DataFrame, layout: TableLayout, names: Collection[str]) -> DataFrame:
    """The rows with numbers where one of the identity columns `names` is null: rows that are there
    already have theirs."""
    if not names:
        return rows
    columns = identity_columns(layout)
    numbering = Numbering.of(rows)
    return numbering.rows.select(
        *(
            F.coalesce(quoted(name), numbering.column(name, columns[name])).alias(name)
            if name in names
            else quoted(name)
            for name in rows.columns
        )
    )


def note_numbers(
    transaction: Transaction, layout: TableLayout, files: DataFiles, names: Collection[str]
) -> None:
    """Have the transaction move the marks of the columns as far as numbers were given out."""
    bounds = {name: files.numbers[name] for name in names if name in files.numbers}
    moved = moved_marks(transaction.metadata.schema_string, layout, bounds)
    if moved is not None:
        transaction.move_identity_marks(moved)
