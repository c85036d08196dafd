"""Streams from tables through the data source: `readStream.format("tidegate")`.

Spark keeps one reader in a process of the driver, which says how far there is something to read and
which files lie between two offsets; copies of it read the files in the tasks.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType as SparkStruct

from tidegate.handle import TableHandle
from tidegate.spark.changes.feed import feed_schema
from tidegate.spark.changes.span import first_version_at
from tidegate.spark.errors import StreamStopped
from tidegate.spark.source.options import SourceOptions
from tidegate.spark.source.plain_errors import without_frames
from tidegate.spark.source.read_options import MAX_FILES, StreamOptions
from tidegate.spark.source.read_tasks import SizedRows, read_files, tasks_of
from tidegate.spark.source.streams.files import StreamFiles
from tidegate.spark.source.streams.offset import Offset, OffsetJson
from tidegate.spark.storage.arrow import ArrowStore, S3Settings
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.refusals import check_readable
from tidegate.spark.tables.schemas import as_nullable


@without_frames
class TidegateStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One run of one stream from a table."""

    def __init__(
        self,
        options: SourceOptions,
        chosen: StreamOptions,
        schema: SparkStruct,
        *,
        storage: S3Settings,
        version: int | None,
    ) -> None:
        """`version` is the one whose columns `schema` has, the latest where it is not known."""
        self._options = options
        self._chosen = chosen
        self._schema = schema
        self._storage = storage
        self._version = version
        self._layout: TableLayout | None = None
        self._last: int | None = None
        self._checked = False
        self._idle: tuple[Offset, Offset] | None = None

    def initialOffset(self) -> OffsetJson:
        """The table as it is now, or where the options have the stream begin. Raises
        `VersionNotFound` and `ChangesUnavailable`."""
        chosen = self._chosen
        with self._options.service.connect() as lake:
            table = lake.table(self._options.table)
            if chosen.from_version is not None:
                version = table.as_of(chosen.from_version).version
            elif chosen.from_timestamp is not None:
                version = first_version_at(table, chosen.from_timestamp)
            else:
                version = table.version + (1 if chosen.starts_behind else 0)
        begins = (chosen.from_version, chosen.from_timestamp) == (None, None)
        is_snapshot = begins and not chosen.starts_behind
        return Offset(table_id=table.id, version=version, is_snapshot=is_snapshot).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        chosen = self._chosen
        if chosen.max_files is None and chosen.max_bytes is not None:
            return ReadMaxBytes(chosen.max_bytes)
        return ReadMaxFiles(chosen.max_files or MAX_FILES)

    def prepareForTriggerAvailableNow(self) -> None:
        """End with the version that is the latest now."""
        with self._options.service.connect() as lake:
            self._last = lake.table(self._options.table).version

    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:
        """As far as one batch goes; `start` where there is nothing to read. Raises
        `StreamStopped`."""
        with self._options.service.connect() as lake:
            table = lake.table(self._options.table)
            begin = Offset.parse(start, table_id=table.id)
            last = table.version if self._last is None else self._last
            files = self._files(table, begin, last)
            place = begin
            if self._idle is not None and self._idle[0] == begin:
                place = self._idle[1]
            end = self._end(files, place, last, is_limited=not isinstance(limit, ReadAllAvailable))
        if end is not None:
            return end.to_json()
        if not place.is_snapshot and last >= place.version:
            # So that commits without rows are not read again with every trigger.
            self._idle = (begin, Offset(table_id=table.id, version=last + 1))
        return start

    def partitions(self, start: OffsetJson, end: OffsetJson) -> list[InputPartition]:
        """The files between two offsets. Raises `StreamStopped`."""
        with self._options.service.connect() as lake:
            table = lake.table(self._options.table)
            begin = Offset.parse(start, table_id=table.id)
            target = Offset.parse(end, table_id=table.id)
            if begin == target:
                return []
            last = target.version if target.index >= 0 else target.version - 1
            files = self._files(table, begin, last)
            found: list[SizedRows] = []
            for offset, step in files.steps(begin, last=last):
                found += step
                if offset == target:
                    break
            layout = self._layout_of(table)
        # Says now what no worker could do.
        ArrowStore(layout.location, self._storage)
        return tasks_of(layout, found)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_files(partition, self._schema, self._storage)

    def _end(
        self, files: StreamFiles, place: Offset, last: int, *, is_limited: bool
    ) -> Offset | None:
        """Behind the files of one batch, at least one step; None where there is none."""
        max_files, max_bytes = self._chosen.max_files, self._chosen.max_bytes
        if max_files is None and max_bytes is None:
            max_files = MAX_FILES
        end = None
        count = size = 0
        for offset, step in files.steps(place, last=last):
            count += len(step)
            size += sum(own for _, own in step)
            is_more = (max_files is not None and count > max_files) or (
                max_bytes is not None and size > max_bytes
            )
            if end is not None and is_limited and is_more:
                break
            end = offset
        return end

    def _files(self, table: TableHandle, begin: Offset, last: int) -> StreamFiles:
        files = StreamFiles(table, self._layout_of(table), self._chosen)
        if not self._checked:
            # Of the commits from here on, each is checked as it is read.
            files.check_begin(min(begin.version, last))
            self._checked = True
        return files

    def _layout_of(self, table: TableHandle) -> TableLayout:
        """The table with the stream's columns. Raises `StreamStopped` where it has others."""
        if self._layout is None:
            version = table.version if self._version is None else self._version
            found = table.as_of(version)
            layout = TableLayout.of(
                name=table.name, location=table.location, metadata=found.metadata
            )
            check_readable(layout, found.protocol)
            columns = as_nullable(layout.spark_schema)
            expected = feed_schema(layout) if self._chosen.is_feed else columns
            if expected != as_nullable(self._schema):
                raise StreamStopped(
                    "The streaming query's schema "
                    f"does not match the current table schema. Query schema: "
                    f"{self._schema.simpleString()}. Current table schema: "
                    f"{expected.simpleString()}. Please create a new streaming DataFrame.",
                    error_class="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
                )
            self._layout = layout
        return self._layout
