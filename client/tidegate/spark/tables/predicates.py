"""Predicates where Spark and the service both have to evaluate them.

The service prunes files by a predicate's text, and reads times in UTC; Spark decides about rows,
and reads times in the session's zone. What the two could read differently is not pruned by. The
data source has no session where it commits: it takes what says the same in any zone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.errors import InvalidRequest
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import as_column
from tidegate.spark.tables.partitions import typed_partitions
from tidegate.spark.tables.zones import session_zone
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import PartitionValues
from tidegate_protocol.scan.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.schema.data_types import DATE, TIMESTAMP, TIMESTAMP_NTZ

_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "+00:00", "-00:00"})
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_OTHER_READINGS = {
    "\\": "spark.sql.parser.escapedStringLiterals",
    '"': "spark.sql.ansi.doubleQuotedIdentifiers",
}
"""Settings of a session with which it reads what has this character otherwise."""
_NEVER_ALIKE = ("${", "\0", "\ufffd")
"""Spark puts a variable in the place of the first, within a text, too; the service refuses the
second; and the third may stand for bytes that are no UTF-8."""
_WORD = re.compile(r"\w+")
_POSITION = "__tidegate_position"


def prunable(where: str | None, layout: TableLayout, spark: SparkSession) -> str | None:
    """The predicate if the service reads it as this session does; None if it may not, so that
    every file has to be looked at.

    That is one with texts or names that the session reads otherwise. Outside of UTC it is any
    predicate that names a column of dates or times, or says something of them: it may well agree,
    but a file too few would be rows lost.
    """
    if where is None or not is_read_alike(where, spark):
        return None
    if session_zone(spark).lower() in _UTC:
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


def is_read_alike(where: str, spark: SparkSession) -> bool:
    """Whether this session reads the texts and names in a predicate as the service does, and as
    Catalyst writes them: with escapes by backslashes, and a text in double quotes."""
    if any(mark in where for mark in _NEVER_ALIKE):
        return False
    return not any(
        mark in where and str(spark.conf.get(setting, "false")).lower() == "true"
        for mark, setting in _OTHER_READINGS.items()
    )


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
    arrays = typed_partitions(layout.physical, partitions)
    typed = dict(zip(layout.partition_columns, arrays.values(), strict=True))
    positions = spark.range(len(partitions)).coalesce(1).withColumnRenamed("id", _POSITION)
    position = F.col(_POSITION)
    values = (
        as_column(F.get(array, position.cast("int")), layout.spark_schema[name])
        for name, array in typed.items()
    )
    try:
        true = positions.select(position, *values).where(F.expr(where)).collect()
    except PySparkException as error:
        raise _invalid(where, error) from error
    matches = {row[_POSITION] for row in true}
    return [number in matches for number in range(len(partitions))]


def otherwise(where: str, layout: TableLayout) -> Predicate:
    """True where the predicate is false or null. Raises `InvalidPredicate`."""
    return parse_predicate(
        f"NOT ({where}) OR ({where}) IS NULL", layout.schema, layout.partition_columns
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPredicate:
    """A predicate over partition columns, evaluated without Spark."""

    where: str
    _is_true: Predicate
    _is_not: Predicate

    @classmethod
    def parse(cls, where: str, layout: TableLayout) -> Self:
        """Raises `InvalidRequest` for a predicate that no partition of the table decides, and for
        one that another time zone may decide otherwise."""
        try:
            is_true = parse_predicate(where, layout.schema, layout.partition_columns)
            is_not = otherwise(where, layout)
        except InvalidPredicate as error:
            raise _refused(where, str(error)) from None
        if not layout.partition_columns or is_true.data_columns:
            raise _refused(where, "it is not over partition columns alone")
        zoned = {leaf.path[0].lower() for leaf in layout.schema.leaves() if leaf.type == TIMESTAMP}
        for word in _WORD.findall(where.lower()):
            if word in zoned or "time" in word:
                raise _refused(where, "times depend on the session's time zone, not known here")
        return cls(where=where, _is_true=is_true, _is_not=is_not)

    def is_true(self, values: PartitionValues) -> bool:
        """Whether it is true in the partition. Raises `InvalidRequest` where that cannot be
        told."""
        may_be, may_be_not = (
            predicate.may_match(values, None) for predicate in (self._is_true, self._is_not)
        )
        if may_be and may_be_not:
            raise _refused(self.where, f"it cannot be told of the partition {dict(values)}")
        return may_be


def _refused(where: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"the option where ({where}) cannot be evaluated: {why}",
        code=Code.INVALID_PREDICATE,
        hint="use Table.overwrite(df, replace_where=...), where Spark evaluates it",
        definite=True,
    )


def _invalid(where: str, error: PySparkException) -> InvalidRequest:
    return InvalidRequest(
        f"the predicate {where!r} cannot be evaluated: {error.getMessage()}",
        code=Code.INVALID_PREDICATE,
        definite=True,
    )
