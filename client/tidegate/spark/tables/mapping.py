"""Columns as files know them, and as the table calls them (PROTOCOL.md, "Column Mapping").

A physical schema has the columns under their physical names at any depth. Ids are where Spark's
Parquet writer looks for them only while it writes: its reader refuses files that have none.
"""

from pyspark.sql import Column
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.schemas import nullable
from tidegate_protocol.schema.data_types import COLUMN_ID, LENGTH_KEY, PHYSICAL_NAME

FIELD_ID = "parquet.field.id"
"""A field's metadata for Spark's Parquet writer."""
PARQUET_ID = b"PARQUET:field_id"
"""The same for Arrow's."""


def physical_schema(schema: StructType) -> StructType:
    """The schema as the files have it, without what Spark's reader or writer would do with ids."""
    return StructType([_physical_field(field, with_ids=False) for field in schema.fields])


def physical_column(value: Column, field: StructField) -> Column:
    """A column of the table, given by its value, as Spark's writer is to write it."""
    physical = _physical_field(field, with_ids=True)
    # The ids are in the type, too, so that it is another one wherever there are fields inside.
    nested = isinstance(field.dataType, StructType | ArrayType | MapType)
    renamed = value.cast(nullable(physical.dataType)) if nested else value
    return renamed.alias(physical.name, metadata=physical.metadata)


def logical_column(own: StructField, field: StructField) -> Column | None:
    """A column of the table from the one that a file has for it; None where that is the same."""
    is_same = own.dataType.simpleString() == field.dataType.simpleString()
    if own.name == field.name and is_same and LENGTH_KEY not in field.metadata:
        return None
    return as_column(_renamed(quoted(own.name), own.dataType, field.dataType), field)


def as_column(value: Column, field: StructField) -> Column:
    """The value as this column. Spark pads what a CHAR column is compared with where it is told of
    its length."""
    length = field.metadata.get(LENGTH_KEY)
    if length is None:
        return value.alias(field.name)
    return value.alias(field.name, metadata={LENGTH_KEY: length})


def _physical_field(field: StructField, *, with_ids: bool) -> StructField:
    metadata = dict(field.metadata)
    if with_ids and COLUMN_ID in metadata:
        metadata[FIELD_ID] = metadata[COLUMN_ID]
    name = metadata.get(PHYSICAL_NAME, field.name)
    inside = _physical_type(field.dataType, with_ids=with_ids)
    return StructField(name, inside, field.nullable, metadata)


def _physical_type(data_type: DataType, *, with_ids: bool) -> DataType:
    match data_type:
        case StructType():
            fields = data_type.fields
            return StructType([_physical_field(field, with_ids=with_ids) for field in fields])
        case ArrayType():
            element = _physical_type(data_type.elementType, with_ids=with_ids)
            return ArrayType(element, data_type.containsNull)
        case MapType():
            return MapType(
                _physical_type(data_type.keyType, with_ids=with_ids),
                _physical_type(data_type.valueType, with_ids=with_ids),
                data_type.valueContainsNull,
            )
    return data_type


def _renamed(value: Column, source: DataType, target: DataType) -> Column:
    """The value with the target's names inside: a cast of structs goes by position."""
    if source.simpleString() == target.simpleString():
        return value
    return value.cast(nullable(target))
