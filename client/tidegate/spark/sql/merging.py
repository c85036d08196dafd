"""MERGE, read clause by clause into the builder."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from sqlglot.tokenizer_core import TokenType

from tidegate.spark.expressions.arguments import expression
from tidegate.spark.expressions.errors import conflicting
from tidegate.spark.merge.builder import MergeBuilder
from tidegate.spark.sql.queries import query_of
from tidegate.spark.sql.rows import assignments
from tidegate.spark.sql.session import Session, counts, in_backticks
from tidegate.spark.sql.statement import Statement


def merge_into(statement: Statement, session: Session) -> DataFrame:
    """MERGE [WITH SCHEMA EVOLUTION] INTO table [AS alias] USING source [AS alias] ON condition
    WHEN ... THEN ...; the source is a name or a query in parentheses."""
    evolves = statement.takes("WITH", "SCHEMA", "EVOLUTION")
    statement.expect("INTO")
    table = session.table(statement.name())
    alias = statement.alias("USING")
    statement.expect("USING")
    source = _source(statement, session)
    statement.expect("ON")
    condition = expression(statement.until("WHEN"))
    builder = MergeBuilder(table, source, condition, alias=alias)
    if evolves:
        builder = builder.withSchemaEvolution()
    while statement.takes("WHEN"):
        builder = _clause(statement, builder)
    statement.end()
    changed = builder.execute(user_metadata=session.user_metadata, retries=session.retries)
    return counts(
        session,
        affected=changed.rows,
        updated=changed.updated,
        deleted=changed.deleted,
        inserted=changed.inserted,
    )


def _source(statement: Statement, session: Session) -> DataFrame:
    if statement.sees_symbol(TokenType.L_PAREN):
        text = statement.in_parentheses(statement.until)
    else:
        text = f"TABLE {in_backticks(statement.name())}"
    alias = statement.alias("ON")
    found = query_of(text, session)
    return found if alias is None else found.alias(alias)


def _clause(statement: Statement, builder: MergeBuilder) -> MergeBuilder:
    """What follows a WHEN."""
    if statement.takes("MATCHED"):
        condition = _condition(statement)
        return _change(
            statement,
            builder.whenMatchedDelete,
            builder.whenMatchedUpdate,
            condition,
            star=builder.whenMatchedUpdateAll,
        )
    statement.expect("NOT", "MATCHED")
    if statement.takes("BY", "SOURCE"):
        condition = _condition(statement)
        return _change(
            statement,
            builder.whenNotMatchedBySourceDelete,
            builder.whenNotMatchedBySourceUpdate,
            condition,
            star=None,
        )
    statement.takes("BY", "TARGET")
    condition = _condition(statement)
    statement.expect("INSERT")
    if statement.takes_symbol(TokenType.STAR):
        return builder.whenNotMatchedInsertAll(condition)
    return builder.whenNotMatchedInsert(condition, _inserted(statement))


def _condition(statement: Statement) -> Column | None:
    found = expression(statement.until("THEN")) if statement.takes("AND") else None
    statement.expect("THEN")
    return found


def _change(
    statement: Statement,
    delete: Callable[[Column | None], MergeBuilder],
    update: Callable[..., MergeBuilder],
    condition: Column | None,
    *,
    star: Callable[[Column | None], MergeBuilder] | None,
) -> MergeBuilder:
    """A DELETE, or an UPDATE; of all columns where the clause has a star."""
    if statement.takes("DELETE"):
        return delete(condition)
    statement.expect("UPDATE", "SET")
    if star is not None and statement.takes_symbol(TokenType.STAR):
        return star(condition)
    return update(condition, assignments(statement, "WHEN"))


def _inserted(statement: Statement) -> dict[str, Column]:
    """`(column, ...) VALUES (value, ...)`."""
    columns = statement.in_parentheses(lambda: statement.listed(statement.column))
    statement.expect("VALUES")
    values = statement.in_parentheses(lambda: statement.listed(statement.item))
    if repeated := sorted({name for name in columns if columns.count(name) > 1}):
        raise conflicting(repeated)
    return dict(zip(columns, map(expression, values), strict=True))
