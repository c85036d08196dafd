"""What SET assigns to: columns of the table, and fields of structs inside of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from tidegate.spark.expressions.casts import Casts
from tidegate.spark.expressions.errors import InvalidCommand, conflicting
from tidegate.spark.expressions.resolution import Resolved
from tidegate.spark.storage.hadoop import java_class, jvm_of
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.defaults import default_value

Path = tuple[str, ...]
_DEFAULT = re.compile(r"Column<'DEFAULT'>", re.IGNORECASE)


class UnknownColumn(Exception):
    """The first part of a name is no column; who asks knows what to call it."""


@dataclass(slots=True, kw_only=True, eq=False)
class Assigned:
    """What is assigned to a column or field: a value, or values to fields of it."""

    value: Resolved | None = None
    fields: dict[str, "Assigned"] = field(default_factory=dict)


def name_parts(spark: SparkSession, name: str) -> Path:
    """The parts of a name as SQL reads it. Raises `InvalidCommand`."""
    attribute = java_class(
        jvm_of(spark), "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute"
    )
    try:
        parts = attribute.parseAttributeName(name)
    except Exception as error:  # py4j's, of a class that Spark chooses
        raise InvalidCommand(
            "INVALID_ATTRIBUTE_NAME_SYNTAX", f"{name!r} is no name of a column"
        ) from error
    return tuple(str(parts.apply(i)) for i in range(parts.size()))


def without_qualifier(parts: Path, schema: StructType, alias: str) -> Path:
    """The name without the alias of its table in front, which wins over a column of that name."""
    names = {each.name.lower() for each in schema.fields}
    if len(parts) > 1 and parts[0].lower() == alias.lower() and parts[1].lower() in names:
        return parts[1:]
    return parts


def path_of(parts: Path, schema: StructType) -> Path:
    """The column or field of this name, spelt as the table has it.

    Raises `UnknownColumn`, and `InvalidCommand` for a field that is not there or is none of a
    struct.
    """
    known = {each.name.lower(): each for each in schema.fields}
    first = known.get(parts[0].lower())
    if first is None:
        raise UnknownColumn(parts[0])
    found = [first.name]
    inside: DataType = first.dataType
    for part in parts[1:]:
        if not isinstance(inside, StructType):
            raise InvalidCommand(
                "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
                f"Nested field {'.'.join(parts)}: Updating nested fields is only supported for "
                f"StructType, and {'.'.join(found)} is {inside.simpleString()}",
            )
        fields = {each.name.lower(): each for each in inside.fields}
        next_field = fields.get(part.lower())
        if next_field is None:
            names = ", ".join(f"`{each.name}`" for each in inside.fields)
            raise InvalidCommand("FIELD_NOT_FOUND", f"No such struct field `{part}` in {names}")
        found.append(next_field.name)
        inside = next_field.dataType
    return tuple(found)


def with_defaults(
    spark: SparkSession, layout: TableLayout, paths: Sequence[Path], values: Sequence[Column]
) -> list[Column]:
    """The values, with that of the column's default where one is the word DEFAULT."""
    return [
        default_value(layout.spark_schema[path[0]], layout, spark)
        if len(path) == 1
        and path[0] in layout.spark_schema.names
        and _DEFAULT.fullmatch(str(value))
        else value
        for path, value in zip(paths, values, strict=True)
    ]


def tree_of(paths: Sequence[Path], values: Sequence[Resolved]) -> Mapping[str, Assigned]:
    """The assignments by column. Raises `InvalidCommand` where two assign to the same."""
    top = Assigned()
    for path, value in zip(paths, values, strict=True):
        place = top
        for part in path:
            if place.value is not None:
                raise _conflict(path, paths)
            place = place.fields.setdefault(part, Assigned())
        if place.value is not None or place.fields:
            raise _conflict(path, paths)
        place.value = value
    return top.fields


def check_distinct(paths: Sequence[Path]) -> None:
    """Raise `InvalidCommand` where two paths are the same, or one lies in the other."""
    for i, path in enumerate(paths):
        for other in paths[:i]:
            least = min(len(path), len(other))
            if path[:least] == other[:least]:
                raise _conflict(path, paths)


def new_value(
    casts: Casts, assigned: Assigned, current: Column, data_type: DataType, *, name: str
) -> Column:
    """The value of a column or field after the assignment. A struct that was null becomes one,
    of whose other fields each is null."""
    if assigned.value is not None:
        given = assigned.value
        return casts.stored(given.column, given.data_type, data_type, name=name)
    if not isinstance(data_type, StructType):
        raise AssertionError(f"{name} is {data_type.simpleString()}; fields of it were resolved")
    fields = []
    for each in data_type.fields:
        old = current.getField(each.name)
        inner = assigned.fields.get(each.name)
        part = (
            old
            if inner is None
            else new_value(casts, inner, old, each.dataType, name=f"{name}.{each.name}")
        )
        fields.append(part.alias(each.name))
    return F.struct(*fields)


def _conflict(path: Path, paths: Sequence[Path]) -> InvalidCommand:
    same = [".".join(each) for each in paths if each[0] == path[0]]
    return conflicting(same)
