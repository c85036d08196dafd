"""Predicates where Spark and the service both have to judge them.

The service prunes files by a predicate's text, and reads times in UTC; Spark decides about rows,
and reads times in the session's zone. What the two could read differently is not pruned by.
"""

import re
from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.errors import InvalidRequest
from tidegate.spark.layout import TableLayout
from tidegate.spark.partitions import typed_partitions
from tidegate_protocol.data_types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from tidegate_protocol.problems import Code

_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "+00:00", "-00:00"})
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_WORD = re.compile(r"\w+")
_POSITION = "__tidegate_position"


def prunable(where: str | None, layout: TableLayout, spark: SparkSession) -> str | None:
    """The predicate if the service reads it as this session does; None if it may not, so that
    every file has to be looked at.

    Outside of UTC that is any predicate that names a column of dates or times, or says something
    of them: it may well agree, but a file too few would be rows lost.
    """
    if where is None or str(spark.conf.get("spark.sql.session.timeZone")).lower() in _UTC:
        return where
    of_times = {
        name.lower()
        for leaf in layout.schema.leaves()
        if leaf.type in _TIMES
        for name in _WORD.findall(leaf.path[-1])
    }
    for word in _WORD.findall(where.lower()):
        if word in of_times or "time" in word or "date" in word:
            return None
    return where


def matching(df: DataFrame, where: str) -> DataFrame:
    """The rows for which the predicate is true. Raises `InvalidRequest` where Spark cannot read
    it over these columns."""
    try:
        return df.where(F.expr(where))
    except AnalysisException as error:
        raise _invalid(where, error) from error


def partitions_matching(
    partitions: Sequence[Mapping[str, str | None]],
    where: str,
    layout: TableLayout,
    spark: SparkSession,
) -> list[bool]:
    """For each of the given partition values, whether the predicate is true there, by Spark's
    own judgement.

    Raises `InvalidRequest` for a predicate that cannot be read over the partition columns alone.
    """
    typed = typed_partitions(layout, partitions)
    positions = spark.range(len(partitions)).coalesce(1).withColumnRenamed("id", _POSITION)
    position = F.col(_POSITION)
    values = (F.get(array, position.cast("int")).alias(name) for name, array in typed.items())
    try:
        true = positions.select(position, *values).where(F.expr(where)).collect()
    except PySparkException as error:
        raise _invalid(where, error) from error
    matches = {row[_POSITION] for row in true}
    return [number in matches for number in range(len(partitions))]


def _invalid(where: str, error: PySparkException) -> InvalidRequest:
    return InvalidRequest(
        f"the predicate {where!r} cannot be evaluated: {error.getMessage()}",
        code=Code.INVALID_PREDICATE,
        definite=True,
    )
