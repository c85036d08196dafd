"""Default columns: the value of a column that a DataFrame lacks."""

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.spark.layouts import layout_of
from tests.spark.tables import independent, rows
from tidegate.spark import SchemaMismatch, UnsupportedTable
from tidegate.spark.columns.conform import conform


def column(name, data_type, default, *, nullable=True):
    return StructField(name, data_type, nullable, {"CURRENT_DEFAULT": default})


def written(df, *fields, **layout):
    found = conform(df, layout_of(StructType([*fields]), **layout))
    return [tuple(row) for row in found.collect()]


def test_missing_columns_have_their_defaults_and_others_null(spark, lake, create):
    schema = StructType(
        [
            StructField("a", IntegerType()),
            column("b", IntegerType(), "40 + 2"),
            column("p", StringType(), "'x'", nullable=False),
            StructField("c", IntegerType()),
        ]
    )
    table = lake.create_table(
        create("a int").name + "_d",
        schema=schema,
        partition_by="p",
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    table.append(spark.sql("SELECT 1 a"))
    table.append(spark.sql("SELECT 2 a, CAST(null AS INT) b, 'y' p"))
    assert rows(table.read(spark)) == [(1, 42, "x", None), (2, None, "y", None)]
    assert {row["b"] for row in independent(table)} == {42, None}


def test_a_default_is_stored_as_a_value_of_the_column(spark):
    assert written(spark.sql("SELECT 1 x"), *_x(), column("s", StringType(), "7")) == [(1, "7")]
    with pytest.raises(SchemaMismatch, match=r"column a is string .* int"):
        written(spark.sql("SELECT 1 x"), *_x(), column("a", IntegerType(), "'no number'"))


def test_a_default_says_nothing_of_columns(spark):
    """Though the DataFrame has one of this name."""
    with pytest.raises(UnsupportedTable, match="has the default x"):
        written(spark.sql("SELECT 1 x"), *_x(), column("a", IntegerType(), "x"))


def test_null_is_no_default_for_a_column_that_is_not_null(spark):
    fields = (*_x(), column("a", IntegerType(), "null", nullable=False))
    with pytest.raises(Exception, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        written(spark.sql("SELECT 1 x"), *fields)


def _x():
    return (StructField("x", IntegerType()),)
