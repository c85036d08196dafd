"""Columns added, renamed, dropped and replaced."""

from collections.abc import Sequence
from functools import partial

from pyspark.sql.types import DataType, StructField, StructType

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration, as_json, shown_field, shown_path
from tidegate.spark.alter.clustering import keep_clustering
from tidegate.spark.alter.definitions import Definition, definitions
from tidegate.spark.alter.dependents import check_independent
from tidegate.spark.alter.paths import Path, exists_already, in_struct, placed, resolved
from tidegate.spark.columns.mapping import BAD_NAMES, OTHER_NAMES, bad_names, says_bad
from tidegate.spark.expressions.assignments import name_parts
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.tables.schemas import is_untyped, nullable
from tidegate_protocol.features.known import CURRENT_DEFAULT
from tidegate_protocol.schema.column_paths import parse_list

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def add_columns(alteration: Alteration, text: str) -> Receipt:
    """ADD COLUMNS: each `name type [COMMENT text] [FIRST | AFTER column]`, where the name of a
    field of a struct is a path. New columns are null in the rows that there are.

    Raises `InvalidCommand`, and what `Transaction.commit` raises.
    """
    schema = alteration.schema
    added = definitions(alteration.spark, text)
    for each in added:
        schema = _with_column(alteration, schema, each)
    alteration.set_columns(schema)
    columns = [
        {"column": shown_field(each.parent, each.field)}
        | ({} if each.position is None else {"position": str(each.position)})
        for each in added
    ]
    return alteration.commit("ADD COLUMNS", {"columns": as_json(columns)})


def rename_column(alteration: Alteration, name: str, new_name: str) -> Receipt:
    """RENAME COLUMN: the column, or field of a struct, has another name from now on, and keeps its
    values. Takes mapped columns. Raises as `add_columns` does."""
    path, field, parent = _found(alteration, name)
    key = alteration.key
    names = name_parts(alteration.spark, new_name)
    renamed = names[-1]
    if len(names) > 1 and tuple(map(key, names[:-1])) != tuple(map(key, path[:-1])):
        raise InvalidCommand(
            "INVALID_FIELD_NAME",
            f"Field name {new_name} is invalid: a column stays where it is, below "
            f"{shown_path(path[:-1]) or 'the table'}",
        )
    if any(key(each.name) == key(renamed) for each in parent.fields):
        raise exists_already("rename", (*path[:-1], renamed), parent)
    if not alteration.layout.is_mapped:
        raise _needs_mapping("DELTA_UNSUPPORTED_RENAME_COLUMN", "Column rename")
    check_independent(alteration, path)
    new = StructField(renamed, field.dataType, field.nullable, field.metadata)
    schema = in_struct(
        alteration.schema,
        path[:-1],
        lambda struct: StructType([new if each is field else each for each in struct.fields]),
    )
    metadata = alteration.metadata
    partitions = metadata.partition_columns
    if len(path) == 1:
        partitions = tuple(renamed if column == field.name else column for column in partitions)
    alteration.set_columns(
        schema,
        {
            "partitionColumns": list(partitions),
            "configuration": _with_stats_columns(alteration, path, (*path[:-1], renamed)),
        },
    )
    parameters = {
        "oldColumnPath": shown_path(path),
        "newColumnPath": shown_path((*path[:-1], renamed)),
    }
    return alteration.commit("RENAME COLUMN", parameters)


def drop_columns(alteration: Alteration, names: Sequence[str]) -> Receipt:
    """DROP COLUMNS: the columns, or fields of structs, are gone, and their values stay in the files
    unread. Takes mapped columns. Raises as `add_columns` does."""
    if not alteration.layout.is_mapped:
        raise _needs_mapping("DELTA_UNSUPPORTED_DROP_COLUMN", "DROP COLUMN")
    schema = alteration.schema
    configuration = dict(alteration.metadata.configuration)
    paths = []
    for name in names:
        path, _ = resolved(schema, name_parts(alteration.spark, name), alteration.key)
        schema = in_struct(schema, path[:-1], partial(_without, name=path[-1]))
        paths.append(path)
    partitions = [path[0] for path in paths if len(path) == 1]
    if dropped := [each for each in alteration.layout.partition_columns if each in partitions]:
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
            f"Dropping partition columns ({', '.join(dropped)}) is not allowed",
        )
    keep_clustering(alteration, paths)
    for path in paths:
        check_independent(alteration, path)
        configuration |= _with_stats_columns(alteration, path, None, configuration)
    alteration.set_columns(schema, {"configuration": configuration})
    columns = [shown_path(path) for path in paths]
    return alteration.commit("DROP COLUMNS", {"columns": as_json(columns)})


