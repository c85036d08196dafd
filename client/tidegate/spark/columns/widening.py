"""Types of columns that become wider where a DataFrame's are (PROTOCOL.md, "Type Widening").

As in Delta, only types of one kind do so by themselves: whole numbers, floating ones, decimals, and
dates that become times.
"""

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StructField,
    TimestampNTZType,
)

from tidegate_protocol.features.type_widening import is_widening
from tidegate_protocol.schema.data_types import TYPE_CHANGES
from tidegate_protocol.schema.table_schema import parse_type


def is_wider(table: DataType, df: DataType) -> bool:
    """Whether a column of the type `table` becomes one of the type `df` by itself."""
    if table == df or not (isinstance(table, AtomicType) and isinstance(df, AtomicType)):
        return False
    if not _is_of_one_kind(table, df):
        return False
    return is_widening(parse_type(str(table.jsonValue())), parse_type(str(df.jsonValue())))


def with_changes(field: StructField, data_type: DataType) -> StructField:
    """The column with another type, and with what its metadata is to tell of that."""
    changes = [
        {"fromType": old.jsonValue(), "toType": new.jsonValue()}
        | ({"fieldPath": ".".join(path)} if path else {})
        for path, old, new in _changes(field.dataType, data_type, ())
    ]
    metadata = dict(field.metadata)
    if changes:
        metadata[TYPE_CHANGES] = [*metadata.get(TYPE_CHANGES, []), *changes]
    return StructField(field.name, data_type, field.nullable, metadata)


def _is_of_one_kind(table: DataType, df: DataType) -> bool:
    if isinstance(table, DecimalType) or isinstance(df, DecimalType):
        return isinstance(table, DecimalType) and isinstance(df, DecimalType)
    return (
        (isinstance(table, IntegralType) and isinstance(df, IntegralType))
        or (isinstance(table, FractionalType) and isinstance(df, FractionalType))
        or (isinstance(table, DateType) and isinstance(df, TimestampNTZType))
    )


def _changes(
    old: DataType, new: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], DataType, DataType]]:
    """Of the column itself: the fields of structs inside tell of their own."""
    match old, new:
        case ArrayType(), ArrayType():
            yield from _changes(old.elementType, new.elementType, (*path, "element"))
        case MapType(), MapType():
            yield from _changes(old.keyType, new.keyType, (*path, "key"))
            yield from _changes(old.valueType, new.valueType, (*path, "value"))
        case AtomicType(), AtomicType() if old != new:
            yield path, old, new
