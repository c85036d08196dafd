"""Columns and types as SQL text, read by the session's own parser."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.expressions.parsing import parser_of
from tidegate.spark.storage.hadoop import JavaObject
from tidegate_protocol.features.known import (
    CURRENT_DEFAULT,
    IDENTITY_EXPLICIT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from tidegate_protocol.schema.data_types import LENGTH_KEY

_COMMENT = "comment"
FIRST = "FIRST"


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """The place behind a column."""

    column: str

    def __str__(self) -> str:
        return f"AFTER {self.column}"


Position = str | After
"""`FIRST`, or after a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A column as it is defined, in the struct at `parent`, which is empty for the table's own."""

    parent: tuple[str, ...]
    field: StructField
    position: Position | None


def definitions(spark: SparkSession, text: str) -> list[Definition]:
    """The columns of a list as ALTER TABLE ADD COLUMNS takes it. Raises `InvalidCommand`."""
    columns = plan_of(spark, f"ALTER TABLE t ADD COLUMNS ({text})").columnsToAdd()
    return [_definition(columns.apply(i)) for i in range(columns.size())]


def plain_definitions(spark: SparkSession, text: str) -> StructType:
    """The columns of a list as ALTER TABLE REPLACE COLUMNS takes it, without places. Raises
    `InvalidCommand`."""
    columns = plan_of(spark, f"ALTER TABLE t REPLACE COLUMNS ({text})").columnsToAdd()
    return StructType([_definition(columns.apply(i)).field for i in range(columns.size())])


def position_of(spark: SparkSession, text: str) -> Position:
    """`FIRST` or `AFTER column`. Raises `InvalidCommand`."""
    found = definitions(spark, f"c INT {text}")
    first = found[0]
    is_alone = len(found) == 1 and first.field == StructField("c", IntegerType())
    if not is_alone or first.position is None:
        raise InvalidCommand(
            "PARSE_SYNTAX_ERROR", f"expected FIRST, or AFTER and a column, found {text!r}"
        )
    return first.position


def type_of(spark: SparkSession, text: str) -> DataType:
    """A type, `char(n)` and `varchar(n)` as such. Raises `InvalidCommand`."""
    try:
        with parser_of(spark) as parser:
            return data_type_of(parser.parseDataType(text))
    except ParseException as error:
        raise of_spark(error) from error


def expression_of(spark: SparkSession, text: str) -> JavaObject:
    """An expression, not resolved. Raises `InvalidCommand`."""
    try:
        with parser_of(spark) as parser:
            return parser.parseExpression(text)
    except ParseException as error:
        raise of_spark(error) from error


def names_in(expression: JavaObject) -> Iterator[tuple[str, ...]]:
    """The names in an expression that is not resolved; those of lambda variables are among them."""
    if expression.getClass().getSimpleName() in (
        "UnresolvedAttribute",
        "UnresolvedNamedLambdaVariable",
    ):
        parts = expression.nameParts()
        yield tuple(str(parts.apply(i)) for i in range(parts.size()))
    children = expression.children()
    for i in range(children.size()):
        yield from names_in(children.apply(i))


def as_stored(field: StructField) -> StructField:
    """The column as the log has it: `char(n)` and `varchar(n)` are strings, with what they were
    declared as in the metadata."""
    metadata = {name: value for name, value in field.metadata.items() if name != LENGTH_KEY}
    stored = without_lengths(field.dataType)
    if stored != field.dataType:
        metadata[LENGTH_KEY] = field.dataType.simpleString()
    return StructField(field.name, stored, field.nullable, metadata)


def without_lengths(data_type: DataType) -> DataType:
    """The type with strings for `char(n)` and `varchar(n)`, at any depth."""
    match data_type:
        case CharType() | VarcharType():
            return StringType()
        case StructType():
            return StructType(
                [
                    StructField(f.name, without_lengths(f.dataType), f.nullable, f.metadata)
                    for f in data_type.fields
                ]
            )
        case ArrayType():
            return ArrayType(without_lengths(data_type.elementType), data_type.containsNull)
        case MapType():
            return MapType(
                without_lengths(data_type.keyType),
                without_lengths(data_type.valueType),
                data_type.valueContainsNull,
            )
    return data_type


def identity_metadata(start: int, step: int, *, by_default: bool) -> dict[str, Any]:
    """What the log says of an identity column; `by_default`, writers may give numbers, too."""
    return {IDENTITY_START: start, IDENTITY_STEP: step, IDENTITY_EXPLICIT: by_default}


def with_comment(field: StructField, comment: str) -> StructField:
    """The column with a comment."""
    metadata = {**field.metadata, _COMMENT: comment}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def comment_of(field: StructField) -> str | None:
    """The column's comment; None for none."""
    found = field.metadata.get(_COMMENT)
    return None if found is None else str(found)


def _definition(column: JavaObject) -> Definition:
    metadata = {}
    if column.comment().isDefined():
        metadata[_COMMENT] = str(column.comment().get())
    if column.default().isDefined():
        metadata[CURRENT_DEFAULT] = str(column.default().get().originalSQL())
    data_type = data_type_of(column.dataType())
    field = StructField(str(column.colName()), data_type, bool(column.nullable()), metadata)
    parent: tuple[str, ...] = ()
    if column.path().isDefined():
        names = column.path().get().name()
        parent = tuple(str(names.apply(i)) for i in range(names.size()))
    position = None
    if column.position().isDefined():
        place = column.position().get().position()
        is_first = place.getClass().getSimpleName() == "First"
        position = FIRST if is_first else After(column=str(place.column()))
    return Definition(parent=parent, field=as_stored(field), position=position)


def data_type_of(java: JavaObject) -> DataType:
    """A type of Spark's own, in Python."""
    column = {"name": "c", "type": json.loads(java.json()), "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [column]}).fields[0].dataType


def plan_of(spark: SparkSession, text: str) -> JavaObject:
    """A statement as Spark's parser has it, not resolved. Raises `InvalidCommand`."""
    try:
        with parser_of(spark) as parser:
            return parser.parsePlan(text)
    except ParseException as error:
        raise of_spark(error) from error
