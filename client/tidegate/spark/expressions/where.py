"""Predicates over a table's rows that are given as text: the `where` of a read, `replace_where`."""

from dataclasses import dataclass
from typing import Self

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.errors import InvalidRequest
from tidegate.spark.expressions.errors import InvalidCommand, words_of
from tidegate.spark.expressions.instant import Instant
from tidegate.spark.expressions.parsing import parsed
from tidegate.spark.expressions.pruning import predicate_text
from tidegate.spark.expressions.resolution import Resolved, Scope
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.plans import columns_of_table
from tidegate_protocol.base.problems import Code


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadPredicate:
    """What the rows of a read are filtered by, in a job that runs later. `column` is the text, read
    once."""

    text: str
    spark: SparkSession
    column: Column

    @classmethod
    def of(cls, spark: SparkSession, text: str) -> Self:
        """Raises `InvalidRequest` for text that is no expression of SQL."""
        return cls(text=text, spark=spark, column=_read(spark, text))

    def pruning(self, layout: TableLayout, *, longest: int) -> str | None:
        """What the service prunes the table's files by (`predicate_text`); None where that is
        nothing, as it always is in Spark Connect. Raises `InvalidRequest` as `rows` does."""
        if not _is_classic(self.spark):
            return None
        scope = Scope(columns_of_table(self.spark, layout), None)
        try:
            condition = scope.condition(self.column)
        except InvalidCommand:
            return None
        except AnalysisException as error:
            # Spark has this beside the table's columns.
            if "_metadata" in self.text.lower():
                return None
            raise _not_evaluated(self.text, error) from error
        return predicate_text(self.spark, layout, condition.java, longest=longest)

    def rows(self, df: DataFrame) -> DataFrame:
        """Those of which it is true. Raises `InvalidRequest` for what is no condition over them."""
        return _where(df, self.column, self.text)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplacePredicate:
    """What a write replaces the rows of. `condition` is the text as resolved over `columns`, the
    table's without rows, so that all jobs of a write ask the same; `given` is the text, read once,
    and `resolved` is None in Spark Connect, where `condition` is resolved by each job."""

    text: str
    spark: SparkSession
    columns: DataFrame
    given: Column
    condition: Column
    resolved: Resolved | None

    @classmethod
    def of(cls, spark: SparkSession, text: str, layout: TableLayout) -> Self:
        """Raises `InvalidRequest` for text that is no condition over the table's columns."""
        given = _read(spark, text, error_class="DELTA_FAILED_RECOGNIZE_PREDICATE")
        if not _is_classic(spark):
            columns = spark.createDataFrame([], layout.spark_schema)
            _where(columns, given, text)
            return cls(
                text=text, spark=spark, columns=columns, given=given, condition=given, resolved=None
            )
        columns = columns_of_table(spark, layout)
        try:
            resolved = Scope(columns, Instant(spark)).condition(given)
        except AnalysisException as error:
            raise _not_evaluated(text, error) from error
        return cls(
            text=text,
            spark=spark,
            columns=columns,
            given=given,
            condition=resolved.column,
            resolved=resolved,
        )

    def pruning(self, layout: TableLayout) -> str | None:
        """As that of a `ReadPredicate`."""
        if self.resolved is None:
            return None
        return predicate_text(self.spark, layout, self.resolved.java)

    def refusal(self, error: PySparkException) -> InvalidRequest:
        """The error for rows over which Spark cannot evaluate it."""
        return _not_evaluated(self.text, error)


def refused(detail: str, *, error_class: str | None = None) -> InvalidRequest:
    """The error for a predicate that cannot be used."""
    return InvalidRequest(
        detail,
        code=Code.INVALID_PREDICATE,
        hint="give a condition of Spark SQL over the table's columns",
        definite=True,
        error_class=error_class,
    )


def _read(spark: SparkSession, text: str, *, error_class: str | None = None) -> Column:
    try:
        return parsed(spark, text) if _is_classic(spark) else F.expr(text)
    except AnalysisException as error:
        raise refused(
            f"Cannot recognize the predicate {text!r}: {words_of(error)}",
            error_class=error_class or error.getCondition(),
        ) from error


def _where(df: DataFrame, condition: Column, text: str) -> DataFrame:
    try:
        found = df.where(condition)
        # Connect resolves what it is asked for.
        found.schema  # noqa: B018
    except AnalysisException as error:
        raise _not_evaluated(text, error) from error
    return found


def _not_evaluated(text: str, error: PySparkException) -> InvalidRequest:
    return refused(
        f"the predicate {text!r} cannot be evaluated: {words_of(error)}",
        error_class=error.getCondition(),
    )


def _is_classic(spark: SparkSession) -> bool:
    return getattr(spark, "_jsparkSession", None) is not None
