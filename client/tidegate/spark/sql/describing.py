"""DESCRIBE HISTORY and DESCRIBE DETAIL."""

from pyspark.sql import DataFrame

from tidegate.spark.delta import descriptions
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement


def describe(statement: Statement, session: Session) -> DataFrame:
    """DESCRIBE HISTORY table [LIMIT n], and DESCRIBE DETAIL table"""
    if statement.takes("DETAIL"):
        table = session.table(statement.name())
        statement.end()
        return descriptions.detail(table, session.spark)
    statement.expect("HISTORY")
    table = session.table(statement.name())
    limit = statement.integer() if statement.takes("LIMIT") else None
    statement.end()
    return descriptions.history(table, session.spark, limit)
