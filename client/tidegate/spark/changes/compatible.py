"""Whether rows of one schema can be read by another (Delta: `SchemaUtils.isReadCompatible`)."""

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate_protocol.schema.data_types import COLUMN_ID, PHYSICAL_NAME, TYPE_CHANGES

_MARKS = (COLUMN_ID, PHYSICAL_NAME)


def is_read_as(written: StructType, read: StructType) -> bool:
    """Whether every column and nested field of `written` is in `read`, under the same name in any
    case, of the same type or of one that it was widened to, and not NOT NULL there only."""
    fields = {field.name.lower(): field for field in read.fields}
    return all(
        (found := fields.get(field.name.lower())) is not None and _is_field_read_as(field, found)
        for field in written.fields
    )


def _is_field_read_as(written: StructField, read: StructField) -> bool:
    return (
        (read.nullable or not written.nullable)
        and all(written.metadata.get(mark) == read.metadata.get(mark) for mark in _MARKS)
        and _is_type_read_as(written.dataType, read.dataType, widened=TYPE_CHANGES in read.metadata)
    )


def _is_type_read_as(written: DataType, read: DataType, *, widened: bool) -> bool:
    match written, read:
        case StructType(), StructType():
            return is_read_as(written, read)
        case ArrayType(), ArrayType():
            return (read.containsNull or not written.containsNull) and _is_type_read_as(
                written.elementType, read.elementType, widened=widened
            )
        case MapType(), MapType():
            return (
                (read.valueContainsNull or not written.valueContainsNull)
                and _is_type_read_as(written.keyType, read.keyType, widened=widened)
                and _is_type_read_as(written.valueType, read.valueType, widened=widened)
            )
    # Types only ever change to wider ones, and the schema says where they did.
    return written == read or widened
