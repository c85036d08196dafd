"""Column mapping (PROTOCOL.md, "Column Mapping"; Delta: DeltaColumnMapping.scala).

Files know a column by its physical name, or by its id, and a schema may change what it is called.
Both belong to a column for ever: what a commit does to the schema must not give them to another.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.schema.data_types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
    physical_name,
    walk,
    without_metadata,
)
from tidegate_protocol.schema.table_schema import InvalidSchema

NESTED_IDS = "delta.columnMapping.nested.ids"
MARKS = frozenset({COLUMN_ID, PHYSICAL_NAME, NESTED_IDS})
"""What column mapping puts into a field's metadata."""
_MAX_ID = 2**31 - 1

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn:
    """A column or nested field with what column mapping says of it; `path` by display names,
    `physical_path` as files have it, both with `element`, `key` and `value` on the way."""

    path: Path
    physical_path: Path
    id: int
    nested_ids: Mapping[str, int]


def check_change(
    before: Metadata | None,
    properties_before: TableProperties,
    schema_before: StructType,
    *,
    properties: TableProperties,
    schema: StructType,
    replaces: bool,
    removes_mapping: bool,
    brings_back: bool,
) -> None:
    """Raise `InvalidSchema` unless a table may get this schema under its mode of column mapping.

    `before` is None for a new table. `replaces`: the data that was there goes; `removes_mapping`:
    mapping may be removed with its marks left (Delta's REMOVE COLUMN MAPPING); `brings_back`:
    columns may be those of another version or table, with their ids.
    """
    mode, old_mode = properties.column_mapping_mode, properties_before.column_mapping_mode
    is_new = before is None or replaces
    if not is_new and mode != old_mode:
        may_remove = removes_mapping or not (brings_back or has_marks(schema))
        _check_mode(old_mode, mode, may_remove=may_remove)
    if mode == "none":
        _check_unmapped(schema_before, schema, is_new=is_new)
        return
    mapped = mapped_columns(schema)
    highest = max(max((column.id, *column.nested_ids.values())) for column in mapped)
    if properties.max_column_id is None or properties.max_column_id < highest:
        raise InvalidSchema(
            f"delta.columnMapping.maxColumnId is {properties.max_column_id}; the schema has column "
            f"ids up to {highest}"
        )
    if before is None or old_mode == "none":
        if not is_new:
            _check_names_kept(schema_before, schema)
        return
    _check_columns_kept(
        {column.physical_path: column for column in mapped_columns(schema_before)},
        mapped,
        old_max=properties_before.max_column_id or 0,
        new_max=properties.max_column_id,
        may_be_older=brings_back,
    )


def columns(schema: StructType) -> Iterator[tuple[Path, Path, Field]]:
    """Every column and nested field, parents first, with its display and its physical path."""
    yield from _walk(schema, (), ())


def mapped_columns(schema: StructType) -> list[MappedColumn]:
    """Every column at every depth. Raises `InvalidSchema` where one has no id or no physical
    name, or where two share either."""
    mapped: list[MappedColumn] = []
    ids: dict[int, str] = {}
    paths: dict[Path, str] = {}
    for path, physical_path, field in _walk(schema, (), ()):
        column = _mapped(path, physical_path, field)
        name = ".".join(path)
        for number in (column.id, *column.nested_ids.values()):
            if number in ids:
                raise InvalidSchema(
                    f"columns {excerpt(ids[number])} and {excerpt(name)} have the column mapping "
                    f"id {number}"
                )
            ids[number] = name
        if physical_path in paths:
            raise InvalidSchema(
                f"columns {excerpt(paths[physical_path])} and {excerpt(name)} have the physical "
                f"name {excerpt('.'.join(physical_path))}"
            )
        paths[physical_path] = name
        mapped.append(column)
    return mapped


def assign(
    schema: StructType, *, max_id: int, new_name: Callable[[], str]
) -> tuple[StructType, int]:
    """The schema of a new table with ids above `max_id` and physical names (from `new_name`)
    for the fields that have none, and the highest id in it."""
    ids = [field.metadata.get(COLUMN_ID) for _, field, _ in walk(schema)]
    last = max([max_id, *(number for number in ids if isinstance(number, int))])

    def given(data_type: DataType) -> DataType:
        match data_type:
            case StructType(fields=fields):
                return StructType(fields=tuple(field_given(field) for field in fields))
            case ArrayType(element=element):
                return replace(data_type, element=given(element))
            case MapType(key=key, value=value):
                return replace(data_type, key=given(key), value=given(value))
            case _:
                return data_type

    def field_given(field: Field) -> Field:
        nonlocal last
        metadata = dict(field.metadata)
        if COLUMN_ID not in metadata:
            last += 1
            metadata[COLUMN_ID] = last
        metadata.setdefault(PHYSICAL_NAME, new_name())
        return replace(field, type=given(field.type), metadata=metadata)

    return StructType(fields=tuple(field_given(field) for field in schema.fields)), last


