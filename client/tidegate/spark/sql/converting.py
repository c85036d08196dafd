"""CONVERT TO DELTA."""

from pyspark.sql import DataFrame

from tidegate.spark.alter.definitions import plain_definitions
from tidegate.spark.convert.convert import convert, place_of
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement
from tidegate.table import Table


def convert_to_delta(statement: Statement, session: Session) -> DataFrame:
    """CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (column type, ...)] AS
    catalog.schema.table"""
    statement.expect("TO", "DELTA")
    place = place_of(statement.name())
    with_statistics = not statement.takes("NO", "STATISTICS")
    partitions = None
    if statement.takes("PARTITIONED", "BY"):
        partitions = statement.in_parentheses(statement.until)
    statement.expect("AS")
    name = ".".join(statement.name())
    statement.end()
    convert(
        session.lake.connection,
        session.spark,
        place,
        name=name,
        partition_schema=None
        if partitions is None
        else plain_definitions(session.spark, partitions),
        with_statistics=with_statistics,
        handle=Table,
        user_metadata=session.user_metadata,
    )
    return session.nothing()
