"""Identity columns: the numbers that rows get as they are written, and how far they have come.

A number is `start + k * step`, and none is given twice. The rows of a job's partition `p` of `n`
get every `n`-th one, beginning at the `p`-th, so that the partitions need nothing of each other
(as in Delta). How far a job came is in the footers of its files, and becomes the column's
high-water mark with the commit.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.spark.errors import InvalidRows, SchemaMismatch, marked
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.computed_columns import Identity, identity
from tidegate_protocol.features.known import IDENTITY_HIGH_WATER_MARK

_EXHAUSTED = "ARITHMETIC_OVERFLOW"
_ROW_BITS = 33
"""Of `monotonically_increasing_id`: a row's number in its partition is in the lower ones."""
_LONGS = range(-(2**63), 2**63)

Bounds = tuple[int, int]


def identity_columns(layout: TableLayout) -> dict[str, Identity]:
    """The table's identity columns by name."""
    found = {field.name: identity(field) for field in layout.schema.fields}
    return {name: each for name, each in found.items() if each is not None}


def check_given(layout: TableLayout, given: Iterable[str]) -> None:
    """Raise `SchemaMismatch` where one of the columns gives its numbers itself (GENERATED
    ALWAYS)."""
    columns = identity_columns(layout)
    refused = [name for name in given if name in columns and not columns[name].explicit]
    if refused:
        raise SchemaMismatch(
            f"the DataFrame has values for the columns {refused} of table {layout.name}, which are "
            "GENERATED ALWAYS AS IDENTITY",
            hint="leave these columns out",
            error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """How the rows of a DataFrame are numbered: it has no more than `partitions`."""

    rows: DataFrame
    partitions: int

    @classmethod
    def of(cls, df: DataFrame) -> "Numbering":
        """The DataFrame, in no more partitions than are known of before it is computed. No job
        runs, but where Spark needs one to sort rows by ranges without adaptive execution."""
        partitions = _partitions(df)
        return cls(rows=df.coalesce(partitions), partitions=partitions)

    def column(self, name: str, numbers: Identity) -> Column:
        """The numbers of the rows, after those that were given before. The column raises for a
        row for which there is none left."""
        first = numbers.start if numbers.mark is None else numbers.mark + numbers.step
        text = f"identity column {name} has no numbers left"
        if first not in _LONGS:
            raise InvalidRows(text, error_class=_EXHAUSTED)
        row = F.monotonically_increasing_id()
        partition = F.shiftright(row, _ROW_BITS)
        place = row.bitwiseAND(F.lit(2**_ROW_BITS - 1)) * F.lit(self.partitions) + partition
        value = F.try_add(F.lit(first), F.try_multiply(F.lit(numbers.step), place))
        return F.coalesce(value, F.raise_error(F.lit(marked(text, error_class=_EXHAUSTED))))


def unnumbered(layout: TableLayout, given: Iterable[str]) -> list[str]:
    """The identity columns that are not among those given, in any case."""
    names = {name.lower() for name in given}
    return [name for name in identity_columns(layout) if name.lower() not in names]


def moved_marks(
    schema_string: str, layout: TableLayout, bounds: Mapping[str, Bounds]
) -> str | None:
    """The schema's text with the marks of the columns as far as their numbers went; None where
    none went further. `bounds` are the least and the greatest number of each column that was
    numbered."""
    schema = json.loads(schema_string)
    columns = identity_columns(layout)
    moved = False
    for field in schema["fields"]:
        name = field["name"]
        if name not in bounds or name not in columns:
            continue
        least, greatest = bounds[name]
        start, step = columns[name].start, columns[name].step
        known = columns[name].mark
        # Rows that are copied may have numbers that somebody gave them, between the column's own
        # or before the first. Where all are copied, none is new.
        count = ((greatest if step > 0 else least) - start) // step
        mark = start + count * step
        if count >= 0 and (known is None or (mark - known) * step > 0):
            field["metadata"][IDENTITY_HIGH_WATER_MARK] = mark
            moved = True
    return json.dumps(schema) if moved else None


def numbered(df: DataFrame, layout: TableLayout) -> DataFrame:
    """The DataFrame with numbers in the identity columns that it lacks, at its end."""
    columns = identity_columns(layout)
    wanted = unnumbered(layout, df.columns)
    if not wanted:
        return df
    numbering = Numbering.of(df)
    values = (numbering.column(name, columns[name]).alias(name) for name in wanted)
    return numbering.rows.select(*(quoted(name) for name in df.columns), *values)


def _partitions(df: DataFrame) -> int:
    """In how many partitions the rows come, or no more than which they are to come."""
    spark = df.sparkSession
    shuffled = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    frame = getattr(df, "_jdf", None)
    # Spark Connect shows no plan, and a stream has none before it runs.
    if frame is None or df.isStreaming:
        return shuffled
    plan = frame.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        # How many there are is known only after the stages before were computed.
        return shuffled
    return max(1, int(plan.execute().getNumPartitions()))