def changes_columns(
    before: StructType, after: StructType, *, was_mapped: bool, is_mapped: bool
) -> bool:
    """Whether column mapping is switched on, or drops or renames a column under it (what Delta
    keeps apart from changes of files where there is a change data feed)."""
    if not is_mapped:
        return False
    if not was_mapped:
        return True
    old = {physical: path for path, physical, _ in _walk(before, (), ())}
    new = {physical: path for path, physical, _ in _walk(after, (), ())}
    return any(
        physical not in new or new[physical][-1] != path[-1] for physical, path in old.items()
    )


def has_marks(schema: StructType) -> bool:
    """Whether column mapping has left something in the schema, whatever the table's mode."""
    return any(
        PHYSICAL_NAME in field.metadata or COLUMN_ID in field.metadata
        for _, field, _ in walk(schema)
    )


def is_removed(
    properties_before: TableProperties, properties: TableProperties, schema: StructType
) -> bool:
    """Whether the table loses its column mapping, and with this schema all of it."""
    has_mapping = properties.column_mapping or has_marks(schema)
    return properties_before.column_mapping and not has_mapping


def asks_for_rewriting(properties: TableProperties, schema: StructType) -> bool:
    """Whether files of this mapped table call columns otherwise than the schema does, or may have
    columns that it has no more."""
    count = 0
    for column in mapped_columns(schema):
        count += 1 + len(column.nested_ids)
        if column.path != column.physical_path:
            return True
    return count != properties.max_column_id


def without_marks(schema: StructType) -> StructType:
    """The schema with nothing of column mapping in it."""
    return without_metadata(schema, MARKS)


def _check_mode(old: str, new: str, *, may_remove: bool) -> None:
    if (old, new) == ("none", "name") or (new == "none" and may_remove):
        return
    raise InvalidSchema(
        f"delta.columnMapping.mode cannot change from {old!r} to {new!r}; a table with data can "
        "only go from 'none' to 'name', or to 'none'"
    )


def _check_unmapped(before: StructType, after: StructType, *, is_new: bool) -> None:
    # Readers take physical names wherever they find them. Tables that got them without a mode,
    # from a version of Delta with a bug, keep them.
    if has_marks(after) and (is_new or not has_marks(before)):
        raise InvalidSchema(
            "the schema has column mapping ids or physical names, but delta.columnMapping.mode is "
            "'none'"
        )


def _check_names_kept(before: StructType, after: StructType) -> None:
    """Where mapping begins, files have the display names that columns had until then."""
    old = {path for path, _, _ in _walk(before, (), ())}
    for path, physical_path, _ in _walk(after, (), ()):
        if path in old and path != physical_path:
            raise InvalidSchema(
                f"column {excerpt('.'.join(path))} has the physical name "
                f"{excerpt('.'.join(physical_path))}; the table's files have its name"
            )


def _check_columns_kept(
    old: Mapping[Path, MappedColumn],
    columns: list[MappedColumn],
    *,
    old_max: int,
    new_max: int,
    may_be_older: bool,
) -> None:
    if new_max < old_max:
        raise InvalidSchema(
            f"delta.columnMapping.maxColumnId cannot sink from {old_max} to {new_max}: ids are "
            "never used again"
        )
    for column in columns:
        known = old.get(column.physical_path)
        name = excerpt(".".join(column.path))
        if known is None and column.id <= old_max and not may_be_older:
            raise InvalidSchema(
                f"column {name} is new, but its id {column.id} may have been another's; expected "
                f"one above {old_max}"
            )
        if known is not None and known.id != column.id:
            raise InvalidSchema(
                f"column {name} cannot change its id from {known.id} to {column.id}"
            )


def _mapped(path: Path, physical_path: Path, field: Field) -> MappedColumn:
    number, name = field.metadata.get(COLUMN_ID), field.metadata.get(PHYSICAL_NAME)
    if not _is_id(number) or not isinstance(name, str) or not name:
        raise InvalidSchema(
            f"column {excerpt('.'.join(path))} needs {COLUMN_ID} (a positive 32-bit integer) and "
            f"{PHYSICAL_NAME} in its metadata, as column mapping is on"
        )
    nested = field.metadata.get(NESTED_IDS, {})
    if not isinstance(nested, dict) or not all(_is_id(value) for value in nested.values()):
        raise InvalidSchema(f"column {excerpt('.'.join(path))}: {NESTED_IDS} must map to ids")
    assert isinstance(number, int)
    return MappedColumn(path=path, physical_path=physical_path, id=number, nested_ids=nested)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_ID


def _walk(data_type: DataType, path: Path, physical: Path) -> Iterator[tuple[Path, Path, Field]]:
    match data_type:
        case StructType(fields=fields):
            for field in fields:
                names = (*path, field.name)
                physical_names = (*physical, physical_name(field))
                yield names, physical_names, field
                yield from _walk(field.type, names, physical_names)
        case ArrayType(element=element):
            yield from _walk(element, (*path, "element"), (*physical, "element"))
        case MapType(key=key, value=value):
            yield from _walk(key, (*path, "key"), (*physical, "key"))
            yield from _walk(value, (*path, "value"), (*physical, "value"))
