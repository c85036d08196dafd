"""Numbers of identity columns for the rows that a MERGE inserts."""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.merge.plan import MergePlan
from tidegate.spark.merge.rows import ACTION
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.identity import Numbering, identity_columns, moved_marks
from tidegate.transaction_handle import TransactionHandle


def with_numbers(rows: DataFrame, layout: TableLayout, plan: MergePlan) -> DataFrame:
    """The rows, which have their action, without it, and with numbers where their clause inserts
    and is given none: rows that are there already keep what they have, also where that is null."""
    if not plan.numbered:
        return rows.drop(ACTION)
    columns = identity_columns(layout)
    numbering = Numbering.of(rows)
    values = {name: quoted(name) for name in rows.columns if name != ACTION}
    for name in plan.numbered:
        makers = [i for i, each in enumerate(plan.clauses) if name in each.numbered]
        number = numbering.column(name, columns[name])
        values[name] = F.when(F.col(ACTION).isin(*makers), number).otherwise(values[name])
    return numbering.rows.select(*(value.alias(name) for name, value in values.items()))


def note_numbers(
    transaction: TransactionHandle, layout: TableLayout, files: DataFiles, names: Collection[str]
) -> None:
    """Have the transaction move the marks of the columns as far as numbers were given out."""
    bounds = {name: files.numbers[name] for name in names if name in files.numbers}
    moved = moved_marks(transaction.metadata.schema_string, layout, bounds)
    if moved is not None:
        transaction.move_identity_marks(moved)
