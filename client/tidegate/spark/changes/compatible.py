"""Whether rows of one schema can be read by another (Delta: `SchemaUtils.isReadCompatible`)."""

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.type_widening import is_widening
from tidegate_protocol.schema.data_types import COLUMN_ID, PHYSICAL_NAME, TYPE_CHANGES
from tidegate_protocol.schema.table_schema import parse_type

_MARKS = (COLUMN_ID, PHYSICAL_NAME)


def is_read_as(written: TableLayout, read: TableLayout) -> bool:
    """Whether the files of one layout can be read by another: of columns that can be, and
    partitioned alike, because a file lacks the columns that it is partitioned by."""
    return _partitioning(written) == _partitioning(read) and _are_columns_read_as(
        written.spark_schema, read.spark_schema
    )


def _partitioning(layout: TableLayout) -> list[str]:
    return [name.lower() for name in layout.partition_columns]


def _are_columns_read_as(written: StructType, read: StructType) -> bool:
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
        and _is_mapped_alike(written, read)
        and _is_type_read_as(written.dataType, read.dataType, widened=TYPE_CHANGES in read.metadata)
    )


def _is_mapped_alike(written: StructField, read: StructField) -> bool:
    """Whether files have both under one name. A table whose columns become mapped keeps the names
    that its files have."""
    marks, others = ([field.metadata.get(mark) for mark in _MARKS] for field in (written, read))
    if None not in (*marks, *others):
        return marks == others
    names = {field.metadata.get(PHYSICAL_NAME, field.name).lower() for field in (written, read)}
    return len(names) == 1


def _is_type_read_as(written: DataType, read: DataType, *, widened: bool) -> bool:
    match written, read:
        case StructType(), StructType():
            return _are_columns_read_as(written, read)
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
    # The schema says where types were widened, but not that none was restored to one before.
    return written == read or (widened and _is_widened(written.jsonValue(), read.jsonValue()))


def _is_widened(written: object, read: object) -> bool:
    if not (isinstance(written, str) and isinstance(read, str)):
        return False
    return is_widening(parse_type(written), parse_type(read))
