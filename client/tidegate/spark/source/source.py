"""`format("tidegate")`: tables through PySpark's Python data source API.

    tidegate.spark.register(spark)
    df.write.format("tidegate").mode("append").save("main.air.flights")
    spark.read.format("tidegate").load("main.air.flights")
    stream.writeStream.format("tidegate").options(checkpointLocation=...).start("main.air.flights")

Options: `url` and `token` (else TIDEGATE_URL and TIDEGATE_TOKEN of the driver), for reading
`version` and `timestamp`, for reading and overwriting `where`, and for writing `readVersion` and
Delta's (`tidegate.spark.write_options`). The table says how it is partitioned: in batch, PySpark
4.3 refuses `partitionBy` for Python data sources by itself.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from uuid import uuid4

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from tidegate.handle import TableHandle
from tidegate.models import TableVersion
from tidegate.spark.application import application_id
from tidegate.spark.changes.feed import feed_schema, schema_version
from tidegate.spark.changes.span import Span, span_of
from tidegate.spark.columns.schema_change import change_schema
from tidegate.spark.data_files.arrow_columns import BatchColumns
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.source.feed_reader import TidegateFeedReader
from tidegate.spark.source.options import (
    OF_OVERWRITES,
    OF_READS,
    STREAMING_NAMES,
    SourceOptions,
)
from tidegate.spark.source.plain_errors import without_frames
from tidegate.spark.source.read_options import (
    FEED_NAMES,
    READ_NAMES,
    STREAM_NAMES,
    FeedOptions,
    StreamOptions,
    is_feed,
)
from tidegate.spark.source.reader import TidegateReader
from tidegate.spark.source.streams.reader import TidegateStreamReader
from tidegate.spark.source.streams.writer import TidegateStreamWriter
from tidegate.spark.source.writer import TidegateWriter
from tidegate.spark.storage.arrow import NO_SETTINGS, ArrowStore, S3Settings
from tidegate.spark.storage.hadoop import s3_settings
from tidegate.spark.stream.batch import OutputMode
from tidegate.spark.stream.sink import check_typed
from tidegate.spark.tables.clustering import clustering_of
from tidegate.spark.tables.layout import Reading, TableLayout
from tidegate.spark.tables.predicates import PartitionPredicate
from tidegate.spark.tables.refusals import check_rewritable, check_writable_by_arrow
from tidegate.spark.tables.schemas import as_nullable
from tidegate.spark.tables.source_plans import NAME
from tidegate.spark.write.write import check_removable
from tidegate.spark.write_options import WriteOptions
from tidegate.transaction_handle import TransactionHandle

_OF_BATCHES = ("where", "version", "timestamp", "readVersion")


@without_frames
class TidegateSource(DataSource):
    """A table behind `format("tidegate")`.

    Loading it settles which version is read, so that a DataFrame's rows stay the same however
    often it is computed.
    """

    storage: S3Settings = NO_SETTINGS
    application_id: str | None = None
    reads: tuple[str, Reading] | None = None
    """The place of the table, and what a batch reads of it, for the plan (`source_plans`)."""
    _version: int | None = None
    _span: Span | None = None

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """Asked for in batch and for streams, before it is known which it is."""
        options = self._parsed(known=READ_NAMES)
        options.check_not_for("reading", "readVersion")
        with options.service.connect() as lake:
            table = lake.table(options.table)
            if is_feed(options.chosen):
                return feed_schema(self._feed_layout(table, options))
            # The predicate that nothing can match: what is asked for is the version alone.
            scan = table.scan("false", version=options.version, timestamp=options.timestamp)
        self._version = scan.version
        layout = TableLayout.of(name=table.name, location=table.location, metadata=scan.metadata)
        is_of_now = options.version is None and options.timestamp is None
        where = options.where
        reading = Reading(version=scan.version, where=where) if is_of_now else Reading(version=None)
        self.reads = (layout.root, reading)
        return as_nullable(layout.spark_schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._parsed(known=FEED_NAMES)
        if self._version is None:
            # The plan would not say what it reads of the table, which whoever writes these rows
            # begins with.
            raise UnsupportedSession(
                f"the table's own columns are read; expected no schema, found "
                f"{schema.simpleString()}",
                hint="read without .schema(...), and select the columns",
                error_class="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
            )
        asked = FeedOptions.parse(options.chosen)
        if asked is not None:
            options.check_not_for("readChangeFeed", "where", "version", "timestamp")
            with options.service.connect() as lake:
                span = self._span or _span(lake.table(options.table), asked)
            return TidegateFeedReader(options, schema, storage=self.storage, span=span)
        return TidegateReader(options, schema, storage=self.storage, version=self._version)

    def streamReader(self, schema: StructType) -> TidegateStreamReader:
        options = self._parsed(known=STREAM_NAMES)
        options.check_not_for("streams", *_OF_BATCHES)
        chosen = StreamOptions.parse(options.chosen)
        return TidegateStreamReader(
            options, chosen, schema, storage=self.storage, version=self._version
        )

    def _feed_layout(self, table: TableHandle, options: SourceOptions) -> TableLayout:
        """The columns that a feed is read by: for a batch those of its span, which is settled
        here, and for a stream the latest."""
        if options.chosen.keys() & {"endingversion", "endingtimestamp"} or (
            options.chosen.keys() & {"startingversion", "startingtimestamp"}
            and options.chosen.get("startingversion", "").lower() != "latest"
        ):
            asked = FeedOptions.parse(options.chosen)
            if asked is not None:
                self._span = _span(table, asked)
        latest = table.as_of(table.version)
        self._version = latest.version
        found = latest if self._span is None else schema_version(table, self._span)
        return TableLayout.of(name=table.name, location=table.location, metadata=found.metadata)

    def writer(self, schema: StructType, overwrite: bool) -> TidegateWriter:
        names = WriteOptions.names(is_overwrite=overwrite)
        options = self._parsed(known=names, deltas={**OF_READS, **OF_OVERWRITES})
        options.check_not_for("writing", "version", "timestamp")
        if not overwrite:
            options.check_not_for("appending", "where")
        chosen = WriteOptions.parse(
            options.chosen, is_overwrite=overwrite, replace_where=options.where
        )
        if overwrite:
            chosen.check_changes_data(instead="Table.overwrite with transaction=")
        transaction_id = str(uuid4())
        head, layout = self._writable(options, schema, chosen, transaction_id)
        where = None if options.where is None else PartitionPredicate.parse(options.where, layout)
        if overwrite:
            chosen.check_one_says_what(options.where)
            check_removable(layout)
        return TidegateWriter(
            service=options.service,
            head=head,
            layout=layout,
            columns=BatchColumns(schema, layout),
            storage=self.storage,
            transaction_id=transaction_id,
            overwrite=overwrite,
            is_of_own_rows=options.read_version is not None,
            where=where,
            schema=schema,
            given=options.chosen,
            options=chosen,
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> TidegateStreamWriter:
        """Called for each batch, `overwrite` in complete mode; so the first one's is where a stream
        that does not fit is refused, before any row of it is computed."""
        names = WriteOptions.names_for_stream(replaces_all=overwrite)
        options = self._parsed(passed_over=STREAMING_NAMES, known=names)
        options.check_not_for("streams", *_OF_BATCHES)
        chosen = WriteOptions.parse_for_stream(options.chosen, replaces_all=overwrite)
        check_typed(schema)
        transaction_id = str(uuid4())
        head, layout = self._writable(options, schema, chosen, transaction_id)
        if overwrite:
            check_removable(layout)
        return TidegateStreamWriter(
            service=options.service,
            head=head,
            layout=layout,
            columns=BatchColumns(schema, layout),
            storage=self.storage,
            transaction_id=transaction_id,
            mode=OutputMode.COMPLETE if overwrite else OutputMode.APPEND,
            schema=schema,
            given=options.chosen,
            options=chosen,
        )

    def _writable(
        self, options: SourceOptions, schema: StructType, chosen: WriteOptions, transaction_id: str
    ) -> tuple[TableVersion, TableLayout]:
        """The table as the transaction begins, and its layout as that will leave it, if the write
        may be, before any row is computed."""
        with options.service.connect() as lake:
            table = lake.table(options.table)
            began = options.read_version
            head = table.head() if began is None else table.as_of(began)
            planned = TransactionHandle(table, head=head, transaction_id=transaction_id)
            change_schema(planned, schema, chosen)
            clustering = clustering_of(table, head.protocol)
        layout = TableLayout.of(name=head.name, location=head.location, metadata=planned.metadata)
        layout = replace(layout, clustering=clustering)
        check_writable_by_arrow(layout, head.protocol)
        if not chosen.files.data_change:
            check_rewritable(layout)
        ArrowStore(layout.location, self.storage).check()
        return head, layout

    def _parsed(
        self,
        *,
        passed_over: Iterable[str] = (),
        known: Sequence[str] = (),
        deltas: Mapping[str, str] = OF_READS,
    ) -> SourceOptions:
        return SourceOptions.parse(
            self.options,
            application_id=self.application_id,
            passed_over=passed_over,
            known=known,
            deltas=deltas,
        )


def _span(table: TableHandle, asked: FeedOptions) -> Span:
    return span_of(
        table,
        from_version=asked.from_version,
        to_version=asked.to_version,
        from_timestamp=asked.from_timestamp,
        to_timestamp=asked.to_timestamp,
    )


def register(spark: SparkSession) -> None:
    """Make `format("tidegate")` known to a session, with the `fs.s3a.*` settings that the session
    has now; again, it takes those that it has by then.

    The settings, credentials among them, go to the Python workers, which have no Hadoop. In local
    mode these workers run the driver's Python unless `PYSPARK_PYTHON` names another one; a
    cluster's run what Spark is configured with, and need this package there.
    """
    # A class of its own is what PySpark sends to the workers whole, and not by its name.
    known = {"storage": s3_settings(spark), "application_id": application_id(spark)}
    source = type("RegisteredTidegateSource", (TidegateSource,), known)
    try:
        with _drivers_python(spark):
            spark.dataSource.register(source)
    except PySparkException as error:
        # Sessions of one Spark may share what is registered.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


_registering = Lock()


@contextmanager
def _drivers_python(spark: SparkSession) -> Iterator[None]:
    """What is sent to Python workers meanwhile runs in the driver's own Python in local mode.

    By default PySpark takes the first `python3` of the PATH, which is another one where the driver
    was started as `.venv/bin/python`.
    """
    context: SparkContext | None = getattr(spark, "sparkContext", None)
    is_local = context is not None and (context.master or "").startswith("local")
    if context is None or not is_local or "PYSPARK_PYTHON" in os.environ or not sys.executable:
        # A session of Spark Connect has its Python where its server is.
        yield
        return
    with _registering:
        usual = context.pythonExec
        context.pythonExec = sys.executable
        try:
            yield
        finally:
            context.pythonExec = usual
