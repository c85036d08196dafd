"""What became of a command, and how it is recorded."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from tidegate.models import DataFile, Receipt
from tidegate.spark.commands.change_data import FOLDER, add_changes, write_changes
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.write.conform import conform
from tidegate.spark.write.staging import DataFiles, TransactionFolder, private_folder
from tidegate.transaction import Transaction

_EMPTY_COMMITS = "spark.databricks.delta.skipRecordingEmptyCommits"
_NOTHING = DataFiles(adds=(), rows=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The commit of a command, None where it left the table as it was, and its rows. A count is
    None where the log does not tell: of whole partitions that were deleted, whose files say nothing
    of their rows. `metrics` are Delta's, by its names."""

    receipt: Receipt | None
    updated: int | None = 0
    deleted: int | None = 0
    inserted: int | None = 0
    metrics: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        """How many rows were updated, deleted and inserted."""
        counts = (self.updated, self.deleted, self.inserted)
        return None if None in counts else sum(count for count in counts if count is not None)


class Stopwatch:
    """How long the parts of a command took, in ms."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._scanned: float | None = None

    def scanned(self) -> None:
        """From here on, files are written."""
        self._scanned = time.monotonic()

    def metrics(self) -> dict[str, str]:
        """The times by Delta's names."""
        now = time.monotonic()
        scanned = now if self._scanned is None else self._scanned
        return {
            "executionTimeMs": _ms(now - self._started),
            "scanTimeMs": _ms(scanned - self._started),
            "rewriteTimeMs": _ms(now - scanned),
        }


@dataclass(slots=True, kw_only=True)
class Rewrite:
    """The files that a command writes: the table's rows, and change data. All of them are deleted
    where they are in the table never."""

    layout: TableLayout
    _data: TransactionFolder
    _changes: TransactionFolder
    data: DataFiles = _NOTHING
    changes: tuple[DataFile, ...] = ()

    def write(self, rows: DataFrame) -> None:
        """Write the table's rows."""
        self.data = self._data.write(conform(rows, self.layout, is_copy=True))

    def write_changes(self, changes: DataFrame) -> None:
        """Write change data, where the table asks for it."""
        if self.layout.properties.change_data_feed:
            self.changes = write_changes(self._changes, self.layout, changes)


@contextmanager
def rewriting(
    transaction: Transaction, layout: TableLayout, spark: SparkSession
) -> Iterator[Rewrite]:
    """Folders for a command's files. At the end the transaction is given up unless it was
    proposed."""
    with ExitStack() as folders:
        data = folders.enter_context(private_folder(transaction, layout, spark))
        changes = folders.enter_context(private_folder(transaction, layout, spark, below=FOLDER))
        yield Rewrite(layout=layout, _data=data, _changes=changes)


def commit(
    transaction: Transaction,
    spark: SparkSession,
    operation: str,
    *,
    parameters: Mapping[str, str],
    metrics: Mapping[str, str],
    removed: Sequence[DataFile] = (),
    written: Rewrite | None = None,
    user_metadata: str | None = None,
) -> Receipt | None:
    """Propose what the command did; None where that is nothing. As in Delta, the session's setting
    `spark.databricks.delta.skipRecordingEmptyCommits` false has nothing recorded, too."""
    if written is not None:
        transaction.add(written.data.adds)
        add_changes(transaction, written.changes)
    transaction.remove(removed)
    if not transaction.has_actions and _skips_empty(spark):
        return None
    return transaction.commit(
        operation, parameters=parameters, metrics=metrics, user_metadata=user_metadata
    )


def _skips_empty(spark: SparkSession) -> bool:
    return str(spark.conf.get(_EMPTY_COMMITS, "true")).lower() != "false"


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
