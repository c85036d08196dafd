"""Arrow batches into the data files of one task, each written once to its final place."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.spark.data_files.arrow_columns import arrow_schema
from tidegate.spark.data_files.arrow_floats import FloatStatistics, columns_with_statistics
from tidegate.spark.data_files.footers import FooterColumns, statistics_of
from tidegate.spark.errors import InvalidRows, StorageError
from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.write_options import AS_USUAL, FileOptions
from tidegate_protocol.log.actions import Add, PartitionValues
from tidegate_protocol.log.paths import encode
from tidegate_protocol.schema.data_types import DataType
from tidegate_protocol.schema.partition_values import partition_path, serialize_value
from tidegate_protocol.schema.values import InvalidValue

# What is held in memory before it is written: with it comes the size of the row groups.
_ROWS_AT_ONCE = 1 << 20
_BYTES_AT_ONCE = 128 << 20
_OPEN_FILES = 64
# What Arrow calls the codecs; its LZ4 is Parquet's LZ4_RAW, which is what Spark's `lz4` should be.
_CODECS = {
    None: "snappy",
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
_SUFFIXES = {
    codec: "" if name == "none" else f".{'gz' if name == 'gzip' else name}"
    for codec, name in _CODECS.items()
}

Key = tuple[str | None, ...]
"""A partition: the log's texts of its values, in the order of the partition columns."""


class TaskFiles:
    """The files of one attempt of a task. Their names are random, so that no two attempts ever
    write the same file; what an attempt wrote counts only if its result reaches the driver."""

    def __init__(
        self,
        layout: TableLayout,
        folder: str,
        store: ArrowStore,
        *,
        task: int,
        options: FileOptions = AS_USUAL,
    ) -> None:
        """`store` is that of the layout's location."""
        self._options = options
        self._layout = layout.physical
        self._names = [field.name for field in layout.schema.fields]
        self._store = store
        self._folder = folder
        self._task = task
        self._columns = FooterColumns.of(layout)
        self._open: OrderedDict[Key, _File] = OrderedDict()
        self._paths: list[str] = []
        self._adds: list[Add] = []

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[Add, ...]:
        """Write conformed batches and return the files. An attempt that fails takes what it
        wrote with it. Raises `InvalidRows` and `StorageError`."""
        try:
            with self._store.translated():
                for table in _gathered(batches):
                    for texts, rows in self._split(self._physical(table)):
                        self._write(texts, rows)
                while self._open:
                    self._close_oldest()
        except BaseException:
            self._discard()
            raise
        return tuple(self._adds)

    def _physical(self, table: pa.Table) -> pa.Table:
        """The rows under the names that files have for the columns."""
        schema = arrow_schema(self._layout.schema)
        columns = [
            pa.chunked_array([chunk.view(field.type) for chunk in table[name].chunks], field.type)
            if pa.types.is_nested(field.type)
            else table[name]
            for name, field in zip(self._names, schema, strict=True)
        ]
        return pa.table(columns, schema=schema)

    def _split(self, table: pa.Table) -> Iterator[tuple[Key, pa.Table]]:
        """The rows of each partition, without the partition columns."""
        layout = self._layout
        rows = table.select([field.name for field in layout.data_schema.fields])
        if not layout.partition_columns:
            yield (), rows
            return
        codes = np.zeros(table.num_rows, dtype=np.int64)
        texts: list[list[str | None]] = []
        for column in layout.partition_columns:
            field = layout.schema.field(column)
            if field is None:
                raise AssertionError(f"{column} is no column of {layout.name}")
            encoded = table[column].combine_chunks().dictionary_encode(null_encoding="encode")
            texts.append(_texts(column, field.type, encoded.dictionary))
            codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        found, starts = np.unique(codes[order], return_index=True)
        sorted_rows = rows.take(pa.array(order))
        ends = [*starts[1:].tolist(), table.num_rows]
        for code, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            yield _texts_of(code, texts), sorted_rows.slice(start, end - start)

    def _write(self, texts: Key, rows: pa.Table) -> None:
        limit = self._options.max_records
        while rows.num_rows:
            file = self._file(texts)
            room = rows.num_rows if limit is None else limit - file.rows
            file.write(rows.slice(0, room))
            rows = rows.slice(room)
            if file.rows == limit:
                self._adds.append(self._open.pop(texts).close(self._columns))

    def _file(self, texts: Key) -> "_File":
        file = self._open.pop(texts, None)
        if file is None:
            if len(self._open) == _OPEN_FILES:
                self._close_oldest()
            file = self._new_file(texts)
        self._open[texts] = file
        return file

    def _new_file(self, texts: Key) -> "_File":
        columns = self._layout.partition_columns
        values = dict(zip(columns, texts, strict=True))
        name = f"part-{self._task:05d}-{uuid4()}{_SUFFIXES[self._options.codec]}.parquet"
        relative = "/".join(filter(None, (self._folder, partition_path(values, columns), name)))
        self._store.create_folder(self._layout.path(relative))
        self._paths.append(relative)
        return _File(relative, values, self._layout, self._store, self._options)

    def _close_oldest(self) -> None:
        _, file = self._open.popitem(last=False)
        self._adds.append(file.close(self._columns))

    def _discard(self) -> None:
        for file in self._open.values():
            file.abandon()
        # A storage that refuses has refused to write, too; VACUUM finds what it kept.
        with suppress(StorageError):
            for path in self._paths:
                self._store.delete(path)


