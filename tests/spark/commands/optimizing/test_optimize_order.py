"""OPTIMIZE by Z-order: which rows share files."""

import json

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import actions, data_files
from tidegate.spark import InvalidCommand
from tidegate.spark.tables import DeltaTable

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


def numbers(spark, count):
    """Rows in no order: of x and y each pair of values once, and texts that go with y."""
    side = int(count**0.5)
    frame = spark.range(side * side).selectExpr(f"int(id % {side}) AS x", f"int(id / {side}) AS y")
    return frame.withColumn("s", F.format_string("%06d", "y")).orderBy(F.xxhash64("x", "y"))


@pytest.fixture
def square(spark, create):
    table = create("x int, y int, s string")
    table.append(numbers(spark, 2_500).coalesce(1))
    return table


def bounds(table) -> list[tuple[int, int]]:
    """How far the values of x and of y reach in each file."""
    found = [json.loads(file.stats) for file in table.scan().files]
    return [
        tuple(stats["maxValues"][name] - stats["minValues"][name] + 1 for name in ("x", "y"))
        for stats in found
    ]


def digest(frame) -> tuple[int, int]:
    """How many rows there are, and which ones, in any order."""
    (found,) = frame.selectExpr("count(*)", "sum(xxhash64(*) % 1000000007)").collect()
    return tuple(found)


def in_files(session, table, count):
    session.conf.set(MAX_FILE_SIZE, str(table.scan().files[0].size // count))


def test_near_rows_share_files(session, square):
    in_files(session, square, 4)
    before = digest(square.read(session))
    found = square.optimize(z_order_by=["x", "y"], spark=session)
    assert digest(square.read(session)) == before
    assert len(square.scan().files) == 4
    # Four squares of 25 x 25 would be 2,500, files of any rows are 10,000. Spark chooses where
    # files begin by a sample.
    assert sum(x * y for x, y in bounds(square)) < 5_000, bounds(square)
    assert square.history(limit=1)[0].operation_parameters["zOrderBy"] == '["x","y"]'
    stats = found.metrics["zOrderStats"]
    assert stats["strategyName"] == "all"
    assert stats["inputOtherFiles"] == stats["mergedFiles"]
    assert (stats["mergedFiles"]["num"], stats["numOutputCubes"]) == (1, 1)


def test_texts_are_told_apart(session, square):
    in_files(session, square, 5)
    square.optimize(z_order_by="s", spark=session)
    assert sum(y for _, y in bounds(square)) <= 60


def test_a_column_of_few_values_counts_as_much(session, spark, create):
    table = create("x int, y int")
    table.append(spark.range(2_000).selectExpr("int(id % 2) AS x", "int(id / 2) AS y").coalesce(1))
    in_files(session, table, 4)
    table.optimize(z_order_by=["x", "y"], spark=session)
    assert sorted(x for x, _ in bounds(table))[:3] == [1, 1, 1], bounds(table)


def test_nulls_and_equal_values(session, spark, create):
    table = create("x int, m map<string, int>")
    frame = spark.range(2_000).selectExpr("IF(id % 2 = 0, NULL, 7) AS x", "map('a', id) AS m")
    table.append(frame.selectExpr("x", "transform_values(m, (k, v) -> int(v)) AS m").coalesce(1))
    in_files(session, table, 2)
    table.optimize(z_order_by="x", spark=session)
    assert table.read(session).count() == 2_000
    assert table.read(session).where("x IS NULL").count() == 1_000


def test_each_partition_is_ordered_by_itself(session, spark, create):
    table = create("x int, p int", "p")
    table.append(spark.range(101).selectExpr("int(id) AS x", "IF(id = 100, 3, int(id % 2)) AS p"))
    builder = DeltaTable.over(session, table).optimize().where("p < 3")
    (row,) = builder.executeZOrderBy(["x"]).collect()
    assert row["metrics"]["zOrderStats"]["numOutputCubes"] == 2
    assert row["metrics"]["partitionsOptimized"] == 2
    assert len(table.scan("p < 3").files) == 2
    assert not [r for r in actions(table, table.version, "remove") if "p=3" in r["path"]]


class TestRefusals:
    @pytest.fixture
    def table(self, spark, create, copied):
        def make():
            table = create(
                "a int, s struct<b: int, c: int>, p int",
                "p",
                **{"delta.dataSkippingNumIndexedCols": "2"},
            )
            table.append(spark.sql("SELECT 1 AS a, named_struct('b', 1, 'c', 2) AS s, 0 AS p"))
            return table

        return copied(make)

    @pytest.mark.parametrize(
        ("columns", "error_class", "words"),
        [
            (["nope"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "nope"),
            (["s.d"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "s.d"),
            (["a.b"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "a.b"),
            (["a..b"], "INVALID_ATTRIBUTE_NAME_SYNTAX", "a..b"),
        ],
    )
    def test_columns(self, spark, table, columns, error_class, words):
        before = data_files(table)
        with pytest.raises(InvalidCommand) as refusal:
            table.optimize(z_order_by=columns, spark=spark)
        assert refusal.value.getCondition() == error_class
        assert words in str(refusal.value)
        assert data_files(table) == before

    def test_statistics_may_be_passed_over(self, session, table):
        session.conf.set(
            "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled", "false"
        )
        assert len(table.optimize(z_order_by="s.c", spark=session).receipts) == 1

    @pytest.mark.parametrize("columns", [[1], [["a"], "b"], ["a", None]])
    def test_names_that_are_none(self, spark, table, columns):
        with pytest.raises(TypeError, match="must be str"):
            DeltaTable.over(spark, table).optimize().executeZOrderBy(*columns)

    def test_no_names(self, spark, table):
        with pytest.raises(ValueError, match="columns to Z-order by"):
            DeltaTable.over(spark, table).optimize().executeZOrderBy()
