"""The data files of one attempt at a transaction: written once, in a folder of the attempt's own
in the table's location.

Spark's commit protocol decides which task attempt counts, so that failed, repeated and speculative
attempts leave nothing in the folder; the log decides whether the folder counts at all. On a local
disk, Hadoop's committer moves the files there, which costs nothing. On an object store a move is
a copy, so there the files are written where they stay (`direct_write.py`).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pyroaring import BitMap64
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import TidegateError
from tidegate.spark.columns.mapping import physical_columns
from tidegate.spark.data_files.direct_write import direct_sink, take_manifest, write_directly
from tidegate.spark.data_files.footers import (
    FOOTER_THREADS,
    FooterColumns,
    long_bounds,
    num_records,
    statistics_of,
)
from tidegate.spark.deletion_vectors.files import path_of, write_vectors
from tidegate.spark.errors import StorageError, refused_rows
from tidegate.spark.storage.hadoop import JavaObject, jvm_of, storage_errors
from tidegate.spark.storage.locations import LOCAL, DataStore, StoredFile, scheme_of
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.tables.partitions import values_of_folder
from tidegate.spark.tables.refusals import check_typed
from tidegate.spark.values.identity import identity_columns
from tidegate.spark.write_options import AS_USUAL, FileOptions
from tidegate.transaction_handle import TransactionHandle, left_at_the_end
from tidegate.transaction_proposing import TransactionState
from tidegate_protocol.log.actions import Add, DeletionVector, PartitionValues
from tidegate_protocol.log.paths import decode, encode

F = TypeVar("F")
T = TypeVar("T")

_ATTEMPTS = "_temporary"
_WRITER_OPTIONS = {
    # INT96, Spark's default, has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Mapped columns have ids.
    "spark.sql.parquet.fieldId.write.enabled": "true",
}
_COMMITTER_OPTIONS = {
    # Version 1 shows a task's files together or not at all; version 2 would leave those of an
    # attempt that failed in its commit.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """The files that a job wrote, as the log will have them, and how many rows they hold.
    `numbers` are the least and the greatest of each of the table's identity columns."""

    adds: tuple[Add, ...]
    rows: int
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(add.size for add in self.adds)


