"""What a table asks of each row, as Spark's plan checks it while the rows are written.

The checks are part of a column that is written. As a filter, Spark would move them below a join or
an aggregation, where there are rows that are never written.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, BooleanType, StructField

from tidegate.spark.columns.lengths import within_length
from tidegate.spark.errors import UnsupportedTable, marked
from tidegate.spark.tables.assignment import chosen, quoted, required, unqualified
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import as_column
from tidegate.spark.tables.partitions import empty_as_null
from tidegate_protocol.features.known import GENERATION_EXPRESSION, INVARIANTS
from tidegate_protocol.schema.data_types import LENGTH_KEY

MOST_CHARACTERS = 500
"""Of what is told of a row that breaks a constraint."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constraint:
    """A condition that is true of every row. `name` and `expression` are what messages call it,
    `error_class` is Delta's for a row of which it is not true, and `says` what the message says
    then."""

    name: str
    expression: str
    condition: Column
    error_class: str = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    says: str | None = None


def generated_columns(layout: TableLayout) -> dict[str, str]:
    """The expressions of the table's generated columns, by column."""
    return {
        field.name: field.metadata[GENERATION_EXPRESSION]
        for field in layout.spark_schema.fields
        if GENERATION_EXPRESSION in field.metadata
    }


def constraints_of(layout: TableLayout, *, given: Iterable[str]) -> list[Constraint]:
    """The CHECK constraints and column invariants of the table, and what has to hold of the
    generated columns that are `given`. Null is not true, as in Delta."""
    generated = generated_columns(layout)
    return [
        *(
            Constraint(name=name, expression=f"({sql})", condition=F.expr(sql))
            for name, sql in sorted(layout.properties.constraints.items())
        ),
        *(
            Constraint(name=f"of column {field.name}", expression=f"({sql})", condition=F.expr(sql))
            for field in layout.spark_schema.fields
            if (sql := invariant(field)) is not None
        ),
        *(_is_generated(layout, name, generated[name]) for name in given),
    ]


def invariant(field: StructField) -> str | None:
    """The condition of a column's invariant (PROTOCOL.md, "Column Invariants"); None where there is
    none. Raises `UnsupportedTable` for one that cannot be read."""
    text = field.metadata.get(INVARIANTS)
    if text is None:
        return None
    try:
        expression = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        expression = None
    if not isinstance(expression, str):
        raise UnsupportedTable(
            f'column {field.name} has the {INVARIANTS} {text!r}; expected {{"expression": '
            '{"expression": "<SQL>"}}',
            error_class="DELTA_UNRECOGNIZED_INVARIANT",
        )
    return expression


def with_generated(df: DataFrame, layout: TableLayout, *, missing: Sequence[str]) -> DataFrame:
    """The DataFrame, which has the table's other columns, with its missing generated columns.
    Raises `UnsupportedTable` for an expression that this session cannot read."""
    if not missing:
        return df
    known = generated_columns(layout)
    columns = {}
    for name in missing:
        value = _computed(layout, name, known[name])
        columns[name] = value if layout.spark_schema[name].nullable else required(value, name=name)
    with _told(layout, columns):
        made = (as_column(value, layout.spark_schema[name]) for name, value in columns.items())
        found = df.select("*", *made)
    names = layout.spark_schema.names
    others = [name for name in found.columns if name not in names]
    return found.select(*(quoted(name) for name in [*names, *others]))


def with_computed(df: DataFrame, layout: TableLayout, where: Mapping[str, Column]) -> DataFrame:
    """The DataFrame, which has all of the table's columns, with its generated columns `where` a
    condition is true. Other rows keep what they have: in this session, of another time zone than
    the writer's, it could be something else. Raises as `with_generated` does."""
    known = generated_columns(layout)
    limited = {
        field.name: as_column(within_length(quoted(field.name), field), field)
        for field in layout.spark_schema.fields
        if LENGTH_KEY in field.metadata
    }
    df = unqualified(df)
    if where and limited:
        df = unqualified(chosen(df, {**dict.fromkeys(df.columns), **limited}))
    columns = {
        name: F.when(condition, _computed(layout, name, known[name])).otherwise(quoted(name))
        for name, condition in where.items()
    }
    with _told(layout, columns):
        return df.withColumns(columns)


def check_conditions(df: DataFrame, layout: TableLayout, found: Sequence[Constraint]) -> None:
    """Raise `UnsupportedTable` for a constraint that is no condition over the columns of the
    DataFrame in this session. No job runs."""
    for each in found:
        try:
            types = [field.dataType for field in df.select(each.condition).schema.fields]
        except (AnalysisException, ParseException) as error:
            raise UnsupportedTable(
                f"table {layout.name} has the CHECK constraint {each.name} {each.expression}, "
                f"which this session cannot evaluate: {error.getMessage()}"
            ) from error
        if types != [BooleanType()]:
            raise UnsupportedTable(
                f"table {layout.name} has the CHECK constraint {each.name} {each.expression}; "
                f"expected a condition, found {[each.simpleString() for each in types]}"
            )


def checked(value: Column, df: DataFrame, found: Sequence[Constraint]) -> Column:
    """The value, which raises for a row of the DataFrame of which a constraint is not true
    (`errors.refused_rows`); the first one is named."""
    for each in reversed(found):
        holds = F.coalesce(each.condition, F.lit(False))
        value = F.when(holds, value).otherwise(F.raise_error(_violation(each, df)))
    return value


def _is_generated(layout: TableLayout, name: str, sql: str) -> Constraint:
    return Constraint(
        name="Generated Column",
        expression=f"({name} <=> ({sql}))",
        condition=quoted(name).eqNullSafe(_computed(layout, name, sql)),
    )


def _computed(layout: TableLayout, name: str, sql: str) -> Column:
    """What the table has in a generated column."""
    field = layout.spark_schema[name]
    value = within_length(F.expr(sql).cast(field.dataType), field)
    return empty_as_null(value, field) if name in layout.partition_columns else value


@contextmanager
def _told(layout: TableLayout, columns: Iterable[str]) -> Iterator[None]:
    """Have it told of which generated columns this session cannot read the expressions."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise UnsupportedTable(
            f"table {layout.name} has generated columns, of {list(columns)}, that this session "
            f"cannot compute: {error.getMessage()}"
        ) from error


def _violation(constraint: Constraint, df: DataFrame) -> Column:
    words = {word.lower() for word in _WORD.findall(constraint.expression)}
    fields = [field for field in df.schema.fields if words & _words(field.name)]
    values = [
        F.concat(F.lit(f"\n - {field.name} : "), F.coalesce(_shown(field), F.lit("null")))
        for field in fields
    ]
    says = constraint.says or f"CHECK constraint {constraint.name}"
    text = f"{says} {constraint.expression} violated by row with values:"
    return F.concat(
        F.lit(marked("", error_class=constraint.error_class)),
        F.substring(F.concat(F.lit(text), *values), 1, MOST_CHARACTERS),
    )


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _shown(field: StructField) -> Column:
    value = quoted(field.name)
    return F.hex(value) if isinstance(field.dataType, BinaryType) else value.cast("string")
