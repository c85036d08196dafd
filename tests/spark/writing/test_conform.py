"""Bringing DataFrames into a table's schema: what is taken, what is refused, and how."""

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.spark.layouts import layout_of
from tidegate.spark.columns.conform import conform
from tidegate.spark.errors import SchemaMismatch, refused_rows


def rows_of(df):
    return [tuple(row) for row in df.collect()]


def refusal(df):
    """What `errors.refused_rows` makes of a job over the rows."""
    with pytest.raises(PySparkException) as failure:
        df.collect()
    found = refused_rows(failure.value)
    assert found is not None, failure.value
    assert found.definite
    return str(found)


class TestColumns:
    def test_a_column_without_a_type_is_null(self, spark):
        found = conform(spark.sql("SELECT null AS a"), layout_of("a array<int>"))
        assert found.schema["a"].dataType.simpleString() == "array<int>"
        assert rows_of(found) == [(None,)]

    def test_a_missing_not_null_one_is_refused(self, spark):
        with pytest.raises(SchemaMismatch, match=r"lacks the column b .*NOT NULL"):
            conform(spark.sql("SELECT 1 a"), layout_of("a int, b int NOT NULL"))

    def test_a_missing_partition_column_is_refused(self, spark):
        with pytest.raises(SchemaMismatch, match=r"Partition column p .* not found"):
            conform(spark.sql("SELECT 1 a"), layout_of("a int, p int", partition_by=("p",)))

    def test_one_given_twice_is_refused(self, spark):
        with pytest.raises(SchemaMismatch, match="column A twice"):
            conform(spark.sql("SELECT 1 a, 2 A"), layout_of("a int"))

    @pytest.mark.parametrize("name", ["a.b", "`a`", "a b", "ä", "a`b.c"])
    def test_names_are_taken_as_they_are(self, spark, name):
        df = spark.range(1).select(F.lit(7).alias(name))
        assert rows_of(conform(df, layout_of(df.schema))) == [(7,)]


class TestTypes:
    @pytest.mark.parametrize(
        ("value", "target", "stored"),
        [
            ("1", "bigint", 1),
            ("CAST(7 AS BIGINT)", "tinyint", 7),
            ("1.5D", "int", 1),
            ("CAST(1.255 AS DECIMAL(10,3))", "decimal(4,2)", Decimal("1.26")),
            ("CAST(3 AS INT)", "decimal(4,2)", Decimal("3.00")),
            ("12", "string", "12"),
            ("true", "string", "true"),
            ("DATE'2020-02-29'", "timestamp", dt.datetime(2020, 2, 29)),
            ("TIMESTAMP'2020-02-29 12:00:00'", "date", dt.date(2020, 2, 29)),
            ("TIMESTAMP_NTZ'2020-02-29 12:00:00'", "timestamp", dt.datetime(2020, 2, 29, 12)),
            ("array(1, null)", "array<bigint>", [1, None]),
            ("map('a', 1)", "map<string,bigint>", {"a": 1}),
            ("map(1, 1)", "map<bigint,int>", {1: 1}),
            ("named_struct('y', 2, 'X', 1)", "struct<x:bigint,y:int,z:int>", (1, 2, None)),
            ("CAST(null AS struct<x:int>)", "struct<x:bigint>", None),
            ("array(named_struct('x', 1))", "array<struct<x:bigint>>", [(1,)]),
        ],
    )
    def test_sparks_store_assignment_is_followed(self, spark, value, target, stored):
        df = conform(spark.sql(f"SELECT {value} AS a"), layout_of(f"a {target}"))
        assert df.schema["a"].dataType.simpleString() == target
        ((found,),) = rows_of(df)
        assert found == stored

    @pytest.mark.parametrize(
        ("value", "target"),
        [
            ("'1'", "int"),
            ("true", "int"),
            ("1", "boolean"),
            ("1", "timestamp"),
            ("TIMESTAMP'2020-02-29 12:00:00'", "bigint"),
            ("'x'", "binary"),
            ("X'00'", "int"),
            ("array('1')", "array<int>"),
            ("map('a', 1)", "map<string,boolean>"),
            ("array(1)", "int"),
            ("named_struct('x', 1)", "map<string,int>"),
            ("named_struct('x', 1, 'y', 2)", "struct<x:int>"),
        ],
    )
    def test_what_spark_does_not_store_is_refused_before_any_job(self, spark, value, target):
        with pytest.raises(SchemaMismatch, match="column a"):
            conform(spark.sql(f"SELECT {value} AS a"), layout_of(f"a {target}"))

    @pytest.mark.parametrize("ansi", ["true", "false"])
    @pytest.mark.parametrize(
        ("value", "target", "stored"),
        [
            ("300", "tinyint", 44),
            ("'x'", "int", None),
            ("array(1L, 9223372036854775807)", "array<int>", [1, -1]),
            ("map(300, named_struct('x', 300))", "map<tinyint,struct<x:tinyint>>", {44: (44,)}),
        ],
    )
    def test_legacy_stores_what_a_cast_gives(self, session, ansi, value, target, stored):
        session.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
        session.conf.set("spark.sql.ansi.enabled", ansi)
        df = conform(session.sql(f"SELECT {value} AS a"), layout_of(f"a {target}"))
        ((found,),) = rows_of(df)
        assert found == stored
        with pytest.raises(SchemaMismatch, match="does not store"):
            conform(session.sql("SELECT X'00' AS a"), layout_of("a boolean"))

    def test_strict_takes_what_loses_nothing_by_its_type(self, session):
        session.conf.set("spark.sql.storeAssignmentPolicy", "strict")
        kept = conform(
            session.sql("SELECT 1 AS a, array(1) AS b"), layout_of("a bigint, b array<bigint>")
        )
        assert rows_of(kept) == [(1, [1])]
        for value, target in (("1L", "int"), ("array('1')", "array<int>")):
            with pytest.raises(SchemaMismatch, match="Cannot up cast column a") as raised:
                conform(session.sql(f"SELECT {value} AS a"), layout_of(f"a {target}"))
            assert raised.value.error_class == "CANNOT_UP_CAST_DATATYPE"

    @pytest.mark.parametrize("ansi", ["true", "false"])
    @pytest.mark.parametrize(
        ("value", "target", "column"),
        [
            ("300", "tinyint", "a"),
            ("CAST('NaN' AS DOUBLE)", "bigint", "a"),
            ("CAST(100 AS DECIMAL(5,2))", "decimal(4,2)", "a"),
            ("array(1, 300)", "array<tinyint>", "a.element"),
            ("map('k', 300)", "map<string,tinyint>", "a.value"),
            ("map(300, 1)", "map<tinyint,int>", "a.key"),
            ("named_struct('x', 300)", "struct<x:tinyint>", "a.x"),
        ],
    )
    def test_a_value_without_room_is_refused_in_every_mode(
        self, session, value, target, column, ansi
    ):
        session.conf.set("spark.sql.ansi.enabled", ansi)
        df = conform(session.sql(f"SELECT {value} AS a"), layout_of(f"a {target}"))
        assert f"column {column} holds a value that is no " in refusal(df)


