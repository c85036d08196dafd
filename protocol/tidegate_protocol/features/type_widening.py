"""Type widening (PROTOCOL.md, "Type Widening"; Delta: TypeWidening.scala).

A column may get a wider type without its files being written again; the schema tells readers what
its types have been.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.schema.data_types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
    physical_name,
    type_name,
)
from tidegate_protocol.schema.table_schema import InvalidSchema, parse_type

_INTEGERS = (BYTE, SHORT, INTEGER, LONG)
_STORED_ALIKE = (BYTE, SHORT, INTEGER)
_DIGITS = {BYTE: 10, SHORT: 10, INTEGER: 10, LONG: 20}
_OTHER_WIDENINGS = (
    (FLOAT, DOUBLE),
    (BYTE, DOUBLE),
    (SHORT, DOUBLE),
    (INTEGER, DOUBLE),
    (DATE, TIMESTAMP_NTZ),
)
_VERSION = "tableVersion"

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """One entry of a field's `delta.typeChanges`; `field_path` leads from the field into its
    arrays and maps."""

    from_type: DataType
    to_type: DataType
    field_path: Path


def is_widening(old: DataType, new: DataType) -> bool:
    """Whether readers of the new type can take the old one's values (no nested types)."""
    match old, new:
        case DecimalType(), DecimalType():
            grown = new.scale - old.scale
            return 0 <= grown <= new.precision - old.precision
        case _, DecimalType() if old in _DIGITS:
            return new.precision - new.scale >= _DIGITS[old]
        case _ if old in _INTEGERS and new in _INTEGERS:
            return _INTEGERS.index(old) <= _INTEGERS.index(new)
        case _:
            return old == new or (old, new) in _OTHER_WIDENINGS


def is_widening_in_iceberg(old: DataType, new: DataType) -> bool:
    """Whether Iceberg, too, can read the old type as the new one."""
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and is_widening(old, new)
    return (
        old == new or (old, new) == (FLOAT, DOUBLE) or (new in _INTEGERS and is_widening(old, new))
    )


def type_changes(field: Field) -> tuple[TypeChange, ...]:
    """What the field's metadata tells of its types. Raises `InvalidSchema`."""
    listed = field.metadata.get(TYPE_CHANGES, [])
    if not isinstance(listed, list):
        raise _invalid((field.name,), f"{TYPE_CHANGES} is not a list")
    return tuple(_type_change(field, entry) for entry in listed)


def check_recorded(schema: StructType) -> None:
    """Raise `InvalidSchema` where the schema tells of a change that readers do not allow."""
    for path, _, field in _fields(schema, (), ()):
        for change in type_changes(field):
            if (change.from_type, change.to_type) != (STRING, STRING) and not is_widening(
                change.from_type, change.to_type
            ):
                raise _invalid(
                    path,
                    f"{TYPE_CHANGES} has a change from {type_name(change.from_type)} to "
                    f"{type_name(change.to_type)}, which is no widening",
                )


def check_change(before: StructType, after: StructType, *, supported: bool, enabled: bool) -> None:
    """Raise `InvalidSchema` unless every column that stays keeps its type, or gets a wider one
    and says so, which takes `enabled`, and unless what was told of earlier changes is still.

    Where the feature is not `supported`, integers that Parquet stores alike widen untold, as
    Delta's schema evolution has it.
    """
    old = {physical: field for _, physical, field in _fields(before, (), ())}
    for path, physical, field in _fields(after, (), ()):
        known = old.get(physical)
        if known is None:
            continue
        told, was_told = type_changes(field), type_changes(known)
        if told[: len(was_told)] != was_told and told:
            raise _invalid(path, f"{TYPE_CHANGES} must keep what it told before")
        for inner, old_type, new_type in _changed(known.type, field.type, ()):
            stored_alike = old_type in _STORED_ALIKE and new_type in _STORED_ALIKE
            if not supported and stored_alike and is_widening(old_type, new_type):
                continue
            if not enabled:
                raise _invalid(
                    path,
                    f"its type cannot change from {type_name(old_type)} to {type_name(new_type)} "
                    "while delta.enableTypeWidening is not true",
                )
            if not is_widening(old_type, new_type):
                raise _invalid(
                    path,
                    f"its type cannot change from {type_name(old_type)} to {type_name(new_type)}",
                )
            expected = TypeChange(from_type=old_type, to_type=new_type, field_path=inner)
            if expected not in told[len(was_told) :]:
                raise _invalid(
                    path,
                    f"its type changes from {type_name(old_type)} to {type_name(new_type)}, which "
                    f"{TYPE_CHANGES} does not tell",
                )


def moved(metadata: Metadata, *, read_version: int, version: int) -> Metadata:
    """The metadata of a transaction that lands as `version` instead of right after the version it
    read: in the preview of type widening, changes name the version that made them."""
    schema = json.loads(metadata.schema_string)
    if not _move(schema, read_version, version):
        return metadata
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    return with_fields(metadata, {"schemaString": text})


def _move(value: object, read_version: int, version: int) -> bool:
    """Set the versions inside the JSON; whether any was another."""
    found = False
    if isinstance(value, list):
        for item in value:
            found = _move(item, read_version, version) or found
    elif isinstance(value, dict):
        at = value.get(_VERSION)
        if "fromType" in value and isinstance(at, int) and read_version < at != version:
            value[_VERSION] = version
            found = True
        for inner in value.values():
            found = _move(inner, read_version, version) or found
    return found


def _type_change(field: Field, entry: object) -> TypeChange:
    texts = entry if isinstance(entry, dict) else {}
    old, new = texts.get("fromType"), texts.get("toType")
    inner = texts.get("fieldPath", "")
    if not (isinstance(old, str) and isinstance(new, str) and isinstance(inner, str)):
        raise _invalid((field.name,), f"{TYPE_CHANGES} has {excerpt(repr(entry))}")
    return TypeChange(
        from_type=parse_type(old),
        to_type=parse_type(new),
        field_path=tuple(inner.split(".")) if inner else (),
    )


def _changed(old: DataType, new: DataType, path: Path) -> Iterator[tuple[Path, DataType, DataType]]:
    """Types that differ in one field, but for the fields of its structs."""
    match old, new:
        case StructType(), StructType():
            return
        case ArrayType(), ArrayType():
            yield from _changed(old.element, new.element, (*path, "element"))
        case MapType(), MapType():
            yield from _changed(old.key, new.key, (*path, "key"))
            yield from _changed(old.value, new.value, (*path, "value"))
        case _ if old not in (new, VOID):
            yield path, old, new


def _fields(data_type: DataType, path: Path, physical: Path) -> Iterator[tuple[Path, Path, Field]]:
    match data_type:
        case StructType(fields=fields):
            for field in fields:
                names, known = (*path, field.name), (*physical, physical_name(field).lower())
                yield names, known, field
                yield from _fields(field.type, names, known)
        case ArrayType(element=element):
            yield from _fields(element, (*path, "element"), (*physical, "element"))
        case MapType(key=key, value=value):
            yield from _fields(key, (*path, "key"), (*physical, "key"))
            yield from _fields(value, (*path, "value"), (*physical, "value"))


def _invalid(path: Path, what: str) -> InvalidSchema:
    return InvalidSchema(f"column {excerpt('.'.join(path))}: {what}")
