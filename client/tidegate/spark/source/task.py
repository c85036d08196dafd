"""What a task of the data source does: its batches of rows into data files."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext

from tidegate.spark.data_files.arrow_columns import BatchColumns
from tidegate.spark.data_files.arrow_files import TaskFiles
from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.write_options import FileOptions


def write_task(
    batches: Iterator[pa.RecordBatch],
    *,
    columns: BatchColumns,
    layout: TableLayout,
    folder: str,
    store: ArrowStore,
    options: FileOptions,
) -> DataFiles:
    """Write the task's batches below a folder of the table. Raises `InvalidRows` and
    `StorageError`; then nothing of it stays."""
    task = TaskContext.get()
    if task is None:
        raise AssertionError("rows are written in tasks only")
    rows = 0

    def conformed() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield columns.conform(batch)

    files = TaskFiles(layout, folder, store, task=task.partitionId(), options=options)
    adds = files.write(conformed())
    return DataFiles(adds=adds, rows=rows)
