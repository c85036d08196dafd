"""One-line SQL over the service's tables."""

from typing import TYPE_CHECKING

from tidegate.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sql(
    spark: "SparkSession",
    statement: str,
    *,
    lake: Lake | None = None,
    user_metadata: str | None = None,
    retries: int = 0,
) -> "DataFrame":
    """Run a query over tables of the service, or a statement that changes, rearranges or describes
    one of them, and return the rows that Delta's own returns: `tidegate.sql(spark, "DELETE FROM
    main.air.flights WHERE month = 5")`.

    Tables are named as in `Lake.table`, or ``delta.`place` ``. The service is `lake`, or the one
    that the session or the driver's environment names. `user_metadata` and `retries` are as in
    `Table.delete`, for the statements that change rows or what a table is; one that makes a table
    has no use for either, and OPTIMIZE, REORG and those that replace a table none for `retries`.
    Raises `InvalidCommand` for what is no such statement, before any job, and what the command
    raises. Needs the `spark` extra."""
    from tidegate.spark.sql.run import run  # noqa: PLC0415 - the HTTP client works without Spark

    return run(spark, statement, lake=lake, user_metadata=user_metadata, retries=retries)
