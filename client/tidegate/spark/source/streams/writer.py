"""Streams through the data source: Arrow batches, tasks on their own, a commit for each batch.

Spark makes the writer twice for every batch, in different processes: once for the tasks, once for
the commit, which gets nothing of the first but the tasks' messages. Only tasks are told which query
they work for. So what the commit has to know comes in each message.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType as SparkStruct

from tidegate.errors import TransactionCommitted
from tidegate.handle import TableHandle
from tidegate.models import TableVersion
from tidegate.spark.columns.schema_change import change_schema
from tidegate.spark.data_files.arrow_columns import BatchColumns
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder, is_lost
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.session_settings import task_settings, with_session
from tidegate.spark.source.options import Service
from tidegate.spark.source.plain_errors import without_frames
from tidegate.spark.source.task import write_task
from tidegate.spark.storage.arrow import ArrowStore, S3Settings
from tidegate.spark.stream.batch import OutputMode, StreamBatch
from tidegate.spark.stream.query import QUERY_ID
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.write_options import WriteOptions
from tidegate.transaction_handle import TransactionHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at one batch: the same in the messages of all its tasks."""

    app_id: str
    transaction_id: str
    folder: str
    read_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFiles(WriterCommitMessage):
    """What one successful task wrote, and its session's `task_settings`."""

    attempt: Attempt
    files: DataFiles
    settings: Mapping[str, str]


@without_frames
class TidegateStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of one query into one table."""

    def __init__(
        self,
        *,
        service: Service,
        head: TableVersion,
        layout: TableLayout,
        columns: BatchColumns,
        storage: S3Settings,
        transaction_id: str,
        mode: OutputMode,
        schema: SparkStruct,
        given: Mapping[str, str],
        options: WriteOptions,
    ) -> None:
        """`head` is the table as it is found now, `layout` as the transaction leaves it, `schema`
        the stream's."""
        self._service = service
        self._head = head
        self._layout = layout
        self._columns = columns
        self._storage = storage
        self._mode = mode
        self._schema = schema
        self._given = given
        self._options = options
        self._transaction_id = transaction_id
        self._folder_name = new_folder(transaction_id)

    def _store(self) -> ArrowStore:
        return ArrowStore(self._layout.location, self._storage)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchFiles:
        task = TaskContext.get()
        app_id = None if task is None else task.getLocalProperty(QUERY_ID)
        if not app_id:
            raise UnsupportedSession(
                "Spark names no streaming query to this task; expected one of micro-batches"
            )
        attempt = Attempt(
            app_id=app_id,
            transaction_id=self._transaction_id,
            folder=self._folder_name,
            read_version=self._head.version,
        )
        files = write_task(
            iterator,
            columns=self._columns,
            layout=self._layout,
            folder=self._folder_name,
            store=self._store(),
            options=self._options.files,
        )
        return BatchFiles(attempt=attempt, files=files, settings=task_settings())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Propose the files of the tasks that succeeded, unless the batch has landed before."""
        written = [message for message in messages if isinstance(message, BatchFiles)]
        if not written:
            return
        attempt = written[0].attempt
        files = DataFiles(
            adds=tuple(add for message in written for add in message.files.adds),
            rows=sum(message.files.rows for message in written),
        )
        folder = TransactionFolder(self._layout, attempt.folder, self._store())
        folder.delete_all_but(files.adds)
        batch = StreamBatch(app_id=attempt.app_id, number=batchId, mode=self._mode)
        with self._service.connect() as lake:
            transaction = self._begun(lake.table(self._head.id), attempt)
            if not batch.has_landed(transaction):
                removed = batch.replaced(transaction)
                options = self._with_session(written[0].settings)
                change_schema(transaction, self._schema, options)
                batch.commit(transaction, files, removed=removed, options=options)
        if is_lost(transaction):
            folder.delete()

    def _with_session(self, settings: Mapping[str, str]) -> WriteOptions:
        """The options, with what the session says of those that were not given."""
        return WriteOptions.parse_for_stream(
            with_session(self._given, settings.get, is_batch=True),
            replaces_all=self._mode is OutputMode.COMPLETE,
        )

    def _begun(self, table: TableHandle, attempt: Attempt) -> TransactionHandle:
        """At the version that the tasks' files were written for."""
        known = self._head.version == attempt.read_version
        head = self._head if known else table.as_of(attempt.read_version)
        return TransactionHandle(table, head=head, transaction_id=attempt.transaction_id)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called also where `commit` failed, and nobody knows here how: so the service is told
        that the transaction shall never land, and only if it says so are its files deleted. Where
        no task has succeeded, each has deleted what it wrote."""
        attempts = {m.attempt for m in messages if isinstance(m, BatchFiles)}
        with self._service.connect() as lake:
            for attempt in attempts:
                _abort(lake.table(self._head.id), attempt, self._layout, self._store())


def _abort(table: TableHandle, attempt: Attempt, layout: TableLayout, store: ArrowStore) -> None:
    try:
        table.abort_transaction(attempt.transaction_id)
    except TransactionCommitted:
        return
    TransactionFolder(layout, attempt.folder, store).delete()
