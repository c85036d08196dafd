"""Which statement is run by what."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from tidegate.lake import Lake
from tidegate.spark.delta.finding import lake_of
from tidegate.spark.sql.altering import alter_table, comment_on
from tidegate.spark.sql.cloning import create, replace
from tidegate.spark.sql.converting import convert_to_delta
from tidegate.spark.sql.describing import describe
from tidegate.spark.sql.merging import merge_into
from tidegate.spark.sql.rows import delete_from, update_set
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement
from tidegate.spark.sql.upkeep import generate, optimize_table, reorg_table, restore_table, vacuum

Run = Callable[[Statement, Session], DataFrame]

STATEMENTS: dict[str, Run] = {
    "DELETE": delete_from,
    "UPDATE": update_set,
    "MERGE": merge_into,
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
"""By their first word."""


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
    found = next((each for word, each in STATEMENTS.items() if statement.takes(word)), None)
    if found is None:
        raise statement.unknown(list(STATEMENTS))
    session = Session(
        spark=spark,
        lake=lake_of(spark) if lake is None else lake,
        user_metadata=user_metadata,
        retries=retries,
    )
    return found(statement, session)
