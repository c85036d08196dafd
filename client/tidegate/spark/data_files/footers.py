"""Delta's statistics of a data file from its Parquet footer."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan
from types import MappingProxyType

import pyarrow.parquet as pq

from tidegate.spark.data_files.calendars import (
    ONE_CALENDAR_DAYS,
    ONE_CALENDAR_INSTANTS,
    is_gregorian,
)
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.scan.statistics_writing import (
    ColumnStatistics,
    build_statistics,
)
from tidegate_protocol.schema.data_types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    Leaf,
    MapType,
    StructType,
)
from tidegate_protocol.schema.values import Value

Path = tuple[str, ...]

FOOTER_THREADS = 16
"""How many footers are read at a time."""
_EPOCH = datetime(1970, 1, 1)
_ONE_CALENDAR_FROM: Mapping[DataType, date] = {
    DATE: ONE_CALENDAR_DAYS,
    TIMESTAMP: ONE_CALENDAR_INSTANTS,
}


@dataclass(frozen=True, slots=True)
class FooterColumns:
    """Which columns of a footer hold the table's statistics columns.

    `leaves` pairs each with its index among the footer's columns; `width` is their number, for
    files whose columns are all of the table's data columns in the table's order. The bounds of
    those at the indices of `unbounded` are not to be asked for. Those of strings have no more than
    `string_prefix_length` characters.
    """

    leaves: tuple[tuple[int, Leaf], ...]
    width: int
    string_prefix_length: int
    unbounded: frozenset[int] = frozenset()

    @classmethod
    def of(cls, layout: TableLayout, *, beside: int = 0) -> "FooterColumns":
        """Of files that have `beside` further columns behind the table's."""
        wanted = {leaf.physical_path for leaf in layout.statistics_columns}
        leaves = []
        index = 0
        for leaf in layout.data_schema.leaves():
            if leaf.physical_path in wanted and not isinstance(leaf.type, ArrayType | MapType):
                leaves.append((index, leaf))
            index += _width(leaf.type)
        return cls(tuple(leaves), index + beside, layout.properties.string_prefix_length)


def num_records(footer: pq.FileMetaData) -> int:
    rows: int = footer.num_rows
    return rows


def statistics_of(
    footer: pq.FileMetaData,
    columns: FooterColumns,
    *,
    known: Mapping[Path, ColumnStatistics] = MappingProxyType({}),
    tight_bounds: bool | None = None,
) -> str:
    """The `stats` text of a file. What its footer does not say, or Delta has no bounds for, is
    left out of it: a column with NaN among it, which is above every other number for Delta, has
    none, nor do early days and instants that may be by another calendar than Delta's. `known` says
    it of columns that the footer is not to be asked about, `tight_bounds` of the file.
    """
    if footer.num_columns != columns.width:
        raise AssertionError(
            f"expected a file of {columns.width} columns, found {footer.num_columns}"
        )
    groups = range(footer.num_row_groups)
    least = {} if is_gregorian(footer.metadata or {}) else _ONE_CALENDAR_FROM
    found = {
        leaf.physical_path: known.get(leaf.physical_path)
        or _column(
            leaf,
            [footer.row_group(group).column(index) for group in groups],
            bounded=index not in columns.unbounded,
            least=least.get(leaf.type),
        )
        for index, leaf in columns.leaves
    }
    return build_statistics(
        num_records(footer),
        found,
        tight_bounds=tight_bounds,
        string_prefix_length=columns.string_prefix_length,
    )


def long_bounds(footers: Iterable[pq.FileMetaData], column: str) -> tuple[int, int] | None:
    """The least and the greatest value of a top-level column of longs in these files; None where
    there is none. Raises `AssertionError` for a file that does not say."""
    found: list[int] = []
    for footer in footers:
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        index = names.index(column)
        for group in range(footer.num_row_groups):
            chunk = footer.row_group(group).column(index)
            statistics = chunk.statistics
            if statistics is not None and statistics.null_count == chunk.num_values:
                continue
            if statistics is None or not statistics.has_min_max:
                raise AssertionError(f"expected the bounds of column {column} in every file")
            found += (int(statistics.min_raw), int(statistics.max_raw))
    return (min(found), max(found)) if found else None


def _column(
    leaf: Leaf,
    chunks: Iterable[pq.ColumnChunkMetaData],
    *,
    bounded: bool,
    least: date | None,
) -> ColumnStatistics:
    """There are no bounds where the minimum is before `least`, and where they are not wanted."""
    null_count: int | None = 0
    minimum: Value | None = None
    maximum: Value | None = None
    for chunk in chunks:
        statistics = chunk.statistics
        nulls = statistics.null_count if statistics and statistics.has_null_count else None
        null_count = None if null_count is None or nulls is None else null_count + nulls
        if nulls == chunk.num_values:
            continue
        bounds = _bounds(leaf.type, statistics) if bounded and statistics else None
        if bounds is None:
            bounded = False
            minimum = maximum = None
            continue
        minimum = bounds[0] if minimum is None else min(minimum, bounds[0])
        maximum = bounds[1] if maximum is None else max(maximum, bounds[1])
    if least is not None and isinstance(minimum, date) and minimum < least:
        minimum = maximum = None
    return ColumnStatistics(type=leaf.type, minimum=minimum, maximum=maximum, null_count=null_count)


def _bounds(data_type: DataType, statistics: pq.Statistics) -> tuple[Value, Value] | None:
    """The bounds in Python's types, None where there are none that can be written."""
    convert = _converter(data_type)
    if convert is None or not statistics.has_min_max:
        return None
    try:
        return convert(statistics.min_raw), convert(statistics.max_raw)
    except (OverflowError, ValueError):
        # A NaN, a year that Python has no date for, or bytes that are no text.
        return None


def _converter(data_type: DataType) -> Callable[..., Value] | None:
    """From the physical value; None for types that Delta keeps no bounds of."""
    if isinstance(data_type, DecimalType):
        scale = data_type.scale
        return lambda raw: _decimal(raw, scale)
    return _CONVERTERS.get(data_type)


def _decimal(raw: int | bytes, scale: int) -> Decimal:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _number(raw: float) -> float:
    """Files have integers of a column that was widened since."""
    if isnan(raw):
        raise ValueError("NaN is no bound")
    return float(raw)


def _date(raw: int) -> date:
    return (_EPOCH + timedelta(days=raw)).date()


def _text(raw: bytes) -> str:
    return raw.decode()


def _local_time(raw: int) -> datetime:
    return _EPOCH + timedelta(microseconds=raw)


def _instant(raw: int) -> datetime:
    return _local_time(raw).replace(tzinfo=UTC)


_CONVERTERS: dict[DataType, Callable[..., Value]] = {
    BYTE: int,
    SHORT: int,
    INTEGER: int,
    LONG: int,
    FLOAT: _number,
    DOUBLE: _number,
    STRING: _text,
    DATE: _date,
    TIMESTAMP: _instant,
    TIMESTAMP_NTZ: _local_time,
}


def _width(data_type: DataType) -> int:
    """How many columns of a Parquet file a field takes."""
    return sum(1 for _ in _primitives(data_type))


def _primitives(data_type: DataType) -> Iterator[DataType]:
    match data_type:
        case StructType(fields=fields):
            for field in fields:
                yield from _primitives(field.type)
        case ArrayType(element=element):
            yield from _primitives(element)
        case MapType(key=key, value=value):
            yield from _primitives(key)
            yield from _primitives(value)
        case _:
            yield data_type
