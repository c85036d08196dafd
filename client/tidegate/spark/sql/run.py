"""Which statement is run by what."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from tidegate.lake import Lake
from tidegate.spark.delta.finding import lake_of
from tidegate.spark.sql.altering import alter_table, comment_on
from tidegate.spark.sql.cloning import create, replace
from tidegate.spark.sql.converting import convert_to_delta
from tidegate.spark.sql.describing import describe
from tidegate.spark.sql.inserting import insert_into
from tidegate.spark.sql.merging import merge_into
from tidegate.spark.sql.queries import QUERY_WORDS, query_of, with_views
from tidegate.spark.sql.rows import delete_from, update_set
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement
from tidegate.spark.sql.upkeep import generate, optimize_table, reorg_table, restore_table, vacuum

Run = Callable[[Statement, Session], DataFrame]

_READING: dict[str, Run] = {
    "INSERT": insert_into,
    "DELETE": delete_from,
    "UPDATE": update_set,
    "MERGE": merge_into,
}
"""Statements with queries in them, by their first word."""
_OTHERS: dict[str, Run] = {
    "CREATE": create,
    "REPLACE": replace,
    "CONVERT": convert_to_delta,
    "OPTIMIZE": optimize_table,
    "REORG": reorg_table,
    "RESTORE": restore_table,
    "ALTER": alter_table,
    "COMMENT": comment_on,
    "VACUUM": vacuum,
    "GENERATE": generate,
    "DESCRIBE": describe,
    "DESC": describe,
}
"""The others. What CREATE reads, `make` looks for."""


def run(
    spark: SparkSession,
    text: str,
    *,
    lake: Lake | None,
    user_metadata: str | None,
    retries: int,
) -> DataFrame:
    """As `tidegate.sql`."""
    statement = Statement(text)
    is_query = statement.sees_inside(*QUERY_WORDS)
    word = next((word for word in _READING | _OTHERS if statement.takes(word)), None)
    if word is None and not is_query:
        raise statement.unknown([*QUERY_WORDS, *_READING, *_OTHERS])
    session = Session(
        spark=spark,
        lake=lake_of(spark) if lake is None else lake,
        user_metadata=user_metadata,
        retries=retries,
    )
    if word in _OTHERS:
        return _OTHERS[word](statement, session)
    with with_views(statement.text, session) as with_names:
        if word is None:
            return query_of(with_names, session)
        statement = Statement(with_names)
        statement.expect(word)
        return _READING[word](statement, session)
