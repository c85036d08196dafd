"""Delta schemas: their JSON (PROTOCOL.md, "Schema Serialization Format"), and those of tables.

The types themselves are those of `data_types`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from tidegate_protocol.base import strict_json
from tidegate_protocol.base.memo import remember
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    InvalidSchema,
    Leaf,
    MapType,
    PrimitiveType,
    StructType,
    physical_name,
    type_name,
    walk,
)

__all__ = [
    "BINARY",
    "BOOLEAN",
    "BYTE",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LONG",
    "MAX_FIELDS",
    "SHORT",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "VARIANT",
    "VOID",
    "ArrayType",
    "DataType",
    "DecimalType",
    "Field",
    "InvalidSchema",
    "Leaf",
    "MapType",
    "PrimitiveType",
    "StructType",
    "check_partition_columns",
    "feed_columns",
    "parse_schema",
    "parse_type",
    "physical_name",
    "to_json",
    "type_name",
    "validate_table_schema",
    "walk",
]

_T = TypeVar("_T")
_JSON_NAMES: dict[type, str] = {
    bool: "a boolean",
    dict: "an object",
    list: "an array",
    str: "a string",
}

_NUMBERS = (BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE)
_OTHERS = (BOOLEAN, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, VOID)
_PRIMITIVES = {primitive.name: primitive for primitive in (*_NUMBERS, *_OTHERS)}
# Other names that Spark reads, and older versions of it wrote.
_ALIASES: dict[str, DataType] = {
    "decimal": DecimalType(10, 0),
    "null": VOID,
    "timestamp_ltz": TIMESTAMP,
}
_UNORDERED = (VARIANT, VOID)
_DECIMAL = re.compile(r"decimal\( *([0-9]{1,2}) *, *([0-9]{1,2}) *\)")
_MAX_DEPTH = 256
"""Of the JSON; a struct takes three levels of it."""

MAX_FIELDS = 10_000
MAX_NAME_LENGTH = 1_024
"""Of a field's name, in characters."""
MAX_PATH_CHARACTERS = 8_000_000
"""Of the dotted names of all fields together: checks name each field by all that it lies in."""

# Parquet's readers stumble over these, so Delta keeps them out of names (column mapping lifts it).
_BAD_CHARACTERS = " ,;{}()\n\t="
_OF_FEEDS = ("_change_type", "_commit_version", "_commit_timestamp")


def parse_schema(text: str) -> StructType:
    """The schema of a `schemaString`. Raises `InvalidSchema`, also for more than `MAX_FIELDS`
    fields: whatever a log holds, each commit may have to parse it.

    Types that the protocol does not know are refused, types that a table may not have without a
    feature (`variant`) or at all (`void`) are not: `features` and `validate_table_schema` decide.
    """
    return _remembered(text)


def _parse(text: str) -> StructType:
    try:
        value = strict_json.decode(text.encode(), max_depth=_MAX_DEPTH)
    except (UnicodeEncodeError, strict_json.InvalidJson) as error:
        raise InvalidSchema(f"the schema: {error}") from None
    parsed = _type(value, (), _Size())
    if not isinstance(parsed, StructType):
        raise InvalidSchema(f"expected a struct as the schema, found {type_name(parsed)}")
    return parsed


_remembered = remember(_parse, weigh=len)


def is_cheap(text: str) -> bool:
    """Whether `parse_schema` takes little time for a `schemaString`: it is small, or was parsed not
    long ago."""
    return _remembered.is_cheap(text)


def parse_type(name: str) -> DataType:
    """The type that goes by this name, as in `delta.typeChanges`. Raises `InvalidSchema`."""
    return _named_type(name, ())


def to_json(schema: StructType) -> str:
    """The schema as Spark lays it out: compact, `metadata` always there."""
    return msgspec.json.encode(_json(schema)).decode()


def validate_table_schema(schema: StructType, *, column_mapping: bool = False) -> None:
    """Raise `InvalidSchema` unless a table may have this schema: at least one column, no two names
    in one struct that differ at most in case, no empty name or one with a character that Parquet
    forbids, no column that can hold nothing (`void`).

    `column_mapping` allows the forbidden characters, as data files then use other names.
    """
    if not schema.fields:
        raise InvalidSchema("the schema has no columns; expected at least one")
    for path, field, siblings in walk(schema):
        if siblings.field(field.name) is not field:
            raise InvalidSchema(
                f"{_at(path)}: there are two fields of this name, whatever its case"
            )
        if not field.name:
            raise InvalidSchema(f"{_at(path)}: the name is empty")
        bad = "\0" if column_mapping else _BAD_CHARACTERS + "\0"
        found = next((character for character in field.name if character in bad), None)
        if found is not None:
            raise InvalidSchema(f"{_at(path)}: the name contains the character {found!r}")
        if _holds_void(field.type):
            raise InvalidSchema(
                f"{_at(path)}: the type {type_name(field.type)} holds void, which no value has"
            )
        if isinstance(field.type, StructType) and not field.type.fields:
            raise InvalidSchema(f"{_at(path)}: the struct has no fields")


