"""A table as what `foreachBatch` calls: each batch written by Spark's own Parquet writer."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.active import check_none_active
from tidegate.handle import TableHandle
from tidegate.spark.application import table_of
from tidegate.spark.columns.conform import conform
from tidegate.spark.columns.schema_change import change_schema
from tidegate.spark.data_files.staging import private_folder
from tidegate.spark.errors import SchemaMismatch, UnsupportedSession
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.session_settings import settings_of, with_session
from tidegate.spark.stream.batch import OPERATION, OutputMode, StreamBatch
from tidegate.spark.stream.calls import check_first, note_done
from tidegate.spark.stream.query import RunningQuery
from tidegate.spark.tables.plans import plan_reads_table
from tidegate.spark.tables.schemas import is_untyped
from tidegate.spark.write.beginning import begun_for
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.rows import write_conformed
from tidegate.spark.write.write import check_removable
from tidegate.spark.write_options import OptionValue, WriteOptions, parse_app_id
from tidegate.transaction_handle import TransactionHandle


class Sink:
    """Writes each batch of a streaming query into a table, once.

    `stream.writeStream.foreachBatch(table.sink(stream)).option("checkpointLocation", ...)`
    """

    def __init__(
        self,
        table: TableHandle,
        *,
        mode: OutputMode,
        app_id: str | None,
        options: Mapping[str, OptionValue],
    ) -> None:
        """`app_id` takes the place of the query's id, which Spark tells the batches' jobs.
        Raises `InvalidRequest` for an empty one and for options that streams do not have."""
        self._table = table
        self._mode = mode
        self._app_id = None if app_id is None else parse_app_id("app_id", app_id)
        self._given = dict(options)
        self._parsed(options)

    def check(self, df: DataFrame) -> None:
        """Raise what a batch of the DataFrame would meet whatever its rows are: `SchemaMismatch`,
        `UnsupportedTable`, or `InvalidProposal` for replacing rows of an append-only table. No
        Spark job runs."""
        self._prepare(TransactionHandle(table_of(self._table, df.sparkSession)), df)

    def _options(self, spark: SparkSession) -> WriteOptions:
        return self._parsed(with_session(self._given, settings_of(spark), is_batch=True))

    def _parsed(self, options: Mapping[str, OptionValue]) -> WriteOptions:
        replaces_all = self._mode is OutputMode.COMPLETE
        return WriteOptions.parse_for_stream(options, replaces_all=replaces_all)

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one batch in one commit, or compute it for nothing where it has landed before.

        Raises what `Table.append` and, in complete mode, `Table.overwrite` raise,
        `UnsupportedSession` for another output mode than the query's and for a second call in one
        run of the batch, and `CheckpointBehind` where the table has recorded a later batch. The
        query fails of it; started again, it repeats the batch.
        """
        check_none_active(self._table.id)
        query = RunningQuery.of(df.sparkSession)
        batch = StreamBatch(app_id=self._app_id or _id_of(query), number=batch_id, mode=self._mode)
        self._check_mode(query)
        check_first(self._table, batch, query)
        self._write(df, batch, query)
        note_done(self._table, batch, query)

    def _check_mode(self, query: RunningQuery | None) -> None:
        """Raise `UnsupportedSession` where the query's batches are of another kind than the sink
        takes them for: appended, the results of a complete or updated aggregation would be there
        once more with each batch."""
        if query is not None and query.mode not in (None, self._mode.value):
            raise UnsupportedSession(
                f"the query has the output mode {query.mode}, and the sink {self._mode.value}; "
                "expected the same in both",
                hint="writeStream.outputMode(...) and table.sink(output_mode=...), append or "
                "complete",
            )

    def _write(self, df: DataFrame, batch: StreamBatch, query: RunningQuery | None) -> None:
        spark = df.sparkSession
        removes = self._mode is OutputMode.COMPLETE
        transaction = begun_for(self._table, df, removes=removes)
        if batch.has_landed(transaction):
            # Spark fails a query whose batch was not computed to its end where it keeps state.
            df.write.format("noop").mode("overwrite").save()
            return
        options = self._options(spark)
        conformed = self._prepare(transaction, df)
        layout = writable_layout(transaction)
        # The batch's own plan begins at the rows of the query's. What the query itself is joined
        # with is the same in each batch, so that the second one, begun at the version of that,
        # would conflict with the first.
        if query is not None and query.plan is not None and plan_reads_table(query.plan, layout):
            transaction.read_whole_table()
        with (
            Passes(spark, operation=OPERATION, table=layout.name) as passes,
            private_folder(transaction, layout, spark) as folder,
        ):
            removed = batch.replaced(transaction)
            passes.writes_rows(f"rows of batch {batch.number}")
            files = write_conformed(transaction, folder, df, conformed, options.files)
            batch.commit(
                transaction, files, removed=removed, options=options, metrics=passes.metrics()
            )

    def _prepare(self, transaction: TransactionHandle, df: DataFrame) -> DataFrame:
        check_typed(df.schema)
        change_schema(transaction, df.schema, self._options(df.sparkSession))
        layout = writable_layout(transaction)
        if self._mode is OutputMode.COMPLETE:
            check_removable(layout)
        return conform(df, layout)


def check_typed(schema: StructType) -> None:
    """Raise `SchemaMismatch` for a column without a type, which Delta's sink refuses, too: a
    stream's columns are the same in every batch, so it would be null for ever."""
    for field in schema.fields:
        if is_untyped(field.dataType):
            raise SchemaMismatch(
                f"the stream's column {field.name} is, or holds, a NullType (VOID)",
                hint="cast it to a type",
                error_class="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
            )


def _id_of(query: RunningQuery | None) -> str:
    if query is None:
        raise UnsupportedSession(
            "this is no batch of a streaming query: Spark names no query in this thread",
            hint="call the sink by foreachBatch alone, or give table.sink an app_id",
        )
    return query.id
