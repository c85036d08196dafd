"""What an OPTIMIZE is asked to rewrite, and by which columns: checked before any job."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.errors import ParseException
from pyspark.sql import Column

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.commands.target import Target
from tidegate.spark.expressions.assignments import Path, UnknownColumn, name_parts, path_of
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.expressions.parsing import parser_of
from tidegate.spark.expressions.pruning import predicate_text
from tidegate.spark.expressions.resolution import (
    Scope,
    column_of,
    has_subquery,
    row_condition,
)
from tidegate.spark.optimize.settings import CHECK_STATISTICS
from tidegate.spark.storage.hadoop import JavaObject, jvm_of
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import joined, partitions_where


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFilter:
    """Conditions over partition columns, all of which have to be true; none for all partitions.
    They are resolved over the target's columns; `shown` is how Delta's history has them, `pruning`
    what the service reads of them."""

    conditions: tuple[Column, ...]
    shown: tuple[str, ...]
    pruning: str | None

    @classmethod
    def of(cls, target: Target, texts: Sequence[str], *, operation: str) -> Self:
        """Raises `InvalidCommand` for what is no condition over partition columns alone."""
        parsed = [_parsed(target, text) for text in texts]
        for expression in parsed:
            _check_partitions_only(target, expression)
        scope = Scope(target.nothing, target.instant)
        given = (column_of(jvm_of(target.spark), each) for each in parsed)
        resolved = [row_condition(scope, each, operation=operation) for each in given]
        known = (predicate_text(target.spark, target.layout, each.java) for each in resolved)
        return cls(
            conditions=tuple(each.column for each in resolved),
            shown=tuple(str(expression.toString()) for expression in parsed),
            pruning=joined(text for text in known if text is not None),
        )

    def files(self, target: Target) -> list[DataFile]:
        """The live files of its partitions at the version of the target that it is of."""
        found = self.around(target.transaction.table, target.transaction.read_version)
        for condition in self.conditions:
            found = partitions_where(target.nothing, target.layout, found, condition)
        return found

    def around(self, table: TableHandle, version: int) -> list[DataFile]:
        """The files of its partitions, and maybe others. Nothing is recorded as read: rows that
        come to be beside those that are rearranged are nobody's concern."""
        return list(table.scan(self.pruning, version=version).files)

    def parameter(self) -> str:
        """How Delta's history has it."""
        return json_list(self.shown)


def _check_partitions_only(target: Target, expression: JavaObject) -> None:
    if has_subquery(target.spark, expression):
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES",
            "Subquery is not supported in partition predicates",
        )
    columns = target.layout.partition_columns
    known = {name.lower() for name in columns}
    for name in _names(expression):
        if name.lower() not in known:
            raise InvalidCommand(
                "DELTA_NON_PARTITION_COLUMN_REFERENCE",
                f"Predicate references non-partition column '{name}'. Only the partition columns "
                f"may be referenced: [{', '.join(columns)}]",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderColumn:
    """A column, or a field of a struct, to order rows by; `name` is as it was given."""

    name: str
    path: Path

    @property
    def column(self) -> Column:
        """Its value in a row of the table."""
        first, *fields = self.path
        value = quoted(first)
        for field in fields:
            value = value.getField(field)
        return value


def json_list(texts: Sequence[str]) -> str:
    """As Delta writes it, without spaces."""
    return json.dumps(list(texts), separators=(",", ":"), ensure_ascii=False)


def order_columns(
    target: Target, names: Sequence[str], *, checks_statistics: bool
) -> tuple[OrderColumn, ...]:
    """The columns of these names. Raises `InvalidCommand` for a partition column, for one that is
    not there, and, where that is checked, for one without statistics: files cannot be told apart
    by it."""
    layout = target.layout
    partitioning = {column.lower() for column in layout.partition_columns}
    found = []
    for name in names:
        parts = name_parts(target.spark, name)
        if ".".join(parts).lower() in partitioning:
            raise InvalidCommand(
                "DELTA_ZORDERING_ON_PARTITION_COLUMN",
                f"{name} is a partition column. Z-Ordering can only be performed on data columns",
            )
        try:
            path = path_of(parts, layout.spark_schema)
        except (UnknownColumn, InvalidCommand) as error:
            raise InvalidCommand(
                "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
                f"Z-Ordering column {name} does not exist in data schema",
            ) from error
        found.append(OrderColumn(name=".".join(parts), path=path))
    if checks_statistics:
        _check_statistics(layout, found)
    return tuple(found)


def _check_statistics(layout: TableLayout, columns: Sequence[OrderColumn]) -> None:
    known = layout.statistics_columns
    paths = {leaf.path[:length] for leaf in known for length in range(1, len(leaf.path) + 1)}
    if without := [each.name for each in columns if each.path not in paths]:
        raise InvalidCommand(
            "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            f"Z-Ordering on [{', '.join(without)}] will be ineffective, because we currently do "
            "not collect stats for these columns. You can disable this check by setting SET "
            f"{CHECK_STATISTICS} = false",
        )


def _parsed(target: Target, text: str) -> JavaObject:
    try:
        with parser_of(target.spark) as parser:
            return parser.parseExpression(text)
    except ParseException as error:
        raise InvalidCommand(
            "DELTA_FAILED_RECOGNIZE_PREDICATE", f"Cannot recognize the predicate '{text}'"
        ) from error


def _names(parsed: JavaObject) -> list[str]:
    """The columns that an expression names before it is resolved."""
    found = parsed.references().iterator()
    names = []
    while found.hasNext():
        names.append(str(found.next().nameParts().mkString(".")))
    return names
