"""Which files a command has to look at: its conditions in words that the service knows, too.

What cannot be said in them is left out. So the predicate that a transaction records as read is true
wherever the command's condition is, and never narrower than what was read.
"""

from collections.abc import Iterable

from pyspark.sql import SparkSession

from tidegate.models import DataFile
from tidegate.spark.expressions.canonical import exact, implied
from tidegate.spark.expressions.instant import is_current
from tidegate.spark.expressions.resolution import (
    conjuncts,
    has_subquery,
    has_user_function,
    names_of,
)
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import LONGEST, joined, otherwise
from tidegate_protocol.log.statistics import FileStatistics, InvalidStatistics
from tidegate_protocol.scan.predicates import InvalidPredicate, parse_predicate


def predicate_text(
    spark: SparkSession, layout: TableLayout, expression: JavaObject, *, longest: int = LONGEST
) -> str | None:
    """What holds of every row of which the expression over the table is true, as the service reads
    it; None where nothing can be said."""
    texts = (
        text
        for part in fixed_parts(spark, expression)
        for text in implied(spark, part, longest=longest)
    )
    return joined((text for text in texts if _is_read(text, layout)), longest=longest)


def fixed_parts(spark: SparkSession, expression: JavaObject) -> list[JavaObject]:
    """What the expression joins by AND, without the parts that may be another each time."""
    if _is_fixed(spark, expression):
        return [expression]
    return [part for part in conjuncts(expression) if _is_fixed(spark, part)]


def names_partitions_only(layout: TableLayout, expression: JavaObject) -> bool:
    """Whether the partition values of a file decide the expression."""
    known = {name.lower() for name in layout.partition_columns}
    return all(name.lower() in known for name in names_of(expression))


def wholly_matching(
    spark: SparkSession, layout: TableLayout, where: JavaObject, files: Iterable[DataFile]
) -> list[DataFile]:
    """The files of which partition values and statistics prove that `where`, the whole condition,
    is true of every row."""
    text = exact(spark, where) if _is_fixed(spark, where) else None
    if text is None:
        return []
    try:
        counter = otherwise(text, layout)
    except InvalidPredicate:
        return []
    return [
        file
        for file in files
        if file.deletion_vector is None
        and (stats := statistics(file)) is not None
        and not counter.may_match(file.partition_values, stats)
    ]


def statistics(file: DataFile) -> FileStatistics | None:
    """What the log says of the rows of a file; None where that is nothing, or cannot be read."""
    if file.stats is None:
        return None
    try:
        return FileStatistics.parse(file.stats)
    except InvalidStatistics:
        return None


def _is_fixed(spark: SparkSession, expression: JavaObject) -> bool:
    """Whether the same row gives the same each time, now and in a job that runs later."""
    return bool(
        expression.deterministic()
        and not has_subquery(spark, expression)
        and not has_user_function(spark, expression)
        and not is_current(spark, expression)
    )


def _is_read(text: str, layout: TableLayout) -> bool:
    try:
        parse_predicate(text, layout.schema, layout.partition_columns)
    except InvalidPredicate:
        return False
    return True
