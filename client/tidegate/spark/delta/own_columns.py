"""Columns of the DataFrames that a `DeltaTable` gave, in the conditions and values of its commands.

In Delta `table.toDF()["id"]` means the table's column in a command, because a `DeltaTable` is one
DataFrame for as long as it lives. Here each `toDF` reads the latest version, so that such a column
is known by Catalyst's id of it, and named anew.
"""

from collections import deque

from pyspark.sql import Column, DataFrame, SparkSession

from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.expressions.resolution import column_of
from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of

_MOST = 100
"""DataFrames of which columns are known: the latest ones."""
_UNRESOLVED = "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute"
_DATAFRAME = "__dataset_id"
"""Spark's key in a column's metadata of the DataFrame that was asked for the column."""


class OwnColumns:
    """The columns of the DataFrames that a table gave, by any of its aliases."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._given: set[int] = set()
        self._known: deque[JavaObject] = deque(maxlen=_MOST)

    def note(self, df: DataFrame) -> None:
        """Know the columns of a DataFrame from here on; none of Spark Connect, which shows none."""
        if (frame := getattr(df, "_jdf", None)) is not None:
            self._given.add(frame.id())
            self._known.append(_columns(df))

    def named(self, column: Column, alias: str, *, source: DataFrame | None = None) -> Column:
        """The column with those that are known under the alias. Raises `InvalidCommand` for one
        that the `source` of a MERGE has, too, because it was made of that DataFrame, unless the
        source was asked for it; and where the source has the alias, too."""
        if not self._known:
            return column
        jvm = jvm_of(self._spark)
        expression = self._spark._jsparkSession.expression(column._jc)
        leaves = expression.collectLeaves()
        found = java_class(jvm, "java.util.HashMap")()
        for leaf in (leaves.apply(i) for i in range(leaves.size())):
            if leaf.getClass().getSimpleName() == "AttributeReference" and self._is_own(
                leaf, source
            ):
                name = jvm.PythonUtils.toSeq([alias, str(leaf.name())])
                found.put(leaf, java_class(jvm, _UNRESOLVED)(name))
        if found.isEmpty():
            return column
        if source is not None and _has_alias(source, alias):
            raise _ambiguous(f"{alias} is the table and a part of the source")
        return column_of(jvm, expression.transform(jvm.PythonUtils.toScalaMap(found)))

    def _is_own(self, attribute: JavaObject, source: DataFrame | None) -> bool:
        is_known = any(known.contains(attribute) for known in self._known)
        if source is None or not _columns(source).contains(attribute):
            return is_known
        metadata = attribute.metadata()
        asked = int(metadata.getLong(_DATAFRAME)) if metadata.contains(_DATAFRAME) else None
        was_given = is_known if asked is None else asked in self._given
        if was_given and asked != source._jdf.id():
            raise _ambiguous(f"{attribute.sql()} is a column of the table and of the source")
        return False


def _columns(df: DataFrame) -> JavaObject:
    return df._jdf.queryExecution().analyzed().outputSet()


def _has_alias(source: DataFrame, alias: str) -> bool:
    """Whether `alias.x` may be a column of the source, or a field of one."""
    output = source._jdf.queryExecution().analyzed().output()
    names = {field.name.lower() for field in source.schema.fields}
    for attribute in (output.apply(i) for i in range(output.size())):
        qualifier = attribute.qualifier()
        if not qualifier.isEmpty():
            names.add(str(qualifier.last()).lower())
    return alias.lower() in names


def _ambiguous(what: str) -> InvalidCommand:
    return InvalidCommand(
        "AMBIGUOUS_REFERENCE",
        f"a column of toDF() is ambiguous: {what}",
        hint="ask another toDF() for the table's column, or give both sides aliases and name the "
        "columns by them: F.col('t.id')",
    )
