"""The source of a MERGE: read several times as if it were once, and what its values tell of the
rows that can match.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from tidegate.spark.commands.target import Target
from tidegate.spark.expressions.canonical import column_text, literal
from tidegate.spark.expressions.instant import is_current, with_words
from tidegate.spark.expressions.pruning import names_partitions_only
from tidegate.spark.expressions.resolution import (
    column_of,
    conjuncts,
    has_user_function,
    names_of,
)
from tidegate.spark.merge.plan import MergePlan
from tidegate.spark.storage.hadoop import JavaObject, jvm_of
from tidegate.spark.tables.plans import nodes_of

_FIXED = frozenset(
    {"LocalRelation", "OneRowRelation", "Range"}
    | {"Filter", "Project", "SubqueryAlias", "Union", "View"}
)
"""Nodes of a plan whose rows are the same each time. Other leaves may read what changes meanwhile,
and other nodes (`limit`, `dropDuplicates`, window functions) choose by the order in which rows
come."""
_INTEGRAL = (ByteType, ShortType, IntegerType, LongType)
_MOST_VALUES = 200
_LONGEST_TEXT = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeSource:
    """The rows of a source, which are the same each time. `materialized_ms` is how long that
    took."""

    frame: DataFrame
    materialized_ms: int

    @classmethod
    def of(cls, frame: DataFrame) -> Self:
        """Keep the rows in the executors, unless the plan always makes the same ones."""
        started = time.monotonic()
        plan = frame._jdf.queryExecution().analyzed()
        spark = frame.sparkSession
        # Functions of users often say that they are deterministic, and are not.
        moves = is_current(spark, plan) or has_user_function(spark, plan)
        moves = moves or not with_words(spark, plan).fastEquals(plan)
        if moves or not plan.deterministic() or not all(map(_is_fixed, nodes_of(plan))):
            frame = frame.localCheckpoint()
        return cls(frame=frame, materialized_ms=round((time.monotonic() - started) * 1000))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fact:
    """What is true of every row of the table that can match a row of the source: in the service's
    words, None where they are too few, and over the table's rows."""

    text: str | None
    is_true: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """How many rows the source has, and what follows from its values."""

    rows: int
    known: Sequence[Fact]

    @classmethod
    def of(cls, plan: MergePlan, source: DataFrame, target: Target, *, prunes: bool) -> Self:
        """Of the source's rows, in one job, and one more for each partition column that the source
        names a value of."""
        keys = _keys(plan, target) if prunes else []
        aggregates = [F.count(F.lit(1))]
        for key in keys:
            aggregates += [key.collected(F.min(key.source)), key.collected(F.max(key.source))]
        found = source.agg(*aggregates).collect()[0]
        known = []
        for i, key in enumerate(keys):
            least, most = found[1 + 2 * i], found[2 + 2 * i]
            fact = _values(source, key) if key.is_partition else None
            known.append(fact or _bounds(key, least, most))
        return cls(rows=found[0], known=[fact for fact in known if fact is not None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Key:
    """An equality of the condition: a column of the table and the source's side."""

    text: str
    own: Column
    source: Column
    data_type: DataType
    is_partition: bool

    def collected(self, value: Column) -> Column:
        """A value of the source's side as the driver takes it: Python has no dates behind the year
        9999."""
        return value.cast("string") if isinstance(self.data_type, DateType) else value

    def literal(self, value: object) -> str | None:
        """The service's text of a value that was collected; None where there is none."""
        text = str(value)
        return (
            literal(str(self.data_type.jsonValue()), text) if len(text) <= _LONGEST_TEXT else None
        )

    def column(self, value: object) -> Column:
        """The same for Spark."""
        return F.lit(value).cast(self.data_type)


def _is_fixed(node: JavaObject) -> bool:
    return node.getClass().getSimpleName() in _FIXED


def _keys(plan: MergePlan, target: Target) -> list[_Key]:
    of_target, of_source = plan.of_target, plan.of_source
    jvm = jvm_of(target.spark)
    found = []
    for part in conjuncts(plan.condition.java):
        if part.getClass().getSimpleName() != "EqualTo":
            continue
        for own, other in ((part.left(), part.right()), (part.right(), part.left())):
            if not (_is_column(own) and of_target.covers(own) and of_source.covers(other)):
                continue
            column = column_of(jvm, other)
            data_type = of_source.frame.select(column).schema.fields[0].dataType
            if isinstance(data_type, (*_INTEGRAL, DateType)) or data_type == StringType():
                found.append(
                    _Key(
                        text=column_text(names_of(own)),
                        own=column_of(jvm, own),
                        source=column,
                        data_type=data_type,
                        is_partition=names_partitions_only(target.layout, own),
                    )
                )
    return found


def _is_column(expression: JavaObject) -> bool:
    """Whether it is a column, or one of a smaller kind of whole numbers as one of a larger."""
    kind = expression.getClass().getSimpleName()
    if kind == "Cast":
        return (
            expression.child().getClass().getSimpleName() == "AttributeReference"
            and str(expression.child().dataType().typeName()) in ("byte", "short", "integer")
            and str(expression.dataType().typeName()) in ("short", "integer", "long")
        )
    return bool(kind == "AttributeReference")


def _none() -> Fact:
    """An equality with null is never true."""
    return Fact(text="false", is_true=F.lit(False))


def _bounds(key: _Key, least: object, most: object) -> Fact | None:
    if least is None or most is None:
        return _none()
    low, high = key.literal(least), key.literal(most)
    if low is None or high is None:
        return None
    return Fact(
        text=f"{key.text} >= {low} AND {key.text} <= {high}",
        is_true=(key.own >= key.column(least)) & (key.own <= key.column(most)),
    )


def _values(source: DataFrame, key: _Key) -> Fact | None:
    values = source.select(key.collected(key.source)).distinct()
    distinct = values.limit(_MOST_VALUES + 1).collect()
    texts = {row[0]: key.literal(row[0]) for row in distinct if row[0] is not None}
    if len(distinct) > _MOST_VALUES or None in texts.values():
        return None
    if not texts:
        return _none()
    known = sorted(text for text in texts.values() if text is not None)
    return Fact(
        text=f"{key.text} IN ({', '.join(known)})",
        is_true=key.own.isin([key.column(value) for value in texts]),
    )
