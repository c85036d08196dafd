"""Spark's types of columns, looked at and changed at any depth."""

from collections.abc import Container

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType


def as_nullable(schema: StructType) -> StructType:
    """The schema as Spark's Parquet reader has it: nothing is NOT NULL at any depth."""
    return StructType(
        [StructField(f.name, nullable(f.dataType), True, f.metadata) for f in schema.fields]
    )


def nullable(data_type: DataType) -> DataType:
    """The type with nothing inside of it NOT NULL."""
    match data_type:
        case StructType():
            return as_nullable(data_type)
        case ArrayType():
            return ArrayType(nullable(data_type.elementType), True)
        case MapType():
            return MapType(nullable(data_type.keyType), nullable(data_type.valueType), True)
    return data_type


def with_only(data_type: DataType, names: Container[str]) -> DataType:
    """The type whose fields, at any depth, have no other metadata than those of these names."""
    match data_type:
        case StructType():
            return StructType(
                [
                    StructField(
                        field.name,
                        with_only(field.dataType, names),
                        field.nullable,
                        {name: field.metadata[name] for name in field.metadata if name in names},
                    )
                    for field in data_type.fields
                ]
            )
        case ArrayType():
            return ArrayType(with_only(data_type.elementType, names), data_type.containsNull)
        case MapType():
            return MapType(
                with_only(data_type.keyType, names),
                with_only(data_type.valueType, names),
                data_type.valueContainsNull,
            )
    return data_type


def is_untyped(data_type: DataType) -> bool:
    """Whether it is void, or holds something that is."""
    match data_type:
        case StructType():
            return any(is_untyped(field.dataType) for field in data_type.fields)
        case ArrayType():
            return is_untyped(data_type.elementType)
        case MapType():
            return is_untyped(data_type.keyType) or is_untyped(data_type.valueType)
    return isinstance(data_type, NullType)
