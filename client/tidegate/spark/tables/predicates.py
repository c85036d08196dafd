"""Predicates over partition values, and the opposite of a predicate.

The data source has no session where it commits: it takes what says the same in any zone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.errors import InvalidRequest
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import as_column
from tidegate.spark.tables.partitions import typed_partitions
from tidegate.spark.tables.plans import with_columns_of
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Add, PartitionValues
from tidegate_protocol.scan.predicates import (
    InvalidPredicate,
    Predicate,
    depends_on_zone,
    parse_predicate,
)

_QUOTED = re.compile("'[^']*'|`[^`]*`")
"""Texts, and names."""
_POSITION = "__tidegate_position"
LONGEST = 4_000
"""Bytes of a predicate. The service reads a longer one for long, with the row locked."""
LONGEST_UNRECORDED = 20_000
"""Bytes of one that no transaction records. The service reads 64 KiB, and 16,384 terms, which are
no shorter than two characters."""


def joined(parts: Iterable[str], *, longest: int = LONGEST) -> str | None:
    """The conditions in one, without those that would make it too long."""
    found = ""
    for part in parts:
        text = f"{found} AND {part}" if found else part
        if len(text.encode()) <= longest:
            found = text
    return found or None


def partitions_where(
    columns: DataFrame, layout: TableLayout, files: Sequence[Add], condition: Column
) -> list[Add]:
    """The files in whose partitions a condition is true, by Spark's own judgement; it is resolved
    over `columns`, the table's, and names partition columns alone."""
    partitions = list({tuple(file.partition_values.items()): None for file in files})
    if not partitions:
        return []
    arrays = typed_partitions(layout.physical, [dict(values) for values in partitions])
    numbers = columns.sparkSession.range(len(partitions)).coalesce(1)
    number = F.col("id").cast("int")
    values = (
        as_column(F.get(array, number), layout.spark_schema[name])
        for name, array in zip(layout.partition_columns, arrays.values(), strict=True)
    )
    found = with_columns_of(
        columns.select(*map(quoted, layout.partition_columns)),
        numbers.select(*values, F.col("id").alias(_POSITION)),
    )
    true = {row[0] for row in found.where(condition).select(_POSITION).collect()}
    chosen = {values for number, values in enumerate(partitions) if number in true}
    return [file for file in files if tuple(file.partition_values.items()) in chosen]


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
        """Raises `InvalidRequest` for a predicate that no partition of the table decides, and as
        `check_same_anywhere` does."""
        try:
            is_true = parse_predicate(where, layout.schema, layout.partition_columns)
            is_not = otherwise(where, layout)
        except InvalidPredicate as error:
            raise _refused(where, str(error)) from None
        if not layout.partition_columns or is_true.data_columns:
            raise _refused(where, "it is not over partition columns alone")
        check_same_anywhere(where, layout)
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


def check_same_anywhere(where: str, layout: TableLayout) -> None:
    """Raise `InvalidRequest` for a predicate that sessions may read in other ways: by their time
    zone, and backslashes, double quotes and texts beside texts by the settings of Spark's parser.
    """
    texts = [found for found in _QUOTED.finditer(where) if found[0].startswith("'")]
    beside = any(one.end() == other.start() for one, other in pairwise(texts))
    if beside or "\\" in where or '"' in _QUOTED.sub("", where):
        raise _refused(
            where,
            "sessions read a backslash, a double quote and two texts side by side in several ways; "
            "expected texts in single quotes without them",
        )
    try:
        zoned = depends_on_zone(where, layout.schema)
    except InvalidPredicate as error:
        raise _refused(where, str(error)) from None
    if zoned:
        raise _refused(where, "times depend on the session's time zone, not known here")


def _refused(where: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"the option where ({where}) cannot be evaluated: {why}",
        code=Code.INVALID_PREDICATE,
        hint="filter the DataFrame that is read by .where(...), and overwrite by "
        "Table.overwrite(df, replace_where=...): there Spark evaluates it",
        definite=True,
    )
