"""What a commit may make of the columns that a table's files have (Delta: ALTER TABLE and
`SchemaUtils.canChangeDataType`).

Delta's commands ask these questions before they commit. Whoever commits by other means is asked
them here.
"""

from collections.abc import Iterator

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.column_mapping import Path, columns
from tidegate_protocol.proposal.demands import NoNulls
from tidegate_protocol.schema.data_types import ArrayType, DataType, MapType, StructType
from tidegate_protocol.schema.table_schema import InvalidSchema


def check_kept(before: StructType, after: StructType) -> None:
    """Raise `InvalidSchema` where a column or nested field is dropped, or goes by another name:
    without column mapping, files are found by the names that they were written with."""
    left = {physical for _, physical, _ in columns(after)}
    for path, physical, _ in columns(before):
        if physical not in left:
            raise InvalidSchema(
                f"column {_name(path)} cannot be dropped or renamed: that takes column mapping "
                "(delta.columnMapping.mode), or an operation that replaces the schema"
            )


def no_nulls(before: StructType, after: StructType) -> Iterator[NoNulls]:
    """What columns ask of the table's files that are NOT NULL from now on: those that were
    nullable, and those that are new, which are null in each row that has what they are part of."""
    old = {physical: field for _, physical, field in columns(before)}
    new: set[Path] = set()
    for path, physical, field in columns(after):
        known = old.get(physical)
        if known is None:
            # What is new inside of something new is there in no row, unless that is.
            if not field.nullable and not any(physical[:n] in new for n in range(len(physical))):
                yield NoNulls(name=".".join(path), physical_path=physical)
            new.add(physical)
            continue
        if known.nullable and not field.nullable:
            yield NoNulls(name=".".join(path), physical_path=physical)
        for inside in _tightened(known.type, field.type, ()):
            yield NoNulls(name=".".join((*path, *inside)), physical_path=(*physical, *inside))


def _tightened(old: DataType, new: DataType, path: Path) -> Iterator[Path]:
    """Elements and values that could be null, and cannot from now on."""
    match old, new:
        case ArrayType(), ArrayType():
            inside = (*path, "element")
            if old.contains_null and not new.contains_null:
                yield inside
            yield from _tightened(old.element, new.element, inside)
        case MapType(), MapType():
            inside = (*path, "value")
            if old.value_contains_null and not new.value_contains_null:
                yield inside
            yield from _tightened(old.key, new.key, (*path, "key"))
            yield from _tightened(old.value, new.value, inside)


def _name(path: Path) -> str:
    return excerpt(".".join(path))
