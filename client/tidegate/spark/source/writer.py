"""Writing through the data source: Arrow batches, tasks on their own, one commit by the driver.

Spark sends copies of the writer from process to process: it is made while the query is planned,
writes in the tasks' workers, and commits or aborts in a further one. So it holds values only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from tidegate.errors import TransactionCommitted
from tidegate.models import DataFile, TableVersion
from tidegate.spark.columns.schema_change import change_schema
from tidegate.spark.data_files.arrow_columns import BatchColumns
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.session_settings import (
    PARTITION_OVERWRITE_MODE,
    TXN_IS_RESET,
    boolean,
    parsed,
    task_settings,
    with_session,
)
from tidegate.spark.source.options import Service
from tidegate.spark.source.plain_errors import without_frames
from tidegate.spark.source.task import write_task
from tidegate.spark.storage.arrow import ArrowStore, S3Settings
from tidegate.spark.stream.query import QUERY_ID
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.tables.predicates import PartitionPredicate
from tidegate.spark.tables.zones import task_zone
from tidegate.spark.write.idempotence import is_recorded
from tidegate.spark.write.replaced import files_of_partitions, outside
from tidegate.spark.write.write import commit_write
from tidegate.spark.write_options import WriteOptions
from tidegate.transaction_handle import TransactionHandle

_UNSET_BY_BATCH = "in a batch of a stream, a data source may have settings that the batch has unset"


@dataclass(frozen=True, slots=True)
class WrittenFiles(WriterCommitMessage):
    """What one successful task wrote, and what it knows of its session (`task_zone`,
    `task_settings`): the commit, which is nobody's task, knows nothing."""

    files: DataFiles
    zone: str | None
    settings: Mapping[str, str]


