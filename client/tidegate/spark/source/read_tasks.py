"""The tasks of a read through the data source: which files each has, and its batches of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType as SparkStruct

from tidegate.models import DataFile
from tidegate.spark.changes.commits import ChangedFile
from tidegate.spark.source.file_rows import Change, FileRows
from tidegate.spark.storage.arrow import ArrowStore, S3Settings
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.paths import decode

_TASK_BYTES = 128 << 20

SizedRows = tuple[FileRows, int]
"""The rows of a file with its size in bytes."""


@dataclass(frozen=True, slots=True)
class Files(InputPartition):
    """The files of one task. They carry the layout, because the reader was copied before it was
    known."""

    layout: TableLayout
    files: tuple[FileRows, ...]


def rows_of(layout: TableLayout, file: DataFile, change: Change | None = None) -> SizedRows:
    """The rows of a file of a version, as a feed has them where a `change` is given."""
    rows = FileRows(
        path=layout.path(decode(file.path)),
        partition_values=file.partition_values,
        deletion_vector=file.deletion_vector,
        change=change,
    )
    return rows, file.size


def changed_rows_of(layout: TableLayout, file: ChangedFile) -> SizedRows:
    """The rows of a file that a commit changed."""
    rows = FileRows(
        path=layout.path(decode(file.path)),
        partition_values=file.partition_values,
        deletion_vector=file.without,
        among=file.among,
        change=Change(change_type=file.change_type, version=file.version, timestamp=file.timestamp),
    )
    return rows, file.size


def tasks_of(layout: TableLayout, files: Iterable[SizedRows]) -> list[InputPartition]:
    """The files in tasks: small ones together."""
    return [Files(layout, tuple(group)) for group in _grouped(files)]


def read_files(
    partition: InputPartition, schema: SparkStruct, storage: S3Settings
) -> Iterator[pa.RecordBatch]:
    """A task's rows by the columns of a schema. Raises `StorageError` and `UnsupportedTable`."""
    # A table without files gives Spark no partitions, and Spark makes an empty one of that.
    if not isinstance(partition, Files):
        return
    target = to_arrow_schema(schema, timezone="UTC")
    store = ArrowStore(partition.layout.location, storage)
    with store.translated():
        for file in partition.files:
            yield from file.batches(partition.layout, store, target)


def _grouped(files: Iterable[SizedRows]) -> Iterator[list[FileRows]]:
    group: list[FileRows] = []
    size = 0
    for rows, own in files:
        if group and size + own > _TASK_BYTES:
            yield group
            group, size = [], 0
        group.append(rows)
        size += own
    if group:
        yield group
