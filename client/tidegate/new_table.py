"""What the columns of a new table may not be, beyond what the service refuses, by Delta's rules."""

from collections.abc import Sequence

from tidegate.errors import InvalidRequest
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import IDENTITY_START
from tidegate_protocol.schema.data_types import ArrayType, DataType, MapType, StructType, walk
from tidegate_protocol.schema.table_schema import InvalidSchema, parse_schema


def check_new_table(schema_text: str, partition_by: Sequence[str]) -> None:
    """Raise `InvalidRequest` for a NOT NULL field inside of a list or a map, which nobody would
    enforce, and for an identity column that the table is partitioned by. What is no schema at all
    is for the service to refuse."""
    try:
        schema = parse_schema(schema_text)
    except InvalidSchema:
        return
    for field in schema.fields:
        for path in _required_in_collections(field.type, (field.name,)):
            raise _refused(
                f"field {'.'.join(path)} is NOT NULL inside of a list or a map, which is not "
                "enforced on rows; expected a nullable one",
                error_class="DELTA_NESTED_NOT_NULL_CONSTRAINT",
            )
    partitions = {name.lower() for name in partition_by}
    for field in schema.fields:
        if IDENTITY_START in field.metadata and field.name.lower() in partitions:
            raise _refused(
                f"column {field.name} is an identity column; a table is not partitioned by one",
                error_class="DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
            )


def _required_in_collections(data_type: DataType, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    match data_type:
        case StructType(fields=fields):
            return [
                found
                for field in fields
                for found in _required_in_collections(field.type, (*path, field.name))
            ]
        case ArrayType(element=element):
            return _required(element, (*path, "element"))
        case MapType(key=key, value=value):
            return [*_required(key, (*path, "key")), *_required(value, (*path, "value"))]
    return []


def _required(data_type: DataType, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(*path, *inner) for inner, field, _ in walk(data_type) if not field.nullable]


def _refused(detail: str, *, error_class: str) -> InvalidRequest:
    return InvalidRequest(detail, code=Code.INVALID_SCHEMA, definite=True, error_class=error_class)