class TestNotNull:
    @pytest.mark.parametrize(
        ("value", "target", "column"),
        [
            ("CAST(null AS INT)", "int NOT NULL", "a"),
            ("named_struct('x', CAST(null AS INT))", "struct<x:int NOT NULL>", "a.x"),
            (
                "array(named_struct('x', CAST(null AS INT)))",
                "array<struct<x:int NOT NULL>>",
                "a.element.x",
            ),
        ],
    )
    def test_a_null_is_refused_with_the_columns_name(self, spark, value, target, column):
        df = conform(spark.sql(f"SELECT {value} AS a"), layout_of(f"a {target}"))
        assert f"column {column} is NOT NULL, but a row holds null" in refusal(df)

    def test_a_null_in_an_array_of_no_nulls_is_refused(self, spark):
        schema = layout_of("a array<int>").spark_schema
        schema["a"].dataType.containsNull = False
        df = conform(spark.sql("SELECT array(1, null) AS a"), layout_of(schema))
        assert "column a.element is NOT NULL" in refusal(df)

    @pytest.mark.parametrize("inside", ["x:int NOT NULL", "y:struct<x:int NOT NULL>"])
    def test_a_null_struct_has_null_fields(self, spark, inside):
        """As in Delta: it is the path to the field that may not be null."""
        df = spark.sql(f"SELECT CAST(null AS struct<{inside.replace(' NOT NULL', '')}>) AS a")
        assert "x is NOT NULL" in refusal(conform(df, layout_of(f"a struct<{inside}>")))

    def test_an_element_that_is_null_has_no_fields(self, spark):
        df = spark.sql("SELECT array(CAST(null AS struct<x:int>)) AS a")
        found = rows_of(conform(df, layout_of("a array<struct<x:int NOT NULL>>")))
        assert found == [([None],)]

    def test_a_missing_field_of_a_struct_is_refused(self, spark):
        with pytest.raises(SchemaMismatch, match=r"a\.y is NOT NULL and missing"):
            conform(
                spark.sql("SELECT named_struct('x', 1) AS a"),
                layout_of("a struct<x:int,y:int NOT NULL>"),
            )


class TestPartitionColumns:
    def test_bytes_that_are_no_text_are_refused(self, spark):
        layout = layout_of("a int, p binary", partition_by=("p",))
        assert rows_of(conform(spark.sql("SELECT 1 a, X'C3A4' p"), layout)) == [(1, "ä")]
        assert "partition column p holds bytes that are not UTF-8" in refusal(
            conform(spark.sql("SELECT 1 a, X'FF' p"), layout)
        )
