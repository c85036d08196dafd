"""The commands as `tidegate.Table` has them."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession

from tidegate.handle import TableHandle
from tidegate.spark.commands import delete as deletes
from tidegate.spark.commands import update as updates
from tidegate.spark.commands.arguments import assigned_columns, condition_column
from tidegate.spark.commands.builder import MergeBuilder
from tidegate.spark.commands.outcome import Changed
from tidegate.spark.errors import UnsupportedSession


def delete(
    table: TableHandle,
    where: Column | str | None,
    *,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> Changed:
    """As `Table.delete`."""
    return deletes.delete(
        table,
        _session(spark),
        condition_column(where, name="'where'"),
        user_metadata=user_metadata,
        retries=retries,
    )


def update(
    table: TableHandle,
    values: Mapping[str, Column | str],
    where: Column | str | None,
    *,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> Changed:
    """As `Table.update`."""
    return updates.update(
        table,
        _session(spark),
        assigned_columns(values, name="'values'"),
        condition_column(where, name="'where'"),
        user_metadata=user_metadata,
        retries=retries,
    )


def merge(
    table: TableHandle, source: DataFrame, on: Column | str, *, alias: str | None
) -> MergeBuilder:
    """As `Table.merge`."""
    return MergeBuilder(table, source, on, alias=alias)


def _session(spark: SparkSession | None) -> SparkSession:
    found = SparkSession.getActiveSession() if spark is None else spark
    if found is None:
        raise UnsupportedSession("this thread has no Spark session; expected one as spark=")
    return found
