"""A predicate over a table's rows that was given as text, as `where` and `replace_where` are."""

from dataclasses import dataclass
from typing import Self

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.errors import InvalidRequest
from tidegate.spark.expressions.instant import Instant
from tidegate.spark.expressions.parsing import parsed
from tidegate.spark.expressions.pruning import LONGEST, predicate_text
from tidegate.spark.expressions.resolution import Resolved, Scope
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.plans import columns_of_table
from tidegate_protocol.base.problems import Code


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Where:
    """The text and what it was read as, once, in the session that it is of: `TIMESTAMP 'now'` is
    the same wherever it is asked for. `instant` is the time that `current_timestamp()` is `over`
    rows."""

    text: str
    spark: SparkSession
    column: Column
    instant: Instant

    @classmethod
    def of(cls, spark: SparkSession, text: str) -> Self:
        """Raises `InvalidRequest` for text that is no expression of SQL."""
        try:
            column = parsed(spark, text) if _is_classic(spark) else F.expr(text)
        except AnalysisException as error:
            raise refused(
                f"Cannot recognize the predicate {text!r}: {error.getMessage()}"
            ) from error
        return cls(text=text, spark=spark, column=column, instant=Instant(spark))

    @property
    def is_shown(self) -> bool:
        """Whether the session shows what it has resolved: one of Spark Connect does not."""
        return _is_classic(self.spark)

    def resolved(self, frame: DataFrame, *, runs_later: bool = False) -> Resolved:
        """The condition over a DataFrame's columns. Raises `InvalidRequest` for what is none."""
        try:
            return Scope(frame, None if runs_later else self.instant).condition(self.column)
        except AnalysisException as error:
            raise self.not_evaluated(error) from error

    def over(self, frame: DataFrame) -> Column:
        """As `resolved`, in any session: a column of the DataFrame."""
        if self.is_shown:
            return self.resolved(frame).column
        try:
            # Connect resolves what it is asked for.
            frame.where(self.column).schema  # noqa: B018
        except AnalysisException as error:
            raise self.not_evaluated(error) from error
        return self.column

    def pruning(
        self, layout: TableLayout, *, runs_later: bool = False, longest: int = LONGEST
    ) -> str | None:
        """What the service prunes the table's files by (`predicate_text`); None where that is
        nothing, as it always is in Spark Connect. Where the job `runs_later`, a current time is
        that at which it does. Raises `InvalidRequest` for what is no condition over the table's
        columns."""
        if not self.is_shown:
            return None
        condition = self.resolved(columns_of_table(self.spark, layout), runs_later=runs_later)
        return predicate_text(self.spark, layout, condition.java, longest=longest)

    def not_evaluated(self, error: PySparkException) -> InvalidRequest:
        """The error for rows over which Spark cannot evaluate it."""
        return refused(f"the predicate {self.text!r} cannot be evaluated: {error.getMessage()}")


def refused(detail: str, *, error_class: str | None = None) -> InvalidRequest:
    """The error for a predicate that cannot be used."""
    return InvalidRequest(
        detail, code=Code.INVALID_PREDICATE, definite=True, error_class=error_class
    )


def _is_classic(spark: SparkSession) -> bool:
    return getattr(spark, "_jsparkSession", None) is not None
