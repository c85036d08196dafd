"""CHANGE COLUMN: type, comment, nullability, place and default of a column or of its parts."""

import re
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration, as_json, shown_field, shown_path
from tidegate.spark.alter.clustering import check_stay_bounded
from tidegate.spark.alter.definitions import (
    Position,
    as_stored,
    comment_of,
    position_of,
    type_of,
    with_comment,
    without_lengths,
)
from tidegate.spark.alter.dependents import check_independent
from tidegate.spark.alter.paths import KEY, VALUE, Path, at, placed, recorded, resolved
from tidegate.spark.expressions.assignments import name_parts
from tidegate.spark.expressions.definitions import check_default
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.storage.hadoop import java_class, jvm_of
from tidegate_protocol.features.known import CURRENT_DEFAULT, IDENTITY_START
from tidegate_protocol.features.type_widening import is_widening
from tidegate_protocol.schema.data_types import LENGTH_KEY
from tidegate_protocol.schema.table_schema import parse_type

_LENGTH = re.compile(r"(?P<kind>char|varchar)\((?P<most>[0-9]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of a column; None where it stays as it is. `type` and `position` are SQL."""

    type: str | None = None
    comment: str | None = None
    nullable: bool | None = None
    position: str | None = None


def change_column(alteration: Alteration, name: str, change: Change) -> Receipt:
    """Change a column, a field of a struct, or the element, key or value of a list or map.

    A type becomes a wider one where the table has `delta.enableTypeWidening`. NOT NULL takes files
    whose statistics prove that there is none. Raises `InvalidCommand`, and what
    `Transaction.commit` raises.
    """
    path, old = _found(alteration, name)
    new = old
    if change.comment is not None:
        new = with_comment(new, change.comment)
    if change.type is not None:
        new = _retyped(alteration, path, new, type_of(alteration.spark, change.type))
    if change.nullable is not None:
        _check_not_identity(old)
        new = StructField(new.name, new.dataType, change.nullable, new.metadata)
    position = None if change.position is None else position_of(alteration.spark, change.position)
    _check_inside(alteration, path, old, new, position)
    return _commit(alteration, path, new, position)


def set_default(alteration: Alteration, name: str, sql: str | None) -> Receipt:
    """Give a column another default, or with None none. Rows that there are keep their values.
    Raises as `change_column` does."""
    path, old = _found(alteration, name)
    _check_not_identity(old)
    metadata = {key: value for key, value in old.metadata.items() if key != CURRENT_DEFAULT}
    if sql is not None:
        if not alteration.supports("allowColumnDefaults"):
            raise InvalidCommand(
                "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                f"Failed to execute the command because DEFAULT values are not supported for table "
                f"{alteration.layout.name}: its protocol lacks the feature allowColumnDefaults",
                hint='alter().set_properties({"delta.feature.allowColumnDefaults": "supported"})',
            )
        if len(path) > 1:
            raise InvalidCommand(
                "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                f"{shown_path(path)} is no column of the table",
            )
        check_default(old, sql, alteration.spark, statement="ALTER TABLE")
        metadata[CURRENT_DEFAULT] = sql
    new = StructField(old.name, old.dataType, old.nullable, metadata)
    return _commit(alteration, path, new, None)


def _found(alteration: Alteration, name: str) -> tuple[Path, StructField]:
    parts = name_parts(alteration.spark, name)
    return resolved(alteration.schema, parts, alteration.key)


def _commit(
    alteration: Alteration, path: Path, new: StructField, position: Position | None
) -> Receipt:
    schema = recorded(alteration.schema, _changed(alteration, path, new, position))
    if position is not None:
        check_stay_bounded(alteration, schema.json())
    alteration.set_columns(schema)
    parameters = {"column": as_json(shown_field(path[:-1], new))}
    if position is not None:
        parameters["position"] = str(position)
    return alteration.commit("CHANGE COLUMN", parameters)


def _changed(
    alteration: Alteration, path: Path, new: StructField, position: Position | None
) -> StructType:
    """The table's columns with the one at the path changed."""

    def changed(parent: DataType) -> DataType:
        match parent:
            case StructType():
                fields = [new if each.name == new.name else each for each in parent.fields]
                struct = StructType(fields)
                return struct if position is None else placed(struct, new, position, alteration.key)
            case ArrayType():
                return ArrayType(new.dataType, parent.containsNull)
            case MapType():
                types = {KEY: parent.keyType, VALUE: parent.valueType, new.name: new.dataType}
                return MapType(types[KEY], types[VALUE], parent.valueContainsNull)
        raise AssertionError(f"{parent.simpleString()} has no parts")

    schema = at(alteration.schema, path[:-1], changed)
    assert isinstance(schema, StructType)
    return schema


def _retyped(alteration: Alteration, path: Path, old: StructField, wanted: DataType) -> StructField:
    """The column with another type, and what was declared of its length. Raises `InvalidCommand`
    where it cannot have that."""
    declared = _declared(old)
    stored = without_lengths(wanted)
    if stored == old.dataType and wanted.simpleString() == declared:
        return old
    for kind, word in ((StructType, "STRUCT"), (MapType, "MAP"), (ArrayType, "ARRAY")):
        if isinstance(old.dataType, kind) and stored != old.dataType:
            raise InvalidCommand(
                f"CANNOT_UPDATE_FIELD.{word}_TYPE",
                f"Cannot update {alteration.layout.name} field {shown_path(path)} type: that of "
                f"what is in a {word.lower()} is updated by its own name",
            )
    if not _is_up_cast(alteration, declared, old.dataType, wanted):
        raise InvalidCommand(
            "NOT_SUPPORTED_CHANGE_COLUMN",
            f"ALTER TABLE ALTER/CHANGE COLUMN is not supported for changing {shown_path(path)} of "
            f"{alteration.layout.name} with type {declared} to type {wanted.simpleString()}",
        )
    if stored != old.dataType:
        _check_not_identity(old)
        types = [parse_type(str(each.jsonValue())) for each in (old.dataType, stored)]
        if not (alteration.layout.properties.type_widening and is_widening(*types)):
            raise _unsupported(path, old, StructField(old.name, stored, old.nullable))
        check_independent(alteration, path)
    return as_stored(StructField(old.name, wanted, old.nullable, old.metadata))


def _check_not_identity(field: StructField) -> None:
    """Raise `InvalidCommand` for an identity column, of which name, place and comment change."""
    if IDENTITY_START in field.metadata:
        raise InvalidCommand(
            "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            f"ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns ({field.name})",
        )


def _check_inside(
    alteration: Alteration,
    path: Path,
    old: StructField,
    new: StructField,
    position: Position | None,
) -> None:
    """Raise `InvalidCommand` for what elements, keys and values do not have."""
    _, parent = resolved(alteration.schema, path[:-1], alteration.key)
    if isinstance(parent.dataType, StructType):
        return
    if comment_of(new) is not None:
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
            f"Can't add a comment to {shown_path(path)}. Adding a comment to a map key/value or "
            "array element is not supported",
        )
    if new.nullable != old.nullable or position is not None:
        raise _unsupported(path, old, new)