class TransactionFolder:
    """The private folder of an attempt at a transaction; it comes into being with its first file.

    Nothing outside of it is ever deleted, but the vectors that were written for it.
    """

    def __init__(self, layout: TableLayout, name: str, store: DataStore) -> None:
        """`name` is of `layout.new_folder`, `store` that of the layout's location."""
        self.layout = layout
        self.name = name
        self._store = store
        self._beside: list[str] = []

    def write(
        self, df: DataFrame, options: FileOptions = AS_USUAL, *, is_data: bool = True
    ) -> DataFiles:
        """Write a conformed DataFrame with Spark's own Parquet writer, in one job; without
        statistics where the files are no data files of the table.

        Raises `InvalidRows`, `StorageError`, `UnsupportedTable` for a void column, or what else the
        Spark job failed of.
        """
        if scheme_of(self.layout.location) == LOCAL:
            return self.write_through(None, df, options, is_data=is_data)
        sink = direct_sink(df.sparkSession)
        if sink is None:
            warnings.warn(
                "this Spark cannot write files in their place: each is copied twice on the "
                "storage after it is written",
                stacklevel=2,
            )
        with storage_errors(jvm_of(df.sparkSession), self.layout.location):
            return self.write_through(sink, df, options, is_data=is_data)

    def write_through(
        self,
        sink: JavaObject | None,
        df: DataFrame,
        options: FileOptions = AS_USUAL,
        *,
        is_data: bool = True,
    ) -> DataFiles:
        """Write by `direct_write`'s sink, or by Hadoop's committer without one."""
        check_typed(self.layout)
        df = physical_columns(df, self.layout)
        try:
            if sink is None:
                self._write_by_committer(df, options)
                files = self.committed()
            else:
                files = self._write_directly(sink, df, options)
        except PySparkException as error:
            if (refusal := refused_rows(error)) is not None:
                raise refusal from error
            raise
        beside = len(df.columns) - len(self.layout.spark_schema.fields)
        columns = FooterColumns.of(self.layout, beside=beside) if is_data else None
        return self._data_files(files, columns, data_change=options.data_change)

    def _write_by_committer(self, df: DataFrame, options: FileOptions) -> None:
        settings = _WRITER_OPTIONS | _COMMITTER_OPTIONS | options.of_writer
        writer = df.write.options(**settings)
        writer = writer.partitionBy(*self.layout.physical.partition_columns)
        writer.parquet(self.layout.url(self.name))

    def _write_directly(
        self, sink: JavaObject, df: DataFrame, options: FileOptions
    ) -> list[StoredFile]:
        write_directly(
            sink,
            df,
            self.layout.url(self.name),
            partition_by=self.layout.physical.partition_columns,
            options=_WRITER_OPTIONS | options.of_writer,
        )
        return take_manifest(self._store, self.name, self.layout.root)

    def committed(self) -> list[StoredFile]:
        """The files that Hadoop's committer moved into the folder. An attempt that was given up
        may still run, and come back to where attempts write."""
        attempts = f"{self.name}/{_ATTEMPTS}/"
        return sorted(
            (
                file
                for file in self._store.files(self.name)
                if file.path.endswith(".parquet") and not file.path.startswith(attempts)
            ),
            key=lambda file: file.path,
        )

    def _data_files(
        self, files: Sequence[StoredFile], columns: FooterColumns | None, *, data_change: bool
    ) -> DataFiles:
        """The files with the statistics that their footers have in these columns. Those without
        rows, which Delta leaves out of its commits, are deleted."""
        with ThreadPoolExecutor(max_workers=FOOTER_THREADS) as pool:
            footers = list(pool.map(self._store.footer, files))
        partitions: dict[str, PartitionValues] = {}
        adds = []
        rows = 0
        for file, footer in zip(files, footers, strict=True):
            count = num_records(footer)
            if count == 0:
                self._store.delete(file.path)
                continue
            rows += count
            folder = file.path.rpartition("/")[0].removeprefix(self.name).lstrip("/")
            if folder not in partitions:
                partitions[folder] = values_of_folder(folder, self.layout.physical)
            adds.append(
                Add(
                    path=encode(file.path),
                    partition_values=partitions[folder],
                    size=file.size,
                    modification_time=file.modification_time,
                    data_change=data_change,
                    stats=None if columns is None else statistics_of(footer, columns),
                )
            )
        numbers = {
            name: bounds
            for name in identity_columns(self.layout)
            if (bounds := long_bounds(footers, self._physical_name(name))) is not None
        }
        return DataFiles(adds=tuple(adds), rows=rows, numbers=numbers)

    def write_vectors(self, positions: Sequence[BitMap64]) -> list[DeletionVector]:
        """Write one file with a deletion vector for each set of positions, in their order. It lies
        beside the folder, whose name no vector's path may have."""
        vectors = write_vectors(positions, self._store)
        self._beside += [path_of(vector) for vector in vectors[:1]]
        return vectors

    def _physical_name(self, column: str) -> str:
        found = self.layout.schema.field(column)
        if found is None:
            raise AssertionError(f"{column} is no column of {self.layout.name}")
        return self.layout.physical_name(found)

    def delete_all_but(self, adds: Sequence[Add]) -> None:
        """Delete the files that no add names: what attempts left behind that do not count."""
        kept = {decode(add.path) for add in adds}
        for file in self._store.files(self.name):
            if file.path not in kept:
                self._store.delete(file.path)

    def is_named_by(self, commit: bytes) -> bool:
        """Whether the bytes of a `<version>.json` name a file of the folder. Its name ends with
        the attempt's own digits, which are spelt alike however a path is escaped."""
        return self.name.rpartition(".")[2].encode() in commit

    def delete(self) -> None:
        """Delete the folder with everything in it, and the vectors beside it. Only where no commit
        names a file of them or ever will."""
        self._store.delete_folder(self.name)
        for path in self._beside:
            self._store.delete(path)


@contextmanager
def private_folder(
    txn: TransactionHandle, layout: TableLayout, spark: SparkSession, *, below: str | None = None
) -> Iterator[TransactionFolder]:
    """A folder for this attempt at the transaction, `below` one of the table where that is given.
    It is deleted at the end where none of its files is in the table for sure or ever will be: they
    were never proposed, or the proposal is certain never to land. While its outcome is unknown they
    may be in the table, and stay."""
    name = new_folder(txn.id) if below is None else f"{below}/{new_folder(txn.id)}"
    folder = TransactionFolder(layout, name, store_at(layout.location, spark))
    try:
        with left_at_the_end(txn):
            yield folder
    except BaseException as error:
        _discard(folder, txn, error)
        raise
    _discard(folder, txn, None)


def created_with_files(
    folder: TransactionFolder, write: Callable[[], F], create: Callable[[F], T]
) -> T:
    """What `create` makes of the files that `write` has written into the folder: a table whose
    version 0 has them. They are deleted where there is no such table for sure: `write` has raised,
    or `create` a definite error. After another one, as an interruption, they may be the table's."""
    try:
        files = write()
    except BaseException as error:
        _delete(folder, error)
        raise
    try:
        return create(files)
    except TidegateError as error:
        if error.definite:
            _delete(folder, error)
        raise


def is_lost(txn: TransactionHandle) -> bool:
    """Whether the files that only this transaction names are in the table never: they were not
    proposed, or the proposal is certain never to land."""
    return not txn.was_proposed or txn.state in (TransactionState.FAILED, TransactionState.ABORTED)


def _discard(
    folder: TransactionFolder, txn: TransactionHandle, error: BaseException | None
) -> None:
    if not is_lost(txn):
        return
    if error is None:
        folder.delete()
    else:
        _delete(folder, error)


def _delete(folder: TransactionFolder, error: BaseException) -> None:
    try:
        folder.delete()
    except (OSError, StorageError) as what:
        error.add_note(f"The files in {folder.layout.url(folder.name)} are not deleted: {what}")
