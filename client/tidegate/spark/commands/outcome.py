"""What became of a command, and how it is recorded."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import ConflictError
from tidegate.models import DataFile, Receipt
from tidegate.spark.columns.conform import conform
from tidegate.spark.commands.change_data import FOLDER, add_changes, write_changes
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder, private_folder
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.row_ids import ids_among, kept_tag
from tidegate.spark.write import idempotence
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.log.actions import DeletionVector

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
        """Write the table's rows, and where they have them, the ids that they keep."""
        beside = ids_among(rows, self.layout)
        self.data = self._data.write(conform(rows, self.layout, is_copy=True, beside=beside))

    def write_vectors(self, positions: Sequence[BitMap64]) -> list[DeletionVector]:
        """Write deletion vectors for rows of files that stay, one for each set of positions."""
        return self._data.write_vectors(positions)

    def write_changes(self, changes: DataFrame) -> None:
        """Write change data, where the table asks for it."""
        if self.layout.properties.change_data_feed:
            self.changes = write_changes(self._changes, self.layout, changes)


@contextmanager
def rewriting(
    transaction: TransactionHandle, layout: TableLayout, spark: SparkSession
) -> Iterator[Rewrite]:
    """Folders for a command's files. At the end the transaction is given up unless it was
    proposed."""
    with ExitStack() as folders:
        data = folders.enter_context(private_folder(transaction, layout, spark))
        changes = folders.enter_context(private_folder(transaction, layout, spark, below=FOLDER))
        yield Rewrite(layout=layout, _data=data, _changes=changes)


def commit(
    transaction: TransactionHandle,
    spark: SparkSession,
    operation: str,
    *,
    parameters: Mapping[str, str],
    metrics: Mapping[str, str],
    removed: Sequence[DataFile] = (),
    marked: Sequence[DataFile] = (),
    written: Rewrite | None = None,
    user_metadata: str | None = None,
) -> Receipt | None:
    """Propose what the command did; None where that is nothing (`Transaction.commit_if_needed`).
    Files that are `marked` are among those that are removed, as they were before. As in Delta, the
    session's setting `spark.databricks.delta.skipRecordingEmptyCommits` false has nothing recorded,
    too. The session's `txnAppId` and `txnVersion` are recorded (`idempotence`). A
    `ConflictError` has a note of the rows that the command was of."""
    if written is not None:
        transaction.add(written.data.adds)
        add_changes(transaction, written.changes)
    transaction.remove(removed)
    transaction.add(marked)
    txn = idempotence.record(transaction, spark)
    land = transaction.commit_if_needed if _skips_empty(spark) else transaction.commit
    try:
        receipt = land(
            operation,
            parameters=parameters,
            metrics=metrics,
            user_metadata=metadata_of(user_metadata, spark),
            tags=kept_tag(transaction.head.metadata),
        )
    except ConflictError as error:
        error.add_note(f"The {operation} was of {_rows_of(parameters)}.")
        raise
    idempotence.reset(spark, txn)
    return receipt


def _skips_empty(spark: SparkSession) -> bool:
    return str(spark.conf.get(_EMPTY_COMMITS, "true")).lower() != "false"


def _rows_of(parameters: Mapping[str, str]) -> str:
    predicates = json.loads(parameters.get("predicate", "[]"))
    return f"the rows where {' AND '.join(predicates)}" if predicates else "all rows"
