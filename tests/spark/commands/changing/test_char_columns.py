"""Columns of CHAR: Spark pads their values, and the texts that they are compared with."""

from uuid import uuid4

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.spark.tables import rows
from tidegate.spark import InvalidRows

SCHEMA = StructType(
    [
        StructField("a", IntegerType()),
        StructField("c", StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
    ]
)


def test_conditions_over_them(spark, lake):
    name = f"main.test.c{uuid4().hex}"
    table = lake.create_table(name, schema=SCHEMA, partition_by=["c"])
    table.append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS t(a, c)"))
    padded = [(1, "a  "), (2, "b  "), (3, "a  ")]
    assert rows(table.read(spark)) == padded
    assert rows(table.read(spark, where="c = 'a'")) == [padded[0], padded[2]]
    assert rows(table.read(spark).where("c = 'a'")) == [padded[0], padded[2]]
    table.update({"a": "10"}, where="c = 'b'")
    table.delete("c = 'a' AND a = 3")
    assert rows(table.read(spark)) == [(1, "a  "), (10, "b  ")]
    new = spark.sql("SELECT 7 AS a, 'a' AS c")
    table.overwrite(new, replace_where="c = 'a'")
    assert rows(table.read(spark)) == [(7, "a  "), (10, "b  ")]
    table.delete("c = 'a'")
    assert rows(table.read(spark)) == [(10, "b  ")]
    assert rows(table.read(spark).where("c = 'b'")) == [(10, "b  ")]


def test_a_column_of_files_is_compared_alike(spark, lake):
    table = lake.create_table(f"main.test.c{uuid4().hex}", schema=SCHEMA)
    table.append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(a, c)"))
    table.overwrite(spark.sql("SELECT 7 AS a, 'a' AS c"), replace_where="c = 'a'")
    assert rows(table.read(spark)) == [(2, "b  "), (7, "a  ")]
    table.alter(spark=spark).add_constraint("known", "c IN ('a', 'b')")
    table.append(spark.sql("SELECT 8 AS a, 'b' AS c"))
    with pytest.raises(InvalidRows, match="known"):
        table.append(spark.sql("SELECT 9 AS a, 'x' AS c"))
    assert rows(table.read(spark, where="c = 'b'")) == [(2, "b  "), (8, "b  ")]
