"""Columns as files know them, and as the table calls them (PROTOCOL.md, "Column Mapping").

A physical schema has the columns under their physical names at any depth, with their ids where
Spark's Parquet writer looks for them.
"""

from pyspark.sql import Column
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.tables.assignment import quoted
from tidegate_protocol.schema.data_types import COLUMN_ID, PHYSICAL_NAME

FIELD_ID = "parquet.field.id"
"""A field's metadata for Spark's Parquet writer."""


def physical_schema(schema: StructType) -> StructType:
    """The schema as the files have it."""
    return StructType([_physical_field(field) for field in schema.fields])


def physical_column(value: Column, field: StructField) -> Column:
    """A column of the table, given by its value, as the files have it."""
    physical = _physical_field(field)
    return _renamed(value, field.dataType, physical.dataType).alias(
        physical.name, metadata=physical.metadata
    )


def logical_column(own: StructField, field: StructField) -> Column:
    """A column of the table from the one that a file has for it."""
    return _renamed(quoted(own.name), own.dataType, field.dataType).alias(field.name)


def _physical_field(field: StructField) -> StructField:
    metadata = dict(field.metadata)
    if COLUMN_ID in metadata:
        metadata[FIELD_ID] = metadata[COLUMN_ID]
    name = metadata.get(PHYSICAL_NAME, field.name)
    return StructField(name, _physical_type(field.dataType), field.nullable, metadata)


def _physical_type(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return physical_schema(data_type)
        case ArrayType():
            return ArrayType(_physical_type(data_type.elementType), data_type.containsNull)
        case MapType():
            return MapType(
                _physical_type(data_type.keyType),
                _physical_type(data_type.valueType),
                data_type.valueContainsNull,
            )
    return data_type


def _renamed(value: Column, source: DataType, target: DataType) -> Column:
    """The value with the target's names inside: a cast of structs goes by position."""
    return value if source.simpleString() == target.simpleString() else value.cast(target)
