"""The data files of one transaction: written once, in its private folder in the table's location.

The files stay where the tasks' commit put them: no data is copied afterwards. Spark's commit
protocol decides which task attempt counts, so that failed, repeated and speculative attempts
leave nothing in the folder; the log decides whether the folder counts at all.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidegate.spark.errors import refused_rows
from tidegate.spark.footers import FooterColumns, num_records, statistics_of
from tidegate.spark.layout import TableLayout, transaction_folder
from tidegate.spark.partitions import values_of_folder
from tidegate.transaction import Transaction, TransactionState
from tidegate_protocol.actions import Add, PartitionValues
from tidegate_protocol.paths import encode

_FOOTER_THREADS = 16
_ATTEMPTS = "_temporary"
_WRITER_OPTIONS = {
    # INT96, Spark's default, has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Version 1 shows a task's files together or not at all, and costs the same here.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """The files that a job wrote, as the log will have them, and how many rows they hold."""

    adds: tuple[Add, ...]
    rows: int

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(add.size for add in self.adds)


class TransactionFolder:
    """The private folder of a transaction; it comes into being with its first file."""

    def __init__(self, layout: TableLayout, transaction_id: str) -> None:
        self.layout = layout
        self.name = transaction_folder(transaction_id)
        self.path = layout.path(self.name)

    def write(self, df: DataFrame) -> DataFiles:
        """Write a conformed DataFrame with Spark's own Parquet writer, in one job.

        Raises `InvalidRows`, or what the Spark job failed of.
        """
        writer = df.write.options(**_WRITER_OPTIONS)
        try:
            writer.partitionBy(*self.layout.partition_columns).parquet(f"file://{self.path}")
        except PySparkException as error:
            if (refusal := refused_rows(error)) is not None:
                raise refusal from error
            raise
        return self.files()

    def files(self) -> DataFiles:
        """What is in the folder, with the statistics that its footers have. Files without rows,
        which Delta leaves out of its commits, are deleted."""
        columns = FooterColumns.of(self.layout)
        paths = self._committed()
        with ThreadPoolExecutor(max_workers=_FOOTER_THREADS) as pool:
            footers = list(pool.map(pq.read_metadata, paths))
        partitions: dict[Path, PartitionValues] = {}
        adds = []
        rows = 0
        for path, footer in zip(paths, footers, strict=True):
            count = num_records(footer)
            if count == 0:
                path.unlink()
                continue
            rows += count
            relative = path.relative_to(self.path)
            folder = relative.parent
            if folder not in partitions:
                partitions[folder] = values_of_folder(
                    "" if folder == Path() else folder.as_posix(), self.layout
                )
            stat = path.stat()
            adds.append(
                Add(
                    path=encode(f"{self.name}/{relative.as_posix()}"),
                    partition_values=partitions[folder],
                    size=stat.st_size,
                    modification_time=stat.st_mtime_ns // 1_000_000,
                    data_change=True,
                    stats=statistics_of(footer, columns),
                )
            )
        return DataFiles(adds=tuple(adds), rows=rows)

    def _committed(self) -> list[Path]:
        # An attempt that was given up may still run, and come back to where attempts write.
        attempts = Path(self.path, _ATTEMPTS)
        found = sorted(Path(self.path).rglob("*.parquet"))
        return [path for path in found if not path.is_relative_to(attempts)]

    def delete(self) -> None:
        """Delete the folder with everything in it. Only for a transaction that never lands."""
        if Path(self.path).exists():
            shutil.rmtree(self.path)


@contextmanager
def private_folder(txn: Transaction, layout: TableLayout) -> Iterator[TransactionFolder]:
    """The transaction's folder, deleted at the end where the transaction is certain never to
    land. While its outcome is unknown, its files may be in the table, and stay."""
    folder = TransactionFolder(layout, txn.id)
    try:
        with txn:
            yield folder
    except BaseException as error:
        _discard(folder, txn, error)
        raise
    _discard(folder, txn, None)


def _discard(folder: TransactionFolder, txn: Transaction, error: BaseException | None) -> None:
    if txn.state not in (TransactionState.FAILED, TransactionState.ABORTED):
        return
    try:
        folder.delete()
    except OSError as what:
        if error is None:
            raise
        error.add_note(f"The files of transaction {txn.id} could not be deleted: {what}")
