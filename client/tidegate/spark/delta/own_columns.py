"""Columns of the DataFrames that a `DeltaTable` gave, in the conditions and values of its commands.

In Delta `table.toDF()["id"]` means the table's column in a command, because a `DeltaTable` is one
DataFrame for as long as it lives. Here each `toDF` reads the latest version, so that such a column
is known by Catalyst's id of it, and named anew.
"""

from collections import OrderedDict

from pyspark.sql import Column, DataFrame, SparkSession

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
        self._known: OrderedDict[int, JavaObject] = OrderedDict()

    def note(self, df: DataFrame) -> None:
        """Know the columns of a DataFrame from here on; none of Spark Connect, which shows none."""
        if (frame := getattr(df, "_jdf", None)) is None:
            return
        self._known[frame.id()] = _columns(df)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)

    def named(self, column: Column, alias: str, *, source: DataFrame | None = None) -> Column:
        """The column with those that are known under the alias. Where the `source` of a MERGE was
        made of such a DataFrame, a column of both is the table's if that was asked for it."""
        if not self._known:
            return column
        jvm = jvm_of(self._spark)
        expression = self._spark._jsparkSession.expression(column._jc)
        of_source = None if source is None else _columns(source)
        leaves = expression.collectLeaves()
        found = java_class(jvm, "java.util.HashMap")()
        for leaf in (leaves.apply(i) for i in range(leaves.size())):
            if leaf.getClass().getSimpleName() != "AttributeReference":
                continue
            if of_source is not None and of_source.contains(leaf):
                is_own = _asked(leaf) in self._known
            else:
                is_own = any(known.contains(leaf) for known in self._known.values())
            if is_own:
                name = jvm.PythonUtils.toSeq([alias, str(leaf.name())])
                found.put(leaf, java_class(jvm, _UNRESOLVED)(name))
        if found.isEmpty():
            return column
        return column_of(jvm, expression.transform(jvm.PythonUtils.toScalaMap(found)))


def _columns(df: DataFrame) -> JavaObject:
    return df._jdf.queryExecution().analyzed().outputSet()


def _asked(attribute: JavaObject) -> int | None:
    """The DataFrame whose column it is; None where Spark was not to say so."""
    metadata = attribute.metadata()
    return int(metadata.getLong(_DATAFRAME)) if metadata.contains(_DATAFRAME) else None
