"""What a table asks of each row, enforced in Spark's plan: nothing is in the table otherwise."""

import pytest
from pyspark.sql.types import (
    DateType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.spark.layouts import layout_of
from tests.spark.tables import data_files, rows
from tidegate.spark import InvalidRows, SchemaMismatch, UnsupportedTable
from tidegate.spark.columns.conform import conform


def rows_of(df):
    return [tuple(row) for row in df.collect()]


def generated(name, data_type, expression, *, nullable=True):
    metadata = {"delta.generationExpression": expression}
    return StructField(name, data_type, nullable, metadata)


@pytest.fixture
def checked(create):
    """A table with a CHECK constraint on its data, another on its partition column."""
    return create(
        "num int, text string, day date",
        "day",
        **{"delta.constraints.below": "num < 5", "delta.constraints.late": "day > '2020-01-01'"},
    )


class TestCheckConstraints:
    def test_rows_that_keep_them_are_written(self, spark, checked):
        df = spark.sql("SELECT 4 num, 'a' text, DATE'2024-01-01' day")
        checked.append(df)
        checked.overwrite(df)
        assert rows(checked.read(spark)) == rows(df)

    @pytest.mark.parametrize(
        ("write", "row", "words"),
        [
            ("append", "7, 'b', DATE'2024-01-01'", ["below", "num < 5", "num : 7"]),
            ("overwrite", "7, 'b', DATE'2024-01-01'", ["below", "num < 5", "num : 7"]),
            ("append", "1, 'b', DATE'2000-01-01'", ["late", "day : 2000-01-01"]),
            ("append", "CAST(null AS INT), 'b', DATE'2024-01-01'", ["below", "num : null"]),
        ],
    )
    def test_a_row_that_breaks_one_is_named_and_nothing_stays(
        self, spark, checked, write, row, words
    ):
        good = "SELECT 1 num, 'a' text, DATE'2024-01-01' day"
        df = spark.sql(f"{good} UNION ALL SELECT {row}")
        with pytest.raises(InvalidRows) as refusal:
            getattr(checked, write)(df)
        message = str(refusal.value)
        assert "violated by row with values" in message
        assert all(word in message for word in words)
        assert checked.version == 0
        assert data_files(checked) == set()

    def test_rows_that_are_never_written_break_none(self, spark, checked):
        """As a filter, the check would be moved below the join."""
        some = spark.sql("SELECT 1 num UNION ALL SELECT 9")
        wanted = spark.sql("SELECT 1 num, 'a' text, DATE'2024-01-01' day")
        checked.append(some.join(wanted, "num"))
        assert rows(checked.read(spark)) == rows(wanted)

    def test_an_empty_text_is_null_in_a_partition_column(self, spark, create):
        table = create("a int, p string", "p", **{"delta.constraints.there": "p IS NOT NULL"})
        with pytest.raises(InvalidRows, match=r"there \(p IS NOT NULL\)"):
            table.append(spark.sql("SELECT 1 a, '' p"))

    def test_a_null_parent(self, spark):
        wanted = {"delta.constraints.some": "s.n < 9", "delta.constraints.none": "s.m IS NULL"}
        layout = layout_of("s struct<n:int,m:int>", properties=wanted)
        nothing = conform(spark.sql("SELECT CAST(null AS struct<n:int,m:int>) s"), layout)
        with pytest.raises(Exception, match=r"some \(s\.n < 9\) violated"):
            rows_of(nothing)

    def test_a_long_value_is_cut_off_in_the_message(self, spark, create):
        table = create("s string", **{"delta.constraints.short": "length(s) < 3"})
        with pytest.raises(InvalidRows) as refusal:
            table.append(spark.sql("SELECT repeat('x', 10000) s"))
        assert 400 < len(str(refusal.value)) < 700

    def test_one_that_this_session_cannot_read_is_refused_before_a_job(self, spark):
        layout = layout_of("a int", properties={"delta.constraints.odd": "no_such_function(a)"})
        with pytest.raises(UnsupportedTable, match=r"odd .*no_such_function"):
            conform(spark.range(1).selectExpr("1 a"), layout)

    def test_one_that_is_no_condition_is_refused(self, spark):
        layout = layout_of("a int", properties={"delta.constraints.odd": "a + 1"})
        with pytest.raises(UnsupportedTable, match=r"expected a condition, found .*int"):
            conform(spark.range(1).selectExpr("1 a"), layout)


class TestInvariants:
    def test_the_condition_of_a_column(self, spark):
        metadata = {"delta.invariants": '{"expression":{"expression":"a > 1"}}'}
        layout = layout_of(StructType([StructField("a", IntegerType(), True, metadata)]))
        assert rows_of(conform(spark.sql("SELECT 2 a"), layout)) == [(2,)]
        with pytest.raises(Exception, match=r"CHECK constraint of column a \(a > 1\) violated"):
            rows_of(conform(spark.sql("SELECT 1 a"), layout))

    def test_one_that_cannot_be_read_is_refused(self, spark):
        metadata = {"delta.invariants": '{"other":1}'}
        layout = layout_of(StructType([StructField("a", IntegerType(), True, metadata)]))
        with pytest.raises(UnsupportedTable, match=r"column a has the delta\.invariants"):
            conform(spark.sql("SELECT 2 a"), layout)


class TestGeneratedColumns:
    SCHEMA = StructType(
        [
            StructField("ts", TimestampType()),
            generated("day", DateType(), "CAST(ts AS DATE)"),
            StructField("id", IntegerType()),
            generated("twice", IntegerType(), "id * 2"),
        ]
    )

    @pytest.fixture
    def table(self, lake, create):
        return lake.create_table(
            create("x int").name.replace(".t", ".generated"),
            schema=self.SCHEMA,
            partition_by=["day"],
        )

    def test_null_equals_null(self, spark, table):
        table.append(spark.sql("SELECT CAST(null AS TIMESTAMP) ts, CAST(null AS INT) id"))
        table.append(
            spark.sql(
                "SELECT CAST(null AS TIMESTAMP) ts, CAST(null AS INT) id, CAST(null AS INT) twice"
            )
        )
        assert rows_of(table.read(spark).select("twice")) == [(None,), (None,)]

    def test_constraints_see_them(self, spark):
        layout = layout_of(self.SCHEMA, properties={"delta.constraints.few": "twice < 10"})
        with pytest.raises(Exception, match=r"few \(twice < 10\) violated"):
            rows_of(conform(spark.sql("SELECT now() ts, 5 id"), layout))

    def test_one_that_may_not_be_null(self, spark):
        required = generated("b", IntegerType(), "a + 1", nullable=False)
        layout = layout_of(StructType([StructField("a", IntegerType()), required]))
        assert rows_of(conform(spark.sql("SELECT 1 a"), layout)) == [(1, 2)]
        with pytest.raises(Exception, match="column b is NOT NULL"):
            rows_of(conform(spark.sql("SELECT CAST(null AS INT) a"), layout))

    def test_one_that_this_session_cannot_compute_is_refused(self, spark):
        odd = generated("b", IntegerType(), "no_such_function(a)")
        layout = layout_of(StructType([StructField("a", IntegerType()), odd]))
        with pytest.raises(UnsupportedTable, match=r"\['b'\].*cannot compute"):
            conform(spark.sql("SELECT 1 a"), layout)

    def test_others_may_still_not_be_missing(self, spark):
        layout = layout_of(self.SCHEMA, partition_by=("id",))
        with pytest.raises(SchemaMismatch, match="Partition column id"):
            conform(spark.sql("SELECT now() ts"), layout)


class TestLengths:
    @pytest.mark.parametrize(
        ("declared", "value", "stored"),
        [
            ("varchar(3)", "'abc'", "abc"),
            ("varchar(3)", "'ab   '", "ab "),
            ("varchar(3)", "CAST(null AS STRING)", None),
            ("varchar(3)", "'ä🙂x'", "ä🙂x"),
            ("char(3)", "'a'", "a  "),
            ("char(3)", "'abc '", "abc"),
            ("char(3)", "CAST(null AS STRING)", None),
        ],
    )
    def test_what_fits(self, spark, declared, value, stored):
        assert rows_of(conform(spark.sql(f"SELECT {value} s"), self.layout(declared))) == [
            (stored,)
        ]

    @pytest.mark.parametrize("declared", ["varchar(3)", "char(3)"])
    def test_what_does_not(self, spark, declared):
        with pytest.raises(Exception, match="column s holds a value that is too long for"):
            rows_of(conform(spark.sql("SELECT 'abcd' s"), self.layout(declared)))

    def layout(self, declared):
        metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared}
        return layout_of(StructType([StructField("s", StringType(), True, metadata)]))
