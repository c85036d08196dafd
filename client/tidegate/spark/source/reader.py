"""Reading through the data source: the service names the files, tasks turn them into batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType as SparkStruct

from tidegate.errors import InvalidRequest
from tidegate.models import Scan
from tidegate.spark.source.options import SourceOptions
from tidegate.spark.source.plain_errors import without_frames
from tidegate.spark.source.pushdown import conjunction
from tidegate.spark.source.read_tasks import read_files, rows_of, tasks_of
from tidegate.spark.storage.arrow import ArrowStore, S3Settings
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import check_same_anywhere, otherwise
from tidegate.spark.tables.refusals import check_readable
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.statistics import FileStatistics


@without_frames
class TidegateReader(DataSourceReader):
    """One read of one version of a table. Spark sends copies of it to the tasks."""

    def __init__(
        self,
        options: SourceOptions,
        schema: SparkStruct,
        *,
        storage: S3Settings,
        version: int,
    ) -> None:
        self._options = options
        self._storage = storage
        self._schema = schema
        self._version = version
        self._pushed: str | None = None

    @property
    def pushFilters(self) -> Callable[[Sequence[Filter]], Iterable[Filter]]:
        return _PushFilters(self)

    def push(self, filters: Sequence[Filter]) -> Iterable[Filter]:
        """Prune by the filters, and leave them to Spark, too: files are not rows."""
        self._pushed = conjunction(filters)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Raises `InvalidRequest` for an option `where` that does not decide about whole files."""
        options = self._options
        texts = [f"({text})" for text in (options.where, self._pushed) if text is not None]
        with options.service.connect() as lake:
            table = lake.table(options.table)
            scan = table.scan(" AND ".join(texts) or None, version=self._version)
        layout = TableLayout.of(name=table.name, location=table.location, metadata=scan.metadata)
        check_readable(layout, scan.protocol)
        # Says now what no worker could do.
        ArrowStore(layout.location, self._storage)
        if options.where is not None:
            check_same_anywhere(options.where, layout)
            _check_decided(options.where, layout, scan)
        return tasks_of(layout, [rows_of(layout, file) for file in scan.files])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_files(partition, self._schema, self._storage)


class _PushFilters:
    """The method `pushFilters`, as PySpark 4.3 finds it.

    PySpark refuses a reader that overrides the method while
    `spark.sql.python.filterPushdown.enabled` is off, which is the default, instead of not calling
    it. It tells by `__func__`; so this one shows the base class's and calls the reader's own.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: TidegateReader) -> None:
        self._reader = reader

    def __call__(self, filters: Sequence[Filter]) -> Iterable[Filter]:
        return self._reader.push(filters)


def _check_decided(where: str, layout: TableLayout, scan: Scan) -> None:
    """Raise `InvalidRequest` unless the predicate is true for every row of every file: the tasks
    cannot evaluate rows by SQL text."""
    not_true = otherwise(where, layout)
    for file in scan.files:
        statistics = None if file.stats is None else FileStatistics.parse(file.stats)
        if not_true.may_match(file.partition_values, statistics):
            raise InvalidRequest(
                f"the option where ({where}) does not decide about the file {file.path} as a "
                "whole; it takes a predicate over partition columns, of other types than CHAR",
                code=Code.INVALID_PREDICATE,
                hint="filter the DataFrame by .where(...), or read with Table.read",
                definite=True,
            )
