"""The commands as `tidegate.Table` has them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from pyspark.sql import Column, DataFrame, SparkSession

from tidegate.handle import TableHandle
from tidegate.spark.alter.alter import Alter
from tidegate.spark.application import current_session
from tidegate.spark.clone import clone as clones
from tidegate.spark.clone.clone import Cloned, CloneKind, Target
from tidegate.spark.clone.source import source_of
from tidegate.spark.commands import delete as deletes
from tidegate.spark.commands import restore as restores
from tidegate.spark.commands import update as updates
from tidegate.spark.commands.making import Making
from tidegate.spark.commands.outcome import Changed
from tidegate.spark.commands.restore import Restored
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.expressions.arguments import assigned_columns, condition_column
from tidegate.spark.merge.builder import MergeBuilder
from tidegate.spark.optimize import compute_statistics as statistics
from tidegate.spark.optimize import optimize as optimizing
from tidegate.spark.optimize.builder import z_order_names
from tidegate.spark.optimize.compute_statistics import ComputedStatistics
from tidegate.spark.optimize.metrics import Optimized

T = TypeVar("T", bound=TableHandle)


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


def restore(
    table: TableHandle,
    *,
    version: int | None,
    timestamp: datetime | int | str | None,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> Restored:
    """As `Table.restore`."""
    return restores.restore(
        table,
        _session(spark),
        version=version,
        timestamp=timestamp,
        user_metadata=user_metadata,
        retries=retries,
    )


def clone(
    table: T,
    name: str,
    *,
    shallow: bool,
    version: int | None,
    timestamp: datetime | int | str | None,
    replace: bool,
    properties: Mapping[str, str],
    location: str | None,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> Cloned[T]:
    """As `Table.clone`."""
    found = _session(spark)
    target = Target(
        name=name,
        kind=CloneKind.SHALLOW if shallow else CloneKind.DEEP,
        making=Making.CREATE_OR_REPLACE if replace else Making.CREATE,
        properties=properties,
        location=location,
    )
    return clones.clone(
        table.connection,
        found,
        lambda: source_of(table, found, version=version, timestamp=timestamp),
        target,
        handle=type(table),
        user_metadata=user_metadata,
        retries=retries,
    )


def alter(
    table: TableHandle, *, spark: SparkSession | None, user_metadata: str | None, retries: int
) -> Alter:
    """As `Table.alter`."""
    return Alter(table, _session(spark), user_metadata=user_metadata, retries=retries)


def compute_statistics(
    table: TableHandle,
    where: str | None,
    *,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> ComputedStatistics:
    """As `Table.compute_statistics`."""
    return statistics.compute_statistics(
        table,
        _session(spark),
        where=[] if where is None else [where],
        user_metadata=user_metadata,
        retries=retries,
    )


def optimize(
    table: TableHandle,
    where: str | None,
    z_order_by: str | Sequence[str] | None,
    *,
    is_full: bool,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> Optimized:
    """As `Table.optimize`."""
    return optimizing.optimize(
        table,
        _session(spark),
        where=[] if where is None else [where],
        z_order_by=[] if z_order_by is None else z_order_names([z_order_by]),
        is_full=is_full,
        user_metadata=user_metadata,
        retries=retries,
    )


def reorg(
    table: TableHandle,
    where: str | None,
    *,
    spark: SparkSession | None,
    user_metadata: str | None,
    retries: int,
) -> Optimized:
    """As `Table.reorg`."""
    return optimizing.reorg(
        table,
        _session(spark),
        where=[] if where is None else [where],
        user_metadata=user_metadata,
        retries=retries,
    )


def _session(spark: SparkSession | None) -> SparkSession:
    found = current_session() if spark is None else spark
    if found is None:
        raise UnsupportedSession("this process has no Spark session; expected one as spark=")
    return found