@without_frames
class TidegateWriter(DataSourceArrowWriter):
    """One job's write into one table."""

    def __init__(
        self,
        *,
        service: Service,
        head: TableVersion,
        layout: TableLayout,
        columns: BatchColumns,
        storage: S3Settings,
        transaction_id: str,
        overwrite: bool,
        is_of_own_rows: bool,
        where: PartitionPredicate | None,
        schema: SparkStruct,
        given: Mapping[str, str],
        options: WriteOptions,
    ) -> None:
        """`options` are those that were given, parsed, without what the session says. `head` is the
        table as the job found it, or `is_of_own_rows`, as the rows were read of it: what has
        changed since is a conflict. `where` says which partitions are overwritten, all of them
        without it. `layout` is as the write leaves it, `schema` the DataFrame's."""
        self._service = service
        self._head = head
        self._columns = columns
        self._transaction_id = transaction_id
        self._folder_name = new_folder(transaction_id)
        self._layout = layout
        self._storage = storage
        self._overwrite = overwrite
        self._is_of_own_rows = is_of_own_rows
        self._where = where
        self._schema = schema
        self._given = given
        self._options = options

    def _store(self) -> ArrowStore:
        return ArrowStore(self._layout.location, self._storage)

    def _folder(self) -> TransactionFolder:
        return TransactionFolder(self._layout, self._folder_name, self._store())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        settings = task_settings()
        chosen = self._with_session(settings)
        if chosen.txn is not None and self._options.txn is None:
            _check_for_one_write(settings)
        by_session = chosen.is_dynamic and not self._options.is_dynamic
        if by_session and self._layout.partition_columns and _is_of_batch():
            raise UnsupportedSession(
                f"the session's {PARTITION_OVERWRITE_MODE} is dynamic, and {_UNSET_BY_BATCH}",
                hint="give the option partitionOverwriteMode, static or dynamic",
            )
        files = write_task(
            iterator,
            columns=self._columns,
            layout=self._layout,
            folder=self._folder_name,
            store=self._store(),
            options=self._options.files,
        )
        return WrittenFiles(files, task_zone(), settings)

    def _with_session(self, settings: Mapping[str, str]) -> WriteOptions:
        """The options, with what the session says of those that were not given. Raises
        `InvalidRequest` for what it cannot say."""
        where = None if self._where is None else self._where.where
        said = with_session(
            self._given, settings.get, is_overwrite=self._overwrite, replace_where=where
        )
        return WriteOptions.parse(said, is_overwrite=self._overwrite, replace_where=where)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Propose the files of the tasks that succeeded. What attempts left behind that did not
        is deleted: it is in nobody's proposal."""
        written = [message for message in messages if isinstance(message, WrittenFiles)]
        files = DataFiles(
            adds=tuple(add for message in written for add in message.files.adds),
            rows=sum(message.files.rows for message in written),
        )
        self._folder().delete_all_but(files.adds)
        zone, options = None, self._options
        if written:
            zone, options = written[0].zone, self._with_session(written[0].settings)
        with self._service.connect() as lake:
            table = lake.table(self._head.id)
            with table.transaction(
                transaction_id=self._transaction_id, head=self._head
            ) as transaction:
                change_schema(transaction, self._schema, options)
                is_done = is_recorded(transaction, options.txn)
                if not is_done:
                    self._commit(transaction, files, options, zone)
        if is_done:
            self._folder().delete()

    def _commit(
        self,
        transaction: TransactionHandle,
        files: DataFiles,
        options: WriteOptions,
        zone: str | None,
    ) -> None:
        if self._is_of_own_rows:
            transaction.read_whole_table()
        is_dynamic = options.is_dynamic and bool(self._layout.partition_columns)
        removed: list[DataFile] = []
        if is_dynamic:
            removed = files_of_partitions(transaction, self._layout, files.adds, zone=zone)
        elif self._overwrite:
            removed = self._replaced(transaction, files)
        commit_write(
            transaction,
            files,
            mode="Overwrite" if self._overwrite else "Append",
            options=options,
            removed=removed,
            predicate=None if self._where is None else self._where.where,
            is_dynamic=is_dynamic,
        )

    def _replaced(self, transaction: TransactionHandle, files: DataFiles) -> list[DataFile]:
        """The files to remove, recorded as read. Raises `InvalidRows` where a row lies in none of
        the partitions that are overwritten."""
        where = self._where
        if where is None:
            return transaction.filter_files()
        for add in files.adds:
            if not where.is_true(add.partition_values):
                raise outside(add.partition_values, f"the option where ({where.where})")
        found = transaction.filter_files(where.where)
        return [file for file in found if where.is_true(file.partition_values)]

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called also where `commit` failed, and nobody knows here how: so the service is told
        that the transaction shall never land, and only if it says so are its files deleted."""
        with self._service.connect() as lake:
            try:
                lake.table(self._head.id).abort_transaction(self._transaction_id)
            except TransactionCommitted:
                return
        self._folder().delete()


def _check_for_one_write(settings: Mapping[str, str]) -> None:
    """Raise `UnsupportedSession` where the session's version would be that of a further write, too,
    which would be left out: the session is to unset the version, which no process of a data source
    can, or a query's batch may have unset it, of which Spark's tasks hear nothing."""
    if parsed(TXN_IS_RESET, settings.get(TXN_IS_RESET), boolean, False):
        why = f"its {TXN_IS_RESET} is true, and a data source cannot unset the version"
    elif _is_of_batch():
        why = _UNSET_BY_BATCH
    else:
        return
    raise UnsupportedSession(
        f'the version of the session\'s application is not for format("tidegate") here: {why}, so '
        "that a further write would be left out",
        hint="give the options txnAppId and txnVersion, or use Table.append or Table.overwrite",
    )


def _is_of_batch() -> bool:
    """Whether the task works for a batch of a stream: what its function unsets of the session's
    settings is not unset for tasks."""
    task = TaskContext.get()
    return task is not None and bool(task.getLocalProperty(QUERY_ID))
