"""Columns as Unity Catalog's API writes them: its part for Delta, and its classic part."""

import json

import msgspec

from tidegate_protocol.base.memo import remember
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.schema.data_types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from tidegate_protocol.schema.table_schema import parse_schema, to_json

Json = dict[str, object]

_DASHES = {
    "elementType": "element-type",
    "keyType": "key-type",
    "valueType": "value-type",
    "containsNull": "contains-null",
    "valueContainsNull": "value-contains-null",
}
_CAMEL = {dashed: name for name, dashed in _DASHES.items()}
_TYPES = frozenset({"type", *_DASHES, *_CAMEL})
_SQL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def struct_of(metadata: Metadata) -> msgspec.Raw:
    """The schema of a table, as the part for Delta writes it, as JSON."""
    return _remembered_struct(metadata.schema_string)


def _struct(schema_string: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(_renamed(json.loads(schema_string), _DASHES)))


_remembered_struct = remember(_struct, weigh=len)


def undashed(columns: Json) -> str:
    """A schema of this API with Delta's names, as JSON."""
    return msgspec.json.encode(_renamed_struct(columns, _CAMEL)).decode()


def _renamed(found: object, names: dict[str, str]) -> object:
    return _renamed_struct(found, names) if isinstance(found, dict) else found


def _renamed_struct(found: Json, names: dict[str, str]) -> Json:
    """A type or a field, and the types and fields in it. What a field's metadata holds stays."""
    renamed: Json = {}
    for name, value in found.items():
        new = names.get(name, name)
        if name in _TYPES:
            renamed[new] = _renamed(value, names)
        elif name == "fields" and isinstance(value, list):
            renamed[new] = [_renamed(field, names) for field in value]
        else:
            renamed[new] = value
    return renamed


def columns_of(metadata: Metadata) -> msgspec.Raw:
    """The columns of a table, as the classic part writes them, as JSON."""
    return _remembered_columns((metadata.schema_string, tuple(metadata.partition_columns)))


def _columns(definition: tuple[str, tuple[str, ...]]) -> msgspec.Raw:
    schema_string, partition_columns = definition
    schema = parse_schema(schema_string)
    fields = json.loads(to_json(schema))["fields"]
    places = {name: place for place, name in enumerate(partition_columns)}
    columns = [
        {
            "name": field.name,
            "type_text": sql_type(field.type),
            "type_json": msgspec.json.encode(as_json).decode(),
            "type_name": _type_name(field.type),
            "type_precision": _digits(field.type)[0],
            "type_scale": _digits(field.type)[1],
            "position": position,
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
            "partition_index": places.get(field.name),
        }
        for position, (field, as_json) in enumerate(zip(schema.fields, fields, strict=True))
    ]
    return msgspec.Raw(msgspec.json.encode(columns))


_remembered_columns = remember(_columns, weigh=lambda definition: len(definition[0]))


def sql_type(data_type: DataType) -> str:
    """A type as SQL writes it."""
    match data_type:
        case PrimitiveType(name):
            return _SQL.get(name, name)
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ArrayType(element=element):
            return f"array<{sql_type(element)}>"
        case MapType(key=key, value=value):
            return f"map<{sql_type(key)},{sql_type(value)}>"
        case StructType(fields=fields):
            return f"struct<{','.join(f'{one.name}:{sql_type(one.type)}' for one in fields)}>"


def _type_name(data_type: DataType) -> str:
    match data_type:
        case PrimitiveType(name):
            return "INT" if name == "integer" else name.upper()
        case DecimalType():
            return "DECIMAL"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case StructType():
            return "STRUCT"


def _digits(data_type: DataType) -> tuple[int | None, int | None]:
    if isinstance(data_type, DecimalType):
        return data_type.precision, data_type.scale
    return None, None
