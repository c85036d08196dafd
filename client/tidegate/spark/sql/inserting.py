"""INSERT."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot.tokenizer_core import TokenType

from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.session_settings import (
    MERGE_SCHEMA,
    PARTITION_OVERWRITE_MODE,
    boolean,
    parsed,
)
from tidegate.spark.sql.queries import QUERY_WORDS, query_of
from tidegate.spark.sql.session import Session, in_backticks
from tidegate.spark.sql.statement import Statement
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.defaults import default_of
from tidegate.spark.write.insert import (
    by_position,
    computed_columns,
    inserted,
    is_default,
    named_fields,
)
from tidegate.spark.write.write import append, overwrite

_BEHIND_CONDITION = [word for word in QUERY_WORDS if word != "FROM"]
"""In conditions, FROM is a word of IS DISTINCT FROM."""


def insert_into(statement: Statement, session: Session) -> DataFrame:
    """INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] table, or OVERWRITE, [PARTITION (column = value,
    column, ...)] [BY NAME | (column, ...)] query; INSERT INTO table [BY NAME] REPLACE WHERE
    condition query"""
    evolves = statement.takes("WITH", "SCHEMA", "EVOLUTION")
    overwrites = statement.takes("OVERWRITE")
    if not overwrites:
        statement.expect("INTO")
    statement.takes("TABLE")
    table = session.table(statement.name())
    head = table.head()
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    fixed = _fixed_values(statement, layout, session)
    by_name = statement.takes("BY", "NAME")
    columns = None if by_name or statement.sees_inside(*QUERY_WORDS) else _columns(statement)
    where = None
    if not overwrites and columns is None and statement.takes("REPLACE"):
        statement.expect("WHERE")
        where = statement.until(*_BEHIND_CONDITION)
    if not statement.sees_inside(*QUERY_WORDS):
        raise statement.refusal("a query or VALUES")
    text = statement.until()
    statement.end()
    if by_name:
        rows = query_of(text, session)
    else:
        more = columns is None and (evolves or _merges_schema(session))
        rows = _rows(text, columns, layout, session, but=fixed, more=more)
    rows = _with_values(rows, fixed)
    options = {"mergeSchema": True} if evolves else {}
    if fixed and overwrites and not _is_dynamic(layout, session, but=fixed):
        where = " AND ".join(f"{in_backticks([name])} <=> {fixed[name]}" for name in fixed)
    write = append if where is None and not overwrites else partial(overwrite, replace_where=where)
    write(
        table,
        rows,
        user_metadata=session.user_metadata,
        retries=session.retries,
        options=options,
    )
    return session.nothing()


def _columns(statement: Statement) -> list[str] | None:
    """The list of columns, where there is one."""
    if not statement.sees_symbol(TokenType.L_PAREN):
        return None
    return statement.in_parentheses(lambda: statement.listed(statement.identifier))


def _fixed_values(statement: Statement, layout: TableLayout, session: Session) -> dict[str, str]:
    """`PARTITION (column = value, column, ...)`: the columns that have a value, as the table spells
    them, each with the expression of that value in the column's type."""
    if not statement.takes("PARTITION"):
        return {}
    known = {name.lower(): name for name in layout.partition_columns}

    def each() -> tuple[str, str | None]:
        name = statement.identifier()
        if name.lower() not in known:
            raise InvalidCommand(
                "NON_PARTITION_COLUMN",
                f"PARTITION clause cannot contain the non-partition column: {name}",
                hint=f"the table is partitioned by {list(layout.partition_columns)}",
            )
        value = statement.item() if statement.takes_symbol(TokenType.EQ) else None
        return known[name.lower()], value

    given = statement.in_parentheses(lambda: statement.listed(each))
    if len(dict(given)) < len(given):
        raise InvalidCommand("DUPLICATE_KEY", f"a column is twice in PARTITION: {given}")
    return {
        name: _cast(value, layout.spark_schema[name].dataType.simpleString(), session)
        for name, value in given
        if value is not None
    }


def _cast(value: str, kind: str, session: Session) -> str:
    """The constant as one of a type, by way of its text, as Spark has it: 1.9 is no INT. Raises
    `InvalidCommand` for one that the type does not have; not every session's CAST does."""
    text = f"CAST(({value}\n) AS STRING)"
    cast = f"CAST({text} AS {kind})"
    try:
        found = session.spark.sql(f"SELECT {text} IS NULL, try_{cast} IS NULL").first()
    except AnalysisException as error:
        raise of_spark(error) from error
    if found is None or found[0] != found[1]:
        raise InvalidCommand(
            "CAST_INVALID_INPUT", f"expected a value of the type {kind}, found {value}"
        )
    return cast


def _with_values(rows: DataFrame, fixed: Mapping[str, str]) -> DataFrame:
    """The rows with the values of PARTITION, which are for columns that the rows do not have."""
    names = {name.lower() for name in fixed}
    if twice := [name for name in rows.columns if name.lower() in names]:
        raise InvalidCommand(
            "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
            f"PARTITION gives {twice} a value, and the query or the list of columns has them, too",
        )
    return rows.withColumns({name: F.expr(value) for name, value in fixed.items()})


def _rows(
    text: str,
    columns: Sequence[str] | None,
    layout: TableLayout,
    session: Session,
    *,
    but: Collection[str],
    more: bool,
) -> DataFrame:
    """The rows of a query, their columns in the order of those that are listed, or of all of the
    table's `but` some, under these names. With `more` there may be further ones at the end."""
    if columns is None:
        fields = [field for field in layout.spark_schema.fields if field.name not in but]
    else:
        fields = named_fields(columns, layout)
    values = _values(text)
    if any(is_default(value) for row in values for value in row):
        rows = inserted(values, [field.name for field in fields], layout, session.spark)
    else:
        rows = by_position(query_of(text, session), fields, layout, more=more)
    if columns is None:
        return rows
    # Where they are not listed, either.
    nulls = {
        name: F.lit(None).cast(layout.spark_schema[name].dataType)
        for name in layout.partition_columns
        if name not in {*rows.columns, *but, *computed_columns(layout)}
        and default_of(layout.spark_schema[name]) is None
    }
    return rows.withColumns(nulls) if nulls else rows


def _values(text: str) -> list[list[str]]:
    """The rows of VALUES with a parenthesis each; none for other queries."""
    statement = Statement(text)
    if not statement.takes("VALUES"):
        return []
    try:
        rows = statement.listed(
            lambda: statement.in_parentheses(lambda: statement.listed(statement.item))
        )
        statement.end()
    except InvalidCommand:
        return []
    return rows


def _merges_schema(session: Session) -> bool:
    return parsed(MERGE_SCHEMA, session.spark.conf.get(MERGE_SCHEMA, None), boolean, False)


def _is_dynamic(layout: TableLayout, session: Session, *, but: Collection[str]) -> bool:
    """Whether the partitions are replaced that the query has rows in: as the session says, and
    where not all of their columns have a value."""
    mode = session.spark.conf.get(PARTITION_OVERWRITE_MODE, "")
    return (
        mode is not None and mode.lower() == "dynamic" and len(but) < len(layout.partition_columns)
    )
