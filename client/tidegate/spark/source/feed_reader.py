"""Reading the change data feed through the data source, in batch."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType as SparkStruct

from tidegate.spark.changes.feed import feed_of
from tidegate.spark.changes.span import Span
from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.source.options import SourceOptions
from tidegate.spark.source.plain_errors import without_frames
from tidegate.spark.source.read_tasks import changed_rows_of, read_files, tasks_of
from tidegate.spark.storage.arrow import ArrowStore, S3Settings


@without_frames
class TidegateFeedReader(DataSourceReader):
    """One read of the changes of a span of versions. Spark sends copies of it to the tasks."""

    def __init__(
        self, options: SourceOptions, schema: SparkStruct, *, storage: S3Settings, span: Span
    ) -> None:
        self._options = options
        self._schema = schema
        self._storage = storage
        self._span = span

    def partitions(self) -> list[InputPartition]:
        """Raises what `feed_of` does, and `SchemaMismatch` where the table no longer has the
        columns that were planned with."""
        with self._options.service.connect() as lake:
            feed = feed_of(lake.table(self._options.table), self._span)
        # Says now what no worker could do.
        ArrowStore(feed.layout.location, self._storage)
        if feed.schema != self._schema:
            raise SchemaMismatch(
                f"the feed of table {feed.layout.name} has the columns "
                f"{feed.schema.simpleString()}, the query was given {self._schema.simpleString()}"
            )
        return tasks_of(feed.layout, [changed_rows_of(feed.layout, file) for file in feed.files])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_files(partition, self._schema, self._storage)
