"""What the plan of a DataFrame reads of a table, and as of which version.

A read leaves the table's place, the version and the predicate in the plan: as an option of Spark's
reader, or, where no file is read, in a column's metadata; `format("tidegate")` leaves itself. The
files may lie elsewhere, as those of a shallow clone do. Whoever writes what was made of these rows
begins at that version, so that what others committed since is a conflict, and not undone.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from tidegate.spark.errors import UnsupportedSession, UnsupportedTable
from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of
from tidegate.spark.storage.locations import hadoop_url
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.layout import Reading, TableLayout
from tidegate.spark.tables.schemas import as_nullable
from tidegate.spark.tables.source_plans import said_by_source
from tidegate_protocol.schema.data_types import LENGTH_KEY

_READ = "tidegate.read"
"""The option, and the key in a column's metadata, of a JSON text: the place, the version, the
predicate and the transaction."""
NUMBERED = {"tidegate.numbered": "true"}
"""An option of reads that ask their plan for its files. Without the option Spark may put a cached
read of the same files in the plan's place, which names no files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReads:
    """What a DataFrame reads of a table as that which it has now.

    `version` is the earliest one that it reads, and `latest` the latest; None where its plan says
    of none. `is_said` is whether each of its reads says its version. `predicates` are those of its
    reads, which are all of that version; None where the whole table has to be taken for read.
    """

    version: int | None
    latest: int | None = None
    is_said: bool = True
    predicates: tuple[str, ...] | None


def read_options(layout: TableLayout) -> dict[str, str]:
    """What Spark's reader is told, for the plan to say it."""
    return {} if layout.reading is None else {_READ: _text(layout.root, layout.reading)}


@few_calls()
def no_rows(spark: SparkSession, layout: TableLayout, schema: StructType) -> DataFrame:
    """A read of no file of the table: its plan says so below the columns, which are as given."""
    if not schema.fields:
        return spark.createDataFrame([], schema)
    first, *others = schema.fields
    marked = StructField(first.name, first.dataType, first.nullable, read_options(layout))
    frame = spark.createDataFrame([], StructType([marked, *others]))
    column = quoted(first.name).alias(first.name, metadata=first.metadata or {})
    return frame.select(column, *(quoted(field.name) for field in others))


def no_rows_at_all(spark: SparkSession, schema: DataType) -> DataFrame:
    """No rows of these columns, which Spark's optimizer knows to be none. Raises
    `UnsupportedSession` for one of Spark Connect."""
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedSession(
            "commands need a session with Spark's own driver, found one of Spark Connect"
        )
    types = spark._jsparkSession.parseDataType(schema.json())
    rows = java_class(jvm_of(spark), "java.util.ArrayList")()
    return DataFrame(spark._jsparkSession.createDataFrame(rows, types), spark)


def columns_of_table(spark: SparkSession, layout: TableLayout) -> DataFrame:
    """The table's columns without rows, to resolve names over. Raises as `no_rows_at_all`."""
    fields = [
        StructField(
            field.name,
            field.dataType,
            metadata={k: v for k, v in field.metadata.items() if k == LENGTH_KEY},
        )
        for field in as_nullable(layout.spark_schema).fields
    ]
    return no_rows_at_all(spark, StructType(fields))


def with_columns_of(columns: DataFrame, rows: DataFrame) -> DataFrame:
    """The rows of a table, and what numbers they have beside its columns, with the very columns
    that `columns` has, of which what was resolved over it holds."""
    beside = rows.columns[len(columns.columns) :]
    empty = columns.select("*", *(F.lit(None).cast("long").alias(name) for name in beside))
    # A union has the columns of its first part, and Spark's optimizer leaves only the second.
    return empty.union(rows)


def _text(root: str, reading: Reading) -> str:
    return json.dumps([root, reading.version, reading.where, reading.transaction])


def own_reads(
    df: DataFrame, layout: TableLayout, *, transaction: str | None = None
) -> OwnReads | None:
    """What the DataFrame's plan reads of files or folders at the table's location, or around it,
    also where `Table.read` found none there. None where that is nothing, or of a past that was
    asked for, or of files that `transaction` gave and has recorded. No job runs, and nothing is
    listed.

    What the plan does not say is not found: rows of RDDs and of checkpoints.
    """
    if _plan_of(df) is None:
        unknown = OwnReads(version=None, predicates=None, is_said=False)
        return unknown if _has_files_at(layout, df) else None
    found: list[Reading | None] = []
    for reading in _readings(df, layout):
        if reading is not None:
            is_past = reading.version is None
            is_recorded = transaction is not None and reading.transaction == transaction
            if is_past or is_recorded:
                continue
        found.append(reading)
    return _all_of(found)