def feed_columns(schema: StructType) -> list[str]:
    """The columns that have the names of those that a change data feed adds to the table's."""
    return sorted(field.name for field in schema.fields if field.name.lower() in _OF_FEEDS)


def check_partition_columns(schema: StructType, columns: Sequence[str]) -> tuple[str, ...]:
    """The partition columns as the schema spells them.

    Raises `InvalidSchema` unless each is a top-level column of a primitive type that can be
    ordered, none is named twice, and at least one column is left for the data.
    """
    resolved: dict[str, None] = {}
    for name in columns:
        field = schema.field(name)
        if field is None:
            raise InvalidSchema(
                f"partition column {excerpt(name)} is not a column of the table; it has "
                + excerpt(", ".join(field.name for field in schema.fields))
            )
        if not isinstance(field.type, PrimitiveType | DecimalType) or field.type in _UNORDERED:
            raise InvalidSchema(
                f"partition column {field.name!r} has the type {type_name(field.type)}, "
                "which cannot be partitioned by"
            )
        if field.name in resolved:
            raise InvalidSchema(f"partition column {field.name!r} is named twice")
        resolved[field.name] = None
    if resolved and len(resolved) == len(schema.fields):
        raise InvalidSchema("every column is a partition column; expected one to be left for data")
    return tuple(resolved)


def _holds_void(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _holds_void(element)
        case MapType(key=key, value=value):
            return _holds_void(key) or _holds_void(value)
        case _:
            return data_type == VOID


def _at(path: tuple[str, ...]) -> str:
    return f"column {excerpt('.'.join(path))}" if path else "the schema"


@dataclass(slots=True)
class _Size:
    """What was parsed so far: fields, and characters of their dotted names."""

    fields: int = 0
    characters: int = 0

    def add(self, path: tuple[str, ...]) -> None:
        """Raises `InvalidSchema` for more than is taken."""
        self.fields += 1
        self.characters += sum(map(len, path))
        if self.fields > MAX_FIELDS:
            raise InvalidSchema(f"the schema has more than {MAX_FIELDS} fields")
        if self.characters > MAX_PATH_CHARACTERS:
            raise InvalidSchema(
                f"the dotted names of the schema's fields have more than {MAX_PATH_CHARACTERS} "
                "characters together"
            )


def _type(value: object, path: tuple[str, ...], size: _Size) -> DataType:
    if isinstance(value, str):
        return _named_type(value, path)
    if not isinstance(value, dict):
        raise InvalidSchema(f"{_at(path)}: expected the name of a type or an object")
    match value.get("type"):
        case "struct":
            fields = _member(value, "fields", list, path)
            return StructType(fields=tuple(_field(field, path, size) for field in fields))
        case "array":
            return ArrayType(
                element=_type(value.get("elementType"), (*path, "element"), size),
                contains_null=_member(value, "containsNull", bool, path),
            )
        case "map":
            return MapType(
                key=_type(value.get("keyType"), (*path, "key"), size),
                value=_type(value.get("valueType"), (*path, "value"), size),
                value_contains_null=_member(value, "valueContainsNull", bool, path),
            )
        case other:
            raise InvalidSchema(
                f"{_at(path)}: the type of an object is struct, array or map, "
                f"not {excerpt(repr(other))}"
            )


def _named_type(name: str, path: tuple[str, ...]) -> DataType:
    known = _PRIMITIVES.get(name) or _ALIASES.get(name)
    if known is not None:
        return known
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        raise InvalidSchema(f"{_at(path)}: there is no type {excerpt(name)}")
    try:
        return DecimalType(int(decimal[1]), int(decimal[2]))
    except InvalidSchema as error:
        raise InvalidSchema(f"{_at(path)}: {error}") from None


def _field(value: object, path: tuple[str, ...], size: _Size) -> Field:
    if not isinstance(value, dict):
        raise InvalidSchema(f"{_at(path)}: expected an object as a field")
    name = _member(value, "name", str, path)
    path = (*path, name)
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidSchema(f"{_at(path)}: the name is longer than {MAX_NAME_LENGTH} characters")
    size.add(path)
    return Field(
        name=name,
        type=_type(value.get("type"), path, size),
        nullable=_member(value, "nullable", bool, path),
        metadata=_member({"metadata": {}, **value}, "metadata", dict, path),
    )


def _member(value: dict[str, Any], key: str, kind: type[_T], path: tuple[str, ...]) -> _T:
    member = value.get(key)
    if not isinstance(member, kind):
        raise InvalidSchema(f"{_at(path)}: expected {key!r} as {_JSON_NAMES[kind]}")
    return member


def _json(data_type: DataType) -> object:
    match data_type:
        case StructType(fields=fields):
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": field.name,
                        "type": _json(field.type),
                        "nullable": field.nullable,
                        "metadata": field.metadata,
                    }
                    for field in fields
                ],
            }
        case ArrayType(element=element, contains_null=contains_null):
            return {"type": "array", "elementType": _json(element), "containsNull": contains_null}
        case MapType(key=key, value=value, value_contains_null=contains_null):
            return {
                "type": "map",
                "keyType": _json(key),
                "valueType": _json(value),
                "valueContainsNull": contains_null,
            }
        case _:
            return type_name(data_type)
