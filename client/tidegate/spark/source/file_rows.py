"""The rows of one data file as Arrow batches, which is how the tasks of the data source read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tidegate.spark.deletion_vectors.files import read_vector
from tidegate.spark.read.field_ids import arrow_id
from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import DeletionVector
from tidegate_protocol.schema.data_types import (
    COLUMN_ID,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
)
from tidegate_protocol.schema.partition_values import parse_value

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """The rows of a file: its path in Arrow's file system, the log's texts of its partition values,
    and which of its rows are gone."""

    path: str
    partition_values: Mapping[str, str | None]
    deletion_vector: DeletionVector | None = None

    def batches(
        self, layout: TableLayout, store: ArrowStore, target: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of `target`, which are the table's. Raises `StorageError`, and
        `UnsupportedTable` for a deletion vector that is none."""
        vector = self.deletion_vector
        gone = BitMap64() if vector is None else read_vector(vector, store)
        columns = _Columns(layout, self.partition_values)
        with pq.ParquetFile(
            self.path, coerce_int96_timestamp_unit="us", filesystem=store.file_system
        ) as file:
            inside = columns.found_in(file.schema_arrow)
            wanted = [name for name in file.schema_arrow.names if name in inside.values()]
            start = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
                arrays = [columns.array(field, batch, inside) for field in target]
                rows = pa.RecordBatch.from_arrays(arrays, schema=target)
                yield _kept(rows, gone, start) if gone else rows
                start += batch.num_rows


def _kept(rows: pa.RecordBatch, gone: BitMap64, start: int) -> pa.RecordBatch:
    """The rows but those that are gone; the first of them has the position `start`."""
    end = start + rows.num_rows
    among = gone & BitMap64(range(start, end))
    if not among:
        return rows
    kept = np.ones(rows.num_rows, dtype=np.bool_)
    kept[np.frombuffer(among.to_array(), dtype=np.uint64).astype(np.int64) - start] = False
    return rows.filter(pa.array(kept))


class _Columns:
    """The table's columns as a file has them: by physical names in any case, or by ids."""

    def __init__(self, layout: TableLayout, values: Mapping[str, str | None]) -> None:
        self._layout = layout
        self._values = values
        self._by_id = layout.properties.column_mapping_mode == "id"

    def found_in(self, schema: pa.Schema) -> dict[str, str]:
        """The file's names of the table's columns; those that it lacks are left out."""
        found = (
            (field.name, self._find(field, schema)) for field in self._layout.data_schema.fields
        )
        return {name: column.name for name, column in found if column is not None}

    def array(self, target: pa.Field, batch: pa.RecordBatch, inside: Mapping[str, str]) -> pa.Array:
        """A column of the table: from the file, from the log, or null where the file lacks it."""
        field = self._layout.schema.field(target.name)
        if field is None:
            raise AssertionError(f"{target.name} is no column of {self._layout.name}")
        if field.name in self._layout.partition_columns:
            value = parse_value(field.type, self._values[self._layout.physical_name(field)])
            return pa.repeat(pa.scalar(value, target.type), batch.num_rows)
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