def _declared(field: StructField) -> str:
    return str(field.metadata.get(LENGTH_KEY) or field.dataType.simpleString())


def _is_up_cast(alteration: Alteration, declared: str, old: DataType, wanted: DataType) -> bool:
    """Whether Spark takes the change for one that loses nothing."""
    before, after = _LENGTH.fullmatch(declared), _LENGTH.fullmatch(wanted.simpleString())
    if after is not None:
        if before is None:
            return False
        grows = int(before["most"]) <= int(after["most"])
        kinds = (before["kind"], after["kind"])
        return grows and kinds not in (("char", "char"), ("varchar", "char"))
    if before is not None:
        return isinstance(wanted, StringType)
    java = alteration.spark._jsparkSession
    cast = java_class(jvm_of(alteration.spark), "org.apache.spark.sql.catalyst.expressions.Cast")
    return bool(cast.canUpCast(*(java.parseDataType(each.json()) for each in (old, wanted))))


def _unsupported(path: Path, old: StructField, new: StructField) -> InvalidCommand:
    shown = [
        each.dataType.simpleString().upper() + ("" if each.nullable else " NOT NULL")
        for each in (old, new)
    ]
    return InvalidCommand(
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        f"ALTER TABLE CHANGE COLUMN is not supported for changing column {shown_path(path)} from "
        f"{shown[0]} to {shown[1]}",
    )
