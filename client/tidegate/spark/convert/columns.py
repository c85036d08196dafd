"""The columns of many Parquet files as those of one table."""

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from tidegate.spark.columns.schema_change import new_column
from tidegate.spark.expressions.errors import InvalidCommand

_WHOLE = (ByteType(), ShortType(), IntegerType())
"""From the narrowest on. A file's column may be narrower than the table's."""


class _Apart(Exception):
    """Two types are not to be merged."""


def merged_columns(files: Sequence[tuple[str, StructType]]) -> StructType:
    """The columns of the files, each given by its path: all of them, nullable, matched by name in
    any case and in the order in which they come. Raises `InvalidCommand` where two files have one
    of types that do not go together."""
    found = StructType([])
    for path, schema in files:
        try:
            found = _merged(found, StructType([new_column(field) for field in schema.fields]))
        except _Apart as apart:
            raise InvalidCommand(
                "DELTA_FAILED_MERGE_SCHEMA_FILE",
                f"Failed to merge schema of file {path}: {schema.simpleString()}: {apart}",
            ) from None
    return found


def with_partition_columns(data: StructType, partitions: StructType) -> StructType:
    """The data's columns, then the partition columns. One that the data has, too, stays in its
    place, with the type that the partition columns have it by."""
    own = {field.name.lower(): new_column(field) for field in partitions.fields}
    names = {field.name.lower() for field in data.fields}
    return StructType(
        [
            *(own.get(field.name.lower(), field) for field in data.fields),
            *(field for name, field in own.items() if name not in names),
        ]
    )


def _merged(first: StructType, second: StructType) -> StructType:
    given = {field.name.lower(): field for field in second.fields}
    names = {field.name.lower() for field in first.fields}
    return StructType(
        [
            *(
                field
                if (other := given.get(field.name.lower())) is None
                else StructField(
                    field.name,
                    _merged_type(field.name, field.dataType, other.dataType),
                    True,
                    field.metadata,
                )
                for field in first.fields
            ),
            *(field for name, field in given.items() if name not in names),
        ]
    )


def _merged_type(name: str, first: DataType, second: DataType) -> DataType:
    match first, second:
        case StructType(), StructType():
            return _merged(first, second)
        case ArrayType(), ArrayType():
            return ArrayType(_merged_type(name, first.elementType, second.elementType))
        case MapType(), MapType():
            return MapType(
                _merged_type(name, first.keyType, second.keyType),
                _merged_type(name, first.valueType, second.valueType),
            )
    if first == second:
        return first
    if first in _WHOLE and second in _WHOLE:
        return max(first, second, key=_WHOLE.index)
    raise _Apart(
        f"column {name} is {first.simpleString()} in other files, and {second.simpleString()} here"
    )
