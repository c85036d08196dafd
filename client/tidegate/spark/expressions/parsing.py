"""SQL texts as the session reads them that they are of: its settings say what quotes and escapes
are."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.expressions.resolution import column_of
from tidegate.spark.storage.hadoop import JavaObject, active, jvm_of


@contextmanager
def parser_of(spark: SparkSession) -> Iterator[JavaObject]:
    """Spark's parser, for calls in the block. Raises `UnsupportedSession` for a session of Spark
    Connect."""
    java = getattr(spark, "_jsparkSession", None)
    if java is None:
        raise UnsupportedSession(
            "commands need a session with Spark's own driver, found one of Spark Connect"
        )
    with active(spark):
        yield java.sessionState().sqlParser()


def parsed(spark: SparkSession, text: str) -> Column:
    """An expression, read once: words such as `TIMESTAMP 'now'` are the same time wherever the
    column is used. Raises `ParseException`."""
    # In parentheses, because Spark takes a name behind an expression: `a = 1 AND` is `a = 1`.
    given = F.expr(f"({text}\n)")
    return column_of(jvm_of(spark), spark._jsparkSession.expression(given._jc))