def check_names(alteration: Alteration, schema: DataType) -> None:
    """Raise `InvalidCommand` for names that Parquet's readers stumble over, which mapped columns
    may have."""
    if bad := bad_names(schema, alteration.layout):
        raise InvalidCommand(BAD_NAMES, says_bad(bad), hint=OTHER_NAMES)


def _with_column(alteration: Alteration, schema: StructType, added: Definition) -> StructType:
    field = added.field
    if not field.nullable or nullable(field.dataType) != field.dataType:
        raise InvalidCommand(
            "DELTA_OPERATION_NOT_ALLOWED",
            "Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for "
            "Delta tables",
        )
    if CURRENT_DEFAULT in field.metadata:
        raise InvalidCommand(
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"
            if alteration.supports("allowColumnDefaults")
            else "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            f"Failed to add column {field.name}: a column that is added to a table has no default",
            hint="add it without, and set its default then",
        )
    if is_untyped(field.dataType):
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_DATA_TYPES",
            f"Found columns using unsupported data types: [{field.name}]",
        )
    check_names(alteration, StructType([field]))
    parent, _ = resolved(schema, added.parent, alteration.key)

    def with_field(struct: StructType) -> StructType:
        key = alteration.key
        if any(key(each.name) == key(field.name) for each in struct.fields):
            raise exists_already("add", (*parent, field.name), struct)
        return placed(struct, field, added.position, key)

    return in_struct(schema, parent, with_field)


def _found(alteration: Alteration, name: str) -> tuple[Path, StructField, StructType]:
    """The column of a name, with the struct that it is in."""
    parts = name_parts(alteration.spark, name)
    path, field = resolved(alteration.schema, parts, alteration.key)
    _, parent = resolved(alteration.schema, path[:-1], alteration.key)
    if not isinstance(parent.dataType, StructType):
        raise InvalidCommand(
            "INVALID_FIELD_NAME",
            f"Field name {shown_path(path)} is invalid: {shown_path(path[:-1])} is not a struct",
        )
    return path, field, parent.dataType


def _without(struct: StructType, name: str) -> StructType:
    if len(struct.fields) == 1:
        raise InvalidCommand(
            "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            f"Cannot drop column from a schema with a single column. Schema: "
            f"{struct.simpleString()}",
        )
    return StructType([each for each in struct.fields if each.name != name])


def _with_stats_columns(
    alteration: Alteration,
    path: Path,
    new: Path | None,
    configuration: dict[str, str] | None = None,
) -> dict[str, str]:
    """The properties, with the column called otherwise, or left out, where they name columns that
    have statistics."""
    found = dict(alteration.metadata.configuration if configuration is None else configuration)
    listed = found.get(_STATS_COLUMNS)
    if listed is None:
        return found
    columns = []
    for column in parse_list(listed):
        is_inside = column[: len(path)] == path
        if is_inside and new is None:
            continue
        columns.append((*new, *column[len(path) :]) if is_inside and new else column)
    found[_STATS_COLUMNS] = ",".join(".".join(map(_quoted, column)) for column in columns)
    return found


def _quoted(name: str) -> str:
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def _needs_mapping(error_class: str, what: str) -> InvalidCommand:
    return InvalidCommand(
        error_class,
        f"{what} is not supported for your Delta table. Please enable Column Mapping on your Delta "
        "table with mapping mode 'name'",
        hint='alter().set_properties({"delta.columnMapping.mode": "name"})',
    )
