"""Rows near to each other in several columns, brought into the same files.

Each column's values are told apart by which of many ranges they are in, the ranges' numbers are a
place on a curve, and rows go into files by ranges of places. All of it is a plan of Spark's, also
the bounds of the ranges, which are literals made of a sample.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tidegate.spark.expressions.resolution import column_of
from tidegate.spark.optimize.curves import Curve
from tidegate.spark.storage.hadoop import java_class, jvm_of
from tidegate.spark.tables.assignment import quoted

_SAMPLED = 60
"""Rows of the sample for each range."""
_LONGEST_BOUND = 256
"""Characters of a text. A bound may be any value between two rows."""
_SEED = 17
_NUMBER = "__tidegate_number"
_BOUNDS = "__tidegate_bounds"


def arranged(
    rows: DataFrame,
    columns: Sequence[Column],
    curve: Curve,
    *,
    files: int,
    records: int,
    ranges: int,
) -> DataFrame:
    """The rows in as many partitions as there are to be `files`, those that are near on the curve
    together; `records` is about how many they are."""
    if files == 1:
        return rows.coalesce(1)
    bits = (ranges - 1).bit_length()
    bounds = _bounds(rows, columns, records=records, ranges=ranges)
    numbers = [f"{_NUMBER}{i}" for i in range(len(columns))]
    # In a step of their own, or each of their bits would have them computed.
    numbered = rows.withColumns(
        {
            name: _number(_bound(rows, column), known, bits)
            for name, column, known in zip(numbers, columns, bounds, strict=True)
        }
    )
    placed, places = curve(numbered, numbers, bits=bits)
    # Equal rows are spread by what else is in them, so that files are of like size. Not by chance:
    # a task that is done again has to send each row where it went before.
    spread = F.xxhash64(*(quoted(name) for name in _hashable(rows)))
    return placed.repartitionByRange(files, *places, spread).drop(*places, *numbers)


def _bounds(
    rows: DataFrame, columns: Sequence[Column], *, records: int, ranges: int
) -> list[Column]:
    """The bounds of the ranges of each column's values by a sample, sorted, as literal arrays.

    The job runs here, and its row stays in the JVM. Joined to all others it would be copied along
    with each of them.
    """
    names = [f"{_BOUNDS}{i}" for i in range(len(columns))]
    picked = rows.select(*(_bound(rows, c).alias(n) for c, n in zip(columns, names, strict=True)))
    wanted = _SAMPLED * ranges
    if records > wanted:
        picked = picked.sample(fraction=wanted / records, seed=_SEED)
    ordered = picked.agg(*(F.sort_array(F.collect_list(name)).alias(name) for name in names))
    found = ordered.select(*(_between(F.col(name), ranges).alias(name) for name in names))
    row, types = found._jdf.head(), found._jdf.schema()
    jvm = jvm_of(rows.sparkSession)
    literal = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.Literal")
    return [
        column_of(jvm, literal.create(row.get(i), types.apply(i).dataType()))
        for i in range(len(names))
    ]


def _between(values: Column, ranges: int) -> Column:
    """Of sorted values the bounds between as many ranges of about as many values each, which all
    differ."""
    count = F.size(values)
    step = F.greatest(F.lit(1), F.ceil(count / ranges).cast("int"))
    every = F.when(count > step, F.sequence(step, count - 1, step)).otherwise(
        F.array().cast("array<int>")
    )
    return F.array_distinct(F.transform(every, lambda i: F.get(values, i)))


def _number(value: Column, bounds: Column, bits: int) -> Column:
    """How many of the bounds are at most the value, which is found by halves, stretched over all
    numbers of so many bits."""
    halves = F.array(*(F.lit(1 << bit) for bit in reversed(range(bits))))
    found = F.aggregate(
        halves,
        F.lit(0),
        lambda found, half: (
            found + F.when(F.get(bounds, found + half - 1) <= value, half).otherwise(0)
        ),
    )
    most = F.greatest(F.lit(1), F.size(bounds))
    return (found.cast("long") * ((1 << bits) - 1) / most).cast("long")


def _bound(rows: DataFrame, column: Column) -> Column:
    """The value as it is compared with bounds."""
    data_type = rows.select(column).schema.fields[0].dataType
    return F.left(column, F.lit(_LONGEST_BOUND)) if isinstance(data_type, StringType) else column


def _hashable(rows: DataFrame) -> list[str]:
    """The columns whose values can be hashed: those that have no maps and no variants inside."""
    names = []
    for field in rows.schema.fields:
        text = field.dataType.simpleString()
        if "map<" not in text and "variant" not in text:
            names.append(field.name)
    return names