def reads_a_past(df: DataFrame, layout: TableLayout) -> bool:
    """Whether the DataFrame's plan reads the table as of a past that was asked for."""
    return any(reading is not None and reading.version is None for reading in _readings(df, layout))


def _plan_of(df: DataFrame) -> JavaObject | None:
    """The analyzed plan: in an optimized one, what is cached hides what it was made of. None for a
    DataFrame of Spark Connect, which shows none."""
    frame = getattr(df, "_jdf", None)
    return None if frame is None else frame.queryExecution().analyzed()


def _readings(df: DataFrame, layout: TableLayout) -> Iterator[Reading | None]:
    """What each leaf of the DataFrame's plan reads of the table; None where the leaf does not say
    it."""
    plan = _plan_of(df)
    for leaf in () if plan is None else leaves_of(plan):
        said = _said(leaf)
        if _is_any_at(layout, _roots(leaf) if said is None else [said[0]]):
            yield None if said is None else said[1]


def _has_files_at(layout: TableLayout, df: DataFrame) -> bool:
    """Of a DataFrame of Spark Connect, which shows no plan, but its files."""
    try:
        return _is_any_at(layout, map(unquote, df.inputFiles()))
    except PySparkException:
        return False


def _all_of(readings: list[Reading | None]) -> OwnReads | None:
    """None among them is a read of which nothing is said."""
    if not readings:
        return None
    said = [each for each in readings if each is not None]
    versions = {each.version for each in said if each.version is not None}
    predicates = [each.where for each in said if each.where is not None]
    is_known = len(predicates) == len(readings) and len(versions) == 1
    return OwnReads(
        version=min(versions, default=None),
        latest=max(versions, default=None),
        is_said=len(said) == len(readings),
        predicates=tuple(dict.fromkeys(predicates)) if is_known else None,
    )


def plan_reads_table(plan: JavaObject, layout: TableLayout) -> bool:
    """Whether an analyzed plan, also of a stream, reads files or folders at the table's location,
    or around it, be it of a past."""
    return any(_is_any_at(layout, _roots(leaf)) for leaf in leaves_of(plan))


def leaves_of(plan: JavaObject) -> Iterator[JavaObject]:
    """What a logical plan begins with, in its subqueries, too."""
    for each in _with_subqueries(plan):
        yield from _elements(each.collectLeaves())


def nodes_of(plan: JavaObject) -> Iterator[JavaObject]:
    """All nodes of a logical plan, those of its subqueries, too."""
    left = list(_with_subqueries(plan))
    while left:
        node = left.pop()
        left += _elements(node.children())
        yield node


def _with_subqueries(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    yield from _elements(plan.subqueriesAll())


def _elements(sequence: JavaObject) -> Iterator[JavaObject]:
    return (sequence.apply(i) for i in range(sequence.size()))


def _roots(leaf: JavaObject) -> list[str]:
    """The place of the table that a leaf of a plan says it reads, or the paths that it reads at,
    without percent escapes; none where it reads no files."""
    if (said := _said(leaf)) is not None:
        return [said[0]]
    # In one text, because every element of a sequence would be a call to the JVM.
    try:
        return str(leaf.relation().location().rootPaths().mkString("\n")).split("\n")
    except Py4JError:
        pass
    try:
        return str(leaf.table().fileIndex().rootPaths().mkString("\n")).split("\n")
    except Py4JError:
        return []


def _said(leaf: JavaObject) -> tuple[str, Reading] | None:
    """What a read of a table has left in its leaf, the place first."""
    text = _said_text(leaf)
    if text is None:
        return said_by_source(leaf)
    root, version, where, transaction = json.loads(text)
    return root, Reading(version=version, where=where, transaction=transaction)


def _said_text(leaf: JavaObject) -> str | None:
    try:
        found = leaf.relation().options().get(_READ)
        return str(found.get()) if found.isDefined() else None
    except Py4JError:
        pass
    try:
        text = leaf.options().get(_READ)
        return None if text is None else str(text)
    except Py4JError:
        return _text_of_none(leaf)


def _text_of_none(leaf: JavaObject) -> str | None:
    """Of a read that `no_rows` stands for."""
    output = leaf.output()
    if not output.size():
        return None
    metadata = output.apply(0).metadata()
    return str(metadata.getString(_READ)) if metadata.contains(_READ) else None


def _is_any_at(layout: TableLayout, paths: Iterable[str]) -> bool:
    root = layout.root.rstrip("/") + "/"
    for path in paths:
        try:
            found = hadoop_url(path).rstrip("/") + "/"
        except (ValueError, UnsupportedTable):
            continue
        if found.startswith(root) or root.startswith(found):
            return True
    return False
