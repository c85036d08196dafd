"""What a statement is run with, and what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tidegate.lake import Lake
from tidegate.spark.delta.finding import table_at, table_named
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.table import Table

_BY_PATH = "delta"
_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
"""How Spark says that it knows no table or view of a name; its own catalog has no names of three
parts."""


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
        if len(name) == 2 and name[0].lower() == _BY_PATH:
            return table_at(self.lake, name[1])
        return table_named(self.lake, ".".join(name))

    def rows(self, name: Sequence[str], alias: str | None) -> DataFrame:
        """The rows of a view or table that Spark knows by this name, or else of the service's."""
        quoted = ".".join(f"`{part.replace('`', '``')}`" for part in name)
        try:
            found = self.spark.table(quoted)
        except AnalysisException as error:
            if error.getCondition() not in _UNKNOWN:
                raise
            table = self._table_beside(name, quoted)
            return table.read(self.spark).alias(alias or name[-1])
        return found if alias is None else found.alias(alias)

    def nothing(self) -> DataFrame:
        """No rows, as a statement returns them that tells nothing."""
        return self.spark.createDataFrame([], "")

    def _table_beside(self, name: Sequence[str], quoted: str) -> Table:
        try:
            return self.table(name)
        except InvalidCommand as error:
            raise InvalidCommand(
                "TABLE_OR_VIEW_NOT_FOUND",
                f"neither the session nor the service has a table or view {quoted}",
            ) from error


def counts(session: Session, **rows: int | None) -> DataFrame:
    """One row of `num_..._rows`, as Delta's commands return it; those that the log does not tell
    are -1."""
    schema = ", ".join(f"num_{name}_rows BIGINT" for name in rows)
    row = tuple(-1 if count is None else count for count in rows.values())
    return session.spark.createDataFrame([row], schema)
