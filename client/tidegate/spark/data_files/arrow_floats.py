"""Statistics of floating-point columns that Arrow writes.

Arrow's Parquet writer passes over NaN in a footer's bounds. Spark, to which NaN is above every
other number, takes such bounds at their word and skips rows that it should return. So the footers
say nothing of these columns, and what the log says of them is counted here.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidegate_protocol.scan.statistics_writing import ColumnStatistics
from tidegate_protocol.schema.data_types import (
    DOUBLE,
    FLOAT,
    ArrayType,
    DataType,
    Leaf,
    MapType,
    StructType,
)

Path = tuple[str, ...]

_FLOATS = (FLOAT, DOUBLE)


def columns_with_statistics(struct: StructType) -> list[str]:
    """The columns of a Parquet file, by their dotted paths, that are to have statistics in its
    footer."""
    columns = [pair for field in struct.fields for pair in _columns(field.type, field.name)]
    # A dot in a name can make two columns one path.
    without = {path for path, data_type in columns if data_type in _FLOATS}
    return [path for path, _ in columns if path not in without]


class FloatStatistics:
    """The statistics of the floating-point columns, and fields of structs, of one file."""

    def __init__(self, struct: StructType) -> None:
        self._leaves = [leaf for leaf in struct.leaves() if leaf.type in _FLOATS]
        self._nulls: dict[Path, int] = dict.fromkeys(_paths(self._leaves), 0)
        self._bounds: dict[Path, list[float]] = {path: [] for path in self._nulls}
        self._nan: set[Path] = set()

    def count(self, rows: pa.Table) -> None:
        """Take rows of the file into account."""
        for leaf in self._leaves:
            column = rows.column(leaf.path[0])
            for name in leaf.path[1:]:
                column = pc.struct_field(column, name)
            path = leaf.physical_path
            self._nulls[path] += column.null_count
            if pc.any(pc.is_nan(column)).as_py():
                self._nan.add(path)
            bounds = pc.min_max(column).as_py()
            if bounds["min"] is not None:
                self._bounds[path] += [bounds["min"], bounds["max"]]

    def found(self) -> dict[Path, ColumnStatistics]:
        """By physical path. A column with NaN has no bounds."""
        return {
            leaf.physical_path: self._statistics(leaf.physical_path, leaf.type)
            for leaf in self._leaves
        }

    def _statistics(self, path: Path, data_type: DataType) -> ColumnStatistics:
        bounds = [] if path in self._nan else self._bounds[path]
        return ColumnStatistics(
            type=data_type,
            minimum=min(bounds, default=None),
            maximum=max(bounds, default=None),
            null_count=self._nulls[path],
        )


def _paths(leaves: list[Leaf]) -> list[Path]:
    return [leaf.physical_path for leaf in leaves]


def _columns(data_type: DataType, path: str) -> Iterator[tuple[str, DataType]]:
    """The primitive columns below a field, named as Arrow's Parquet writer names them."""
    match data_type:
        case StructType(fields=fields):
            for field in fields:
                yield from _columns(field.type, f"{path}.{field.name}")
        case ArrayType(element=element):
            yield from _columns(element, f"{path}.list.element")
        case MapType(key=key, value=value):
            yield from _columns(key, f"{path}.key_value.key")
            yield from _columns(value, f"{path}.key_value.value")
        case _:
            yield path, data_type
