"""What a statement is run with, and what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from tidegate.lake import Lake
from tidegate.spark.delta.finding import table_at, table_named
from tidegate.table import Table

BY_PATH = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A Spark session, the service, and what every commit of a statement has."""

    spark: SparkSession
    lake: Lake
    user_metadata: str | None
    retries: int

    def table(self, name: Sequence[str]) -> Table:
        """The table of this name, or at the place in ``delta.`place` ``. Raises `InvalidCommand`
        where there is none."""
        if len(name) == 2 and name[0].lower() == BY_PATH:
            return table_at(self.lake, name[1])
        return table_named(self.lake, ".".join(name))

    def nothing(self) -> DataFrame:
        """No rows, as a statement returns them that tells nothing."""
        return self.spark.createDataFrame([], "")


def in_backticks(name: Sequence[str]) -> str:
    """The name as SQL has it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name)


def counts(session: Session, **rows: int | None) -> DataFrame:
    """One row of `num_..._rows`, as Delta's commands return it; those that the log does not tell
    are -1."""
    schema = ", ".join(f"num_{name}_rows BIGINT" for name in rows)
    row = tuple(-1 if count is None else count for count in rows.values())
    return session.spark.createDataFrame([row], schema)
