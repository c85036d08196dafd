"""The rows of one data file as Arrow batches, which is how the tasks of the data source read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tidegate.spark.changes.feed import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from tidegate.spark.data_files.calendars import ONE_CALENDAR_DAYS, ONE_CALENDAR_INSTANTS
from tidegate.spark.deletion_vectors.files import read_vector
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.read.field_ids import arrow_id
from tidegate.spark.source.early_values import EarlyValues
from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.zones import task_zone, zone_of
from tidegate_protocol.log.actions import DeletionVector
from tidegate_protocol.schema.data_types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    char_length,
)
from tidegate_protocol.schema.partition_values import is_local, parse_value

_BATCH_ROWS = 1 << 16
FEED_NAMES = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a feed has beside each row of a file; `timestamp` in ms. Without a type of change each
    row has its own."""

    change_type: str | None
    version: int
    timestamp: int

    def values(self) -> dict[str, str | int | datetime | None]:
        """By the feed's columns."""
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.timestamp)
        return dict(zip(FEED_NAMES, (self.change_type, self.version, moment), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """The rows of a file: its path in Arrow's file system, and the log's texts of its partition
    values.

    Those in `deletion_vector` are gone, and where there is a vector `among` only those in it count.
    `change` says what a feed has beside each row.
    """

    path: str
    partition_values: Mapping[str, str | None]
    deletion_vector: DeletionVector | None = None
    among: DeletionVector | None = None
    change: Change | None = None

    def batches(
        self, layout: TableLayout, store: ArrowStore, target: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of `target`, which are the table's. Raises `StorageError`,
        `UnsupportedTable` for a deletion vector that is none, and for rows with days or instants
        that Spark reads otherwise, and what `zone_of` does."""
        gone = _positions(self.deletion_vector, store) or BitMap64()
        among = _positions(self.among, store)
        columns = _Columns(layout, self.partition_values, self.change)
        with pq.ParquetFile(
            self.path, coerce_int96_timestamp_unit="us", filesystem=store.file_system
        ) as file:
            inside = columns.found_in(file.schema_arrow)
            wanted = [name for name in file.schema_arrow.names if name in inside.values()]
            early = EarlyValues(file)
            has_early = early.has(wanted)
            start = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
                arrays = [columns.array(field, batch, inside) for field in target]
                rows = pa.RecordBatch.from_arrays(arrays, schema=target)
                kept = None
                if among is not None:
                    kept = _are_in(among, start, rows.num_rows, gone)
                elif gone:
                    kept = pc.invert(_are_in(gone, start, rows.num_rows))
                if has_early:
                    self._check(early, batch if kept is None else batch.filter(kept), layout.name)
                yield rows if kept is None else rows.filter(kept)
                start += batch.num_rows

    def _check(self, early: EarlyValues, batch: pa.RecordBatch, table: str) -> None:
        column = early.column_in(batch)
        if column is not None:
            raise UnsupportedTable(
                f"the file {self.path} of table {table} has days before "
                f"{ONE_CALENDAR_DAYS}, or instants before {ONE_CALENDAR_INSTANTS:%Y-%m-%d}, by the "
                f'Julian calendar in its column {column}, which format("tidegate") does not read',
                hint="read the table by Table.read, Table.changes or SQL, where Spark converts "
                "them",
            )


def _positions(vector: DeletionVector | None, store: ArrowStore) -> BitMap64 | None:
    return None if vector is None else read_vector(vector, store)


def _are_in(
    positions: BitMap64, start: int, count: int, without: BitMap64 | None = None
) -> pa.BooleanArray:
    """For each of so many rows, the first at `start`, whether its position is in the set."""
    found = positions & BitMap64(range(start, start + count))
    if without is not None:
        found -= without
    mask = np.zeros(count, dtype=np.bool_)
    mask[np.frombuffer(found.to_array(), dtype=np.uint64).astype(np.int64) - start] = True
    return pa.array(mask)


class _Columns:
    """The table's columns as a file has them: by physical names in any case, or by ids."""

    def __init__(
        self, layout: TableLayout, values: Mapping[str, str | None], change: Change | None
    ) -> None:
        self._layout = layout
        self._values = values
        self._change = change
        self._by_id = layout.properties.column_mapping_mode == "id"

    def found_in(self, schema: pa.Schema) -> dict[str, str]:
        """The file's names of the table's columns; those that it lacks are left out."""
        found = (
            (field.name, self._find(field, schema)) for field in self._layout.data_schema.fields
        )
        names = {name: column.name for name, column in found if column is not None}
        if self._change is not None and self._change.change_type is None:
            names[CHANGE_TYPE] = CHANGE_TYPE
        return names

    def array(self, target: pa.Field, batch: pa.RecordBatch, inside: Mapping[str, str]) -> pa.Array:
        """A column of the table: from the file, from the log, or null where the file lacks it."""
        if self._change is not None and target.name in FEED_NAMES:
            if target.name in inside:
                return batch.column(inside[target.name]).cast(target.type)
            value = self._change.values()[target.name]
            return pa.repeat(pa.scalar(value, target.type), batch.num_rows)
        field = self._layout.schema.field(target.name)
        if field is None:
            raise AssertionError(f"{target.name} is no column of {self._layout.name}")
        found = self._of_table(field, target, batch, inside)
        # Spark pads values of CHAR in batch, and not in streams.
        length = char_length(field)
        return found if length is None else pc.utf8_rpad(found, length)

    def _of_table(
        self, field: Field, target: pa.Field, batch: pa.RecordBatch, inside: Mapping[str, str]
    ) -> pa.Array:
        if field.name in self._layout.partition_columns:
            text = self._values[self._layout.physical_name(field)]
            zone = zone_of(task_zone()) if is_local(field.type, text) else UTC
            own = pa.scalar(parse_value(field.type, text, zone=zone), target.type)
            return pa.repeat(own, batch.num_rows)
        name = inside.get(field.name)
        if name is None:
            return pa.nulls(batch.num_rows, target.type)
        array = batch.column(name)
        named = self._named(array.type, field.type)
        return (array if named == array.type else array.view(named)).cast(target.type)

    def _find(self, field: Field, among: Iterable[pa.Field]) -> pa.Field | None:
        if self._by_id:
            wanted = field.metadata.get(COLUMN_ID)
            return next((other for other in among if arrow_id(other) == wanted), None)
        name = self._layout.physical_name(field).lower()
        return next((other for other in among if other.name.lower() == name), None)

    def _named(self, arrow: pa.DataType, data_type: DataType) -> pa.DataType:
        """The type that the file has, with the table's names inside of it."""
        match data_type:
            case StructType() if pa.types.is_struct(arrow):
                own = list(arrow)
                names = {
                    found.name: field
                    for field in data_type.fields
                    if (found := self._find(field, own)) is not None
                }
                return pa.struct(
                    [
                        other.with_name(names[other.name].name).with_type(
                            self._named(other.type, names[other.name].type)
                        )
                        if other.name in names
                        # Of no name that the table has: it is left out by the cast.
                        else other.with_name(f"\0{other.name}")
                        for other in own
                    ]
                )
            case ArrayType(element=element) if pa.types.is_list(arrow):
                return pa.list_(arrow.value_field.with_type(self._named(arrow.value_type, element)))
            case MapType(key=key, value=value) if pa.types.is_map(arrow):
                return pa.map_(
                    arrow.key_field.with_type(self._named(arrow.key_type, key)),
                    arrow.item_field.with_type(self._named(arrow.item_type, value)),
                )
        return arrow
