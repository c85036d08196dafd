"""Places in a schema: columns, fields of structs, and `element`, `key` and `value` on the way."""

from collections.abc import Callable, Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.alter.definitions import FIRST, After, Position
from tidegate.spark.columns.widening import with_changes
from tidegate.spark.expressions.errors import InvalidCommand

Path = tuple[str, ...]
Key = Callable[[str], str]
"""What names are compared by."""
ELEMENT, KEY, VALUE = "element", "key", "value"


def resolved(schema: StructType, path: Sequence[str], key: Key) -> tuple[Path, StructField]:
    """The path as the schema spells it, and the field there; an element, key or value is a field of
    that name. Raises `InvalidCommand`."""
    found: list[str] = []
    field = StructField("", schema, nullable=False)
    for name in path:
        inside = _parts(field.dataType)
        if inside is None:
            raise not_a_struct([*found, name], found)
        known = next((each for each in inside if key(each.name) == key(name)), None)
        if known is None:
            raise _unknown(name, found, inside)
        field = known
        found.append(field.name)
    return tuple(found), field


def at(data_type: DataType, path: Sequence[str], edit: Callable[[DataType], DataType]) -> DataType:
    """The type with the part at a path, which is spelt as it is there, edited."""
    if not path:
        return edit(data_type)
    name, *rest = path
    match data_type:
        case StructType():
            return StructType(
                [
                    StructField(f.name, at(f.dataType, rest, edit), f.nullable, f.metadata)
                    if f.name == name
                    else f
                    for f in data_type.fields
                ]
            )
        case ArrayType():
            return ArrayType(at(data_type.elementType, rest, edit), data_type.containsNull)
        case MapType():
            types = {KEY: data_type.keyType, VALUE: data_type.valueType}
            types[name] = at(types[name], rest, edit)
            return MapType(types[KEY], types[VALUE], data_type.valueContainsNull)
    raise AssertionError(f"{data_type.simpleString()} has no part {name}")


def in_struct(
    schema: StructType, path: Sequence[str], edit: Callable[[StructType], StructType]
) -> StructType:
    """The schema with the struct at a path, which is spelt as it is there, edited. Raises
    `InvalidCommand` where there is none."""

    def edited(found: DataType) -> DataType:
        if not isinstance(found, StructType):
            raise not_a_struct(path, path)
        return edit(found)

    changed = at(schema, path, edited)
    assert isinstance(changed, StructType)
    return changed


def placed(
    struct: StructType, field: StructField, position: Position | None, key: Key
) -> StructType:
    """The struct with a field at a position, at its end without one, and nowhere else. Raises
    `InvalidCommand` for one after a column that is not there."""
    if isinstance(position, After) and position.column == field.name:
        return StructType([field if each.name == field.name else each for each in struct.fields])
    fields = [each for each in struct.fields if each.name != field.name]
    place = 0 if position == FIRST else len(fields)
    if isinstance(position, After):
        names = [key(each.name) for each in fields]
        if key(position.column) not in names:
            raise _no_field(position.column, fields)
        place = names.index(key(position.column)) + 1
    return StructType([*fields[:place], field, *fields[place:]])


def recorded(old: StructType, new: StructType) -> StructType:
    """The new schema with what its columns' metadata is to tell of the types that they had."""
    known = {field.name: field for field in old.fields}
    return StructType(
        [
            field if field.name not in known else _recorded(known[field.name], field)
            for field in new.fields
        ]
    )


def not_a_struct(path: Sequence[str], parent: Sequence[str]) -> InvalidCommand:
    """The error for a field of what has none."""
    return InvalidCommand(
        "INVALID_FIELD_NAME",
        f"Field name {_quoted(path)} is invalid: {_quoted(parent)} is not a struct",
    )


def exists_already(operation: str, path: Sequence[str], struct: StructType) -> InvalidCommand:
    """The error for a name that is another's; `operation` is the verb of ALTER TABLE."""
    return InvalidCommand(
        "FIELD_ALREADY_EXISTS",
        f"Cannot {operation} column, because {_quoted(path)} already exists in "
        f"{struct.simpleString()}",
    )


def _recorded(old: StructField, new: StructField) -> StructField:
    inside = _recorded_inside(old.dataType, new.dataType)
    known = StructField(new.name, old.dataType, new.nullable, new.metadata)
    return with_changes(known, inside)


def _recorded_inside(old: DataType, new: DataType) -> DataType:
    match old, new:
        case StructType(), StructType():
            return recorded(old, new)
        case ArrayType(), ArrayType():
            return ArrayType(_recorded_inside(old.elementType, new.elementType), new.containsNull)
        case MapType(), MapType():
            return MapType(
                _recorded_inside(old.keyType, new.keyType),
                _recorded_inside(old.valueType, new.valueType),
                new.valueContainsNull,
            )
    return new


def _parts(data_type: DataType) -> list[StructField] | None:
    match data_type:
        case StructType():
            return list(data_type.fields)
        case ArrayType():
            return [StructField(ELEMENT, data_type.elementType, data_type.containsNull)]
        case MapType():
            return [
                StructField(KEY, data_type.keyType, nullable=False),
                StructField(VALUE, data_type.valueType, data_type.valueContainsNull),
            ]
    return None


def _unknown(name: str, path: Sequence[str], fields: Sequence[StructField]) -> InvalidCommand:
    if path:
        return _no_field(name, fields)
    return InvalidCommand(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        f"A column with name `{name}` cannot be resolved. Did you mean one of the following? "
        f"[{_names(fields)}]",
    )


def _no_field(name: str, fields: Sequence[StructField]) -> InvalidCommand:
    return InvalidCommand("FIELD_NOT_FOUND", f"No such struct field `{name}` in {_names(fields)}")


def _names(fields: Sequence[StructField]) -> str:
    return ", ".join(f"`{field.name}`" for field in fields)


def _quoted(path: Sequence[str]) -> str:
    return ".".join(f"`{name}`" for name in path)
