"""Days and instants of a file that Arrow reads as other ones than Spark does."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.spark.data_files.calendars import (
    ONE_CALENDAR_DAYS,
    ONE_CALENDAR_INSTANTS,
    is_julian,
)

_FIRST_DAY = (ONE_CALENDAR_DAYS - date(1970, 1, 1)).days
_FIRST_SECOND = int((ONE_CALENDAR_INSTANTS - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class EarlyValues:
    """Finds those days and instants, at any depth, that the file has by the Julian calendar and
    that differ in it. Local times (TIMESTAMP_NTZ) never are."""

    def __init__(self, file: pq.ParquetFile) -> None:
        metadata = file.metadata.metadata or {}
        schema = file.metadata.schema
        julian, julian_int96 = is_julian(metadata), is_julian(metadata, int96=True)
        self._leaves: dict[str, list[bool]] = {}
        index = 0
        for field in file.schema_arrow:
            found = []
            # A file's columns are the leaves of its fields, in this order.
            for leaf in _leaf_types(field.type):
                is_int96 = schema.column(index).physical_type == "INT96"
                is_of_calendar = pa.types.is_date(leaf) or is_int96 or _is_instant(leaf)
                found.append(is_of_calendar and (julian_int96 if is_int96 else julian))
                index += 1
            if any(found):
                self._leaves[field.name] = found

    def has(self, columns: Iterable[str]) -> bool:
        """Whether any of these columns of the file may have some."""
        return any(name in self._leaves for name in columns)

    def column_in(self, batch: pa.RecordBatch) -> str | None:
        """The file's name of a column that has some in these rows."""
        for name in batch.schema.names:
            wanted = self._leaves.get(name, ())
            if wanted and any(
                _is_early(leaf)
                for leaf, is_julian_leaf in zip(_leaves(batch.column(name)), wanted, strict=True)
                if is_julian_leaf
            ):
                return str(name)
        return None


def _is_instant(arrow: pa.DataType) -> bool:
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


def _leaf_types(arrow: pa.DataType) -> Iterator[pa.DataType]:
    if not pa.types.is_nested(arrow):
        yield arrow
        return
    for i in range(arrow.num_fields):
        yield from _leaf_types(arrow.field(i).type)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_map(array.type):
        # They are those of rows around a slice, too: rows of the same file that are read as well.
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_struct(array.type):
        for part in array.flatten():
            yield from _leaves(part)
    elif pa.types.is_nested(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _is_early(array: pa.Array) -> bool:
    if pa.types.is_date(array.type):
        least, first = pc.min(array.view(pa.int32())).as_py(), _FIRST_DAY
    else:
        least = pc.min(array.view(pa.int64())).as_py()
        first = _FIRST_SECOND * _UNITS[array.type.unit]
    return least is not None and least < first
