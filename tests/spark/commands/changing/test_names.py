"""What a table's own expressions name are its columns, whatever rows and tables are called."""

import itertools

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from tests.spark.tables import rows
from tidegate.spark import InvalidRows

_numbers = itertools.count(1)


@pytest.fixture
def table(lake):
    """A table s has a column s, with a field of the name of another column."""
    inside = StructType([StructField("a", IntegerType())])
    generated = {"delta.generationExpression": "s.a + 1"}
    return lake.create_table(
        f"main.names{next(_numbers)}.s",
        schema=StructType(
            [
                StructField("a", IntegerType()),
                StructField("s", inside),
                StructField("g", IntegerType(), True, generated),
            ]
        ),
        properties={"delta.constraints.c": "s.a > 0"},
    )


def frame(spark, *values):
    """Rows (a, s.a), which are called s, too."""
    texts = ", ".join(f"({a}, named_struct('a', {inside}))" for a, inside in values)
    return spark.sql(f"SELECT * FROM VALUES {texts} AS t(a, s)").coalesce(1).alias("s")


def test_rows_that_are_written(spark, table):
    table.append(frame(spark, (-1, 5)))
    with pytest.raises(InvalidRows, match=r"s\.a > 0"):
        table.append(frame(spark, (5, -1)))
    table.overwrite(frame(spark, (-2, 5)), replace_where="s.a = 5")
    assert rows(table.read(spark)) == [(-2, (5,), 6)]


def test_rows_that_commands_write_again(spark, table):
    table.append(frame(spark, (-1, 5), (-2, 6), (-3, 7)))
    table.delete("s.a = -1", spark=spark)
    table.update({"s.s.a": "s.s.a + 10"}, "s.a = -2", spark=spark)
    assert rows(table.read(spark)) == [(-3, (7,), 8), (-2, (16,), 17)]
    source = spark.sql("SELECT -3 a").alias("q")
    table.merge(source, "s.s.a = 7 AND s.a = q.a").whenMatchedDelete().execute()
    assert rows(table.read(spark)) == [(-2, (16,), 17)]
