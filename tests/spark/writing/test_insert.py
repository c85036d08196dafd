"""Rows of SQL expressions, `DEFAULT` among them."""

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tests.spark.tables import rows
from tidegate import InvalidRequest
from tidegate.spark import SchemaMismatch


@pytest.fixture
def table(lake, create):
    """Columns: `id` is numbered, `a` has the default 42, `b` has none, `c` is generated."""
    schema = StructType(
        [
            StructField(
                "id", LongType(), True, {"delta.identity.start": 1, "delta.identity.step": 1}
            ),
            StructField("a", IntegerType(), True, {"CURRENT_DEFAULT": "42"}),
            StructField("b", StringType()),
            StructField("c", IntegerType(), True, {"delta.generationExpression": "a + 1"}),
        ]
    )
    return lake.create_table(
        f"{create('a int').name}_i",
        schema=schema,
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )


def test_default_is_what_the_table_gives(spark, table):
    table.insert(spark, [["DEFAULT", "default", "DEFAULT", "DEFAULT"]])
    table.insert(spark, [["1 + 1", "'x'"], ["DEFAULT", "upper('y')"]], columns=["A", "b"])
    found = rows(table.read(spark).select("a", "b", "c"))
    assert found == [(2, "x", 3), (42, "Y", 43), (42, None, 43)]
    assert table.read(spark).select("id").distinct().count() == 3


def test_rows_are_as_long_as_the_columns_are_many(spark, table):
    with pytest.raises(SchemaMismatch, match="has 1 values") as refusal:
        table.insert(spark, [["1"]])
    assert refusal.value.error_class == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
    with pytest.raises(SchemaMismatch, match=r"no columns \['z'\]"):
        table.insert(spark, [["1"]], columns=["z"])


@pytest.mark.parametrize("values", [[], [["no_such_function()"]], [["1 +"]]])
def test_what_is_no_value_is_refused(spark, table, values):
    with pytest.raises(InvalidRequest):
        table.insert(spark, values, columns=["b"])
    assert table.version == 0


@pytest.mark.parametrize("values", [["id", "2"], ["1", "a + 1"]])
def test_an_expression_has_no_columns(spark, create, values):
    """Neither those of a row beside it nor a column of Spark's."""
    table = create("a bigint, b bigint")
    with pytest.raises(InvalidRequest, match="cannot be computed"):
        table.insert(spark, [values])
    assert table.version == 0


def test_fields_go_by_position(spark, create):
    table = create("s struct<a: int, b: int>, d int")
    table.insert(spark, [["named_struct('b', 1, 'a', 2)", "DEFAULT"], ["struct(3, 4)", "5"]])
    assert rows(table.read(spark).select("s.a", "s.b", "d")) == [(1, 2, None), (3, 4, 5)]
