"""DELETE and UPDATE."""

from pyspark.sql import Column, DataFrame
from sqlglot.tokenizer_core import TokenType

from tidegate.spark.commands.delete import delete
from tidegate.spark.commands.update import update
from tidegate.spark.expressions.arguments import expression
from tidegate.spark.expressions.errors import conflicting
from tidegate.spark.sql.session import Session, counts
from tidegate.spark.sql.statement import Statement


def delete_from(statement: Statement, session: Session) -> DataFrame:
    """DELETE FROM table [AS alias] [WHERE condition]"""
    statement.expect("FROM")
    table = session.table(statement.name())
    alias = statement.alias("WHERE")
    condition = where(statement)
    statement.end()
    changed = delete(
        table,
        session.spark,
        condition,
        alias=alias,
        user_metadata=session.user_metadata,
        retries=session.retries,
    )
    return counts(session, affected=changed.rows)


def update_set(statement: Statement, session: Session) -> DataFrame:
    """UPDATE table [AS alias] SET column = value, ... [WHERE condition]"""
    table = session.table(statement.name())
    alias = statement.alias("SET")
    statement.expect("SET")
    values = assignments(statement, "WHERE")
    condition = where(statement)
    statement.end()
    changed = update(
        table,
        session.spark,
        values,
        condition,
        alias=alias,
        user_metadata=session.user_metadata,
        retries=session.retries,
    )
    return counts(session, affected=changed.rows)


def where(statement: Statement) -> Column | None:
    """The condition behind WHERE, where there is one."""
    return expression(statement.until()) if statement.takes("WHERE") else None


def assignments(statement: Statement, *stops: str) -> dict[str, Column]:
    """`column = value, ...` up to the next of these words."""
    found: dict[str, Column] = {}

    def assignment() -> None:
        column = statement.column()
        statement.expect_symbol(TokenType.EQ, "=")
        if column in found:
            raise conflicting([column])
        found[column] = expression(statement.until(*stops, symbol=TokenType.COMMA))

    statement.listed(assignment)
    return found
