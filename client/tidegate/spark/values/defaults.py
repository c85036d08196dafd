"""Default columns: what rows have in the columns that a DataFrame lacks."""

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.tables.assignment import assign
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.known import CURRENT_DEFAULT


def default_of(field: StructField) -> str | None:
    """The expression of a column's default, None where it has none."""
    found = field.metadata.get(CURRENT_DEFAULT)
    return None if found is None else str(found)


def default_value(field: StructField, layout: TableLayout, spark: SparkSession) -> Column:
    """The value of the column in a row that gives it none: its default, null without one.

    Raises `UnsupportedTable` for a default that this session cannot compute, and `SchemaMismatch`
    for one of another type.
    """
    sql = default_of(field)
    if sql is None:
        return F.lit(None).cast(field.dataType)
    # Over no columns: the same names may be columns of the DataFrame.
    nothing = spark.createDataFrame([], StructType([]))
    try:
        (found,) = nothing.select(F.expr(sql)).schema.fields
    except (AnalysisException, ParseException) as error:
        raise UnsupportedTable(
            f"column {field.name} of table {layout.name} has the default {sql}, which this session "
            f"cannot compute: {error.getMessage()}"
        ) from error
    return assign(F.expr(sql), found.dataType, field.dataType, name=field.name)