class _File:
    """A data file being written."""

    def __init__(
        self,
        relative: str,
        values: PartitionValues,
        layout: TableLayout,
        store: ArrowStore,
        options: FileOptions,
    ) -> None:
        self.rows = 0
        self._data_change = options.data_change
        self._relative = relative
        self._store = store
        self._values = values
        self._footers: list[pq.FileMetaData] = []
        self._floats = FloatStatistics(layout.data_schema)
        # All but those of floating-point numbers.
        columns = columns_with_statistics(layout.data_schema) or False
        self._writer = pq.ParquetWriter(
            layout.path(relative),
            arrow_schema(layout.data_schema),
            filesystem=store.file_system,
            compression=_CODECS[options.codec],
            write_statistics=columns,
            # Spark's reader asks a dictionary whether it has 0.0, and finds no -0.0.
            use_dictionary=columns,
            metadata_collector=self._footers,
        )

    def write(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        self._floats.count(rows)
        self._writer.write_table(rows)

    def close(self, columns: FooterColumns) -> Add:
        self._writer.close()
        (footer,) = self._footers
        file = self._store.written(self._relative)
        return Add(
            path=encode(self._relative),
            partition_values=self._values,
            size=file.size,
            modification_time=file.modification_time,
            data_change=self._data_change,
            stats=statistics_of(footer, columns, known=self._floats.found()),
        )

    def abandon(self) -> None:
        """Close it, however far it got."""
        with suppress(pa.ArrowException, OSError):
            self._writer.close()


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches put together to tables of a size worth a row group."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
            rows = size = 0
    if held:
        yield pa.Table.from_batches(held)


def _texts(column: str, data_type: DataType, values: pa.Array) -> list[str | None]:
    """The log's texts of partition values. Raises `InvalidRows` for one that has none."""
    try:
        return [serialize_value(data_type, value) for value in values.to_pylist()]
    except (InvalidValue, ValueError, OverflowError) as error:
        raise InvalidRows(f"partition column {column}: {error}") from None


def _texts_of(code: int, texts: Sequence[list[str | None]]) -> Key:
    """The texts of a combination of values, from its number in the mixed radix of `_split`."""
    found: list[str | None] = []
    for column in reversed(texts):
        code, digit = divmod(code, len(column))
        found.append(column[digit])
    return tuple(reversed(found))
