"""Whether the plan of a DataFrame reads a table's own files."""

from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.storage.locations import hadoop_url
from tidegate.spark.tables.layout import TableLayout


def reads_table(df: DataFrame, layout: TableLayout) -> bool:
    """Whether the DataFrame's plan reads files or folders at the table's location, or around it.
    No job runs, and nothing is listed.

    What the plan does not say is not found: rows of `format("tidegate")`, of RDDs and of
    checkpoints.
    """
    frame = getattr(df, "_jdf", None)
    if frame is not None:
        return plan_reads_table(frame.queryExecution().analyzed(), layout)
    # Spark Connect shows no plan, but its files.
    try:
        return _is_any_at(layout, map(unquote, df.inputFiles()))
    except PySparkException:
        return False


def plan_reads_table(plan: JavaObject, layout: TableLayout) -> bool:
    """As `reads_table`, by a logical plan of Spark's, also of a stream. It is to be an analyzed
    one: in an optimized one, what is cached hides what it was made of."""
    subqueries = plan.subqueriesAll()
    plans = [plan, *(subqueries.apply(i) for i in range(subqueries.size()))]
    for each in plans:
        leaves = each.collectLeaves()
        for i in range(leaves.size()):
            if _is_any_at(layout, _roots(leaves.apply(i))):
                return True
    return False


def _roots(leaf: JavaObject) -> list[str]:
    """The paths that a leaf of a plan reads at, without percent escapes; none where it reads no
    files."""
    # In one text, because every element of a sequence would be a call to the JVM.
    try:
        return str(leaf.relation().location().rootPaths().mkString("\n")).split("\n")
    except Py4JError:
        pass
    try:
        return str(leaf.table().fileIndex().rootPaths().mkString("\n")).split("\n")
    except Py4JError:
        return []


def _is_any_at(layout: TableLayout, paths: "map[str] | list[str]") -> bool:
    root = layout.root.rstrip("/") + "/"
    for path in paths:
        try:
            found = hadoop_url(path).rstrip("/") + "/"
        except (ValueError, UnsupportedTable):
            continue
        if found.startswith(root) or root.startswith(found):
            return True
    return False
