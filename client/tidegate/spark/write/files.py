"""A DataFrame's rows as data files of a transaction, which nobody has committed yet."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from tidegate.spark.application import table_of
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder
from tidegate.spark.errors import StorageError
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.clustering import clustering_of
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.tables.refusals import check_writable
from tidegate.spark.write.beginning import check_rewritten, join
from tidegate.spark.write.rows import write_rows
from tidegate.spark.write_options import FileOptions, OptionValue
from tidegate.transaction_content import TransactionContent


def write_files(
    transaction: TransactionContent, df: DataFrame, *, options: Mapping[str, OptionValue]
) -> DataFiles:
    """Write the DataFrame's rows for the table as the transaction leaves it, in one Spark job.

    The way is that of `Table.append`: columns by name, store assignment, constraints, generated
    columns, the table's partitions and statistics. `options` are those of `FileOptions`. Raises
    `InvalidRequest` for others and for rows of the table at an earlier version (`join`,
    `check_rewritten`), `UnsupportedTable`, `UnsupportedSession`, `SchemaMismatch`, `InvalidRows`
    and `StorageError`, and what else the Spark job failed of; then no file stays behind.
    """
    chosen = FileOptions.parse(options)
    spark = df.sparkSession
    transaction.table = table_of(transaction.table, spark)
    layout = writable_layout(transaction)
    join(transaction, df, layout)
    check_rewritten(df, layout, chosen)
    store = store_at(layout.location, spark)
    folder = TransactionFolder(layout, new_folder(transaction.id), store)
    try:
        with Passes(spark, operation="WRITE", table=layout.name) as passes:
            passes.writes_rows()
            return write_rows(transaction, folder, df, chosen)
    except BaseException as error:
        try:
            folder.delete()
        except (OSError, StorageError) as what:
            error.add_note(f"The files of transaction {transaction.id} were not deleted: {what}")
        raise


def writable_layout(transaction: TransactionContent) -> TableLayout:
    """The layout that the transaction's files have to have. Raises `UnsupportedTable`."""
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=transaction.metadata)
    check_writable(layout, head.protocol)
    return replace(layout, clustering=clustering_of(transaction.table, head.protocol))
