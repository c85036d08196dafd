"""OPTIMIZE as it is built, by the names of Delta's `DeltaOptimizeBuilder`."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from tidegate.handle import TableHandle
from tidegate.spark.optimize.optimize import optimize


class DeltaOptimizeBuilder:
    """What `DeltaTable.optimize` begins: Delta's own builder, coordinated.

    What it cannot make sense of raises `InvalidCommand`, an `AnalysisException` with Delta's error
    class, before any job.
    """

    def __init__(
        self, spark: SparkSession, table: TableHandle, *, where: tuple[str, ...] = ()
    ) -> None:
        self._spark = spark
        self._table = table
        self._where = where

    def where(self, partitionFilter: str) -> "DeltaOptimizeBuilder":
        """Only the partitions in which a predicate over partition columns is true; of several
        calls, in which all are. Raises `TypeError` for what is no text."""
        if not isinstance(partitionFilter, str):
            raise TypeError(
                f"the partition filter must be str, found {partitionFilter!r} of type "
                f"{type(partitionFilter)}"
            )
        where = (*self._where, partitionFilter)
        return DeltaOptimizeBuilder(self._spark, self._table, where=where)

    def executeCompaction(self) -> DataFrame:
        """Compact small files. One row: the table's `path`, and `metrics` as Delta's."""
        return optimize(self._table, self._spark, where=self._where).frame(self._spark)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Write all rows so that those which are near in these columns share files. The row is as
        that of `executeCompaction`. Raises `TypeError` for names that are no texts, and
        `ValueError` for none."""
        names = z_order_names(cols)
        found = optimize(self._table, self._spark, where=self._where, z_order_by=names)
        return found.frame(self._spark)


def z_order_names(cols: Sequence[str | Sequence[str]]) -> list[str]:
    """The names, which may be given as one list, too."""
    given = list(cols)
    if len(given) == 1 and isinstance(given[0], list | tuple):
        given = list(given[0])
    names = []
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"Z-order column must be str. Found {name} with type {type(name)}")
        names.append(name)
    if not names:
        raise ValueError("expected columns to Z-order by, found none")
    return names
