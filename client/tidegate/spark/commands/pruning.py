"""Which files a command has to look at: its conditions in words that the service knows, too.

What cannot be said in them is left out. So the predicate that a transaction records as read is true
wherever the command's condition is, and never narrower than what was read.
"""

import re
from collections.abc import Iterable

from pyspark.sql import SparkSession

from tidegate.models import DataFile
from tidegate.spark.expressions.resolution import (
    conjuncts,
    has_subquery,
    has_user_function,
    names_of,
)
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import otherwise, prunable
from tidegate_protocol.log.statistics import FileStatistics, InvalidStatistics
from tidegate_protocol.scan.predicates import InvalidPredicate, parse_predicate

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST = 4_000
"""Characters of a predicate. The service reads a longer one for long, with the row locked."""


def predicate_text(
    spark: SparkSession, layout: TableLayout, alias: str, expressions: Iterable[JavaObject]
) -> str | None:
    """What holds of every row of which all the expressions over the table are true, as the service
    reads it; None where nothing can be said."""
    parts = []
    for expression in expressions:
        for part in conjuncts(expression):
            text = _text(spark, layout, alias, part)
            if text is not None:
                parts.append(text)
    return joined(parts)


def joined(parts: Iterable[str]) -> str | None:
    """The conditions in one, without those that would make it too long."""
    found = ""
    for part in parts:
        text = f"{found} AND ({part})" if found else f"({part})"
        if len(text) <= LONGEST:
            found = text
    return found or None


def without_alias(sql: str, alias: str) -> str:
    """Catalyst's SQL text with the columns of one side by their own names."""
    prefix = alias if _PLAIN.fullmatch(alias) else "`" + alias.replace("`", "``") + "`"
    pattern = re.compile(
        r"(?P<alias>(?<![\w.`])" + re.escape(prefix) + r"\.)"
        r"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`",
        re.DOTALL,
    )
    return pattern.sub(lambda found: "" if found["alias"] else found[0], sql)


def names_partitions_only(layout: TableLayout, expression: JavaObject) -> bool:
    """Whether the partition values of a file decide the expression."""
    known = {name.lower() for name in layout.partition_columns}
    return all(name.lower() in known for name in names_of(expression))


def wholly_matching(
    spark: SparkSession, layout: TableLayout, where: str, files: Iterable[DataFile]
) -> list[DataFile]:
    """The files of which partition values and statistics prove that `where`, the whole condition,
    is true of every row."""
    if prunable(where, layout, spark) is None:
        return []
    try:
        counter = otherwise(where, layout)
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


def _text(
    spark: SparkSession, layout: TableLayout, alias: str, expression: JavaObject
) -> str | None:
    if not expression.deterministic() or has_subquery(spark, expression):
        return None
    if has_user_function(spark, expression):
        return None
    sql = without_alias(str(expression.sql()), alias)
    try:
        parse_predicate(sql, layout.schema, layout.partition_columns)
    except InvalidPredicate:
        return None
    return prunable(sql, layout, spark)
