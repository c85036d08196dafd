"""Which DataFrames are known to read the table that they are appended to."""

import pytest

from tests.spark.tables import actions, folder_of
from tidegate import ConcurrentAppendException


@pytest.fixture
def table(spark, create, copied):
    """A table of the rows (a, month) = (10, 1), (20, 2)."""

    def make():
        table = create("a int, month int", "month")
        table.append(spark.sql("SELECT * FROM VALUES (10, 1), (20, 2) AS t(a, month)"))
        return table

    return copied(make)


def is_blind(table, df):
    receipt = table.append(df)
    (info,) = actions(table, receipt.version, "commitInfo")
    assert info["isBlindAppend"] == receipt.is_blind_append
    return receipt.is_blind_append


def of_another(spark, create):
    other = create("a int, month int", "month")
    other.append(spark.sql("SELECT 1 AS a, 1 AS month"))
    return other.read(spark)


READING = {
    "read": lambda spark, table: table.read(spark),
    "a predicate": lambda spark, table: table.read(spark, "month = 1"),
    "cached": lambda spark, table: table.read(spark).cache(),
    "computed": lambda spark, table: (
        table.read(spark).groupBy("month").count().selectExpr("int(count) AS a", "month")
    ),
    "joined": lambda spark, table: spark.sql("SELECT 7 AS a, 1 AS month").join(
        table.read(spark), "month", "left_semi"
    ),
    "its files": lambda spark, table: (
        spark.read.option("recursiveFileLookup", "true")
        .option("__globPaths__", "false")
        .schema("a int")
        .parquet(str(folder_of(table)))
        .selectExpr("a", "1 AS month")
    ),
}


@pytest.mark.parametrize("how", READING)
def test_those_that_read_it(spark, table, how):
    df = READING[how](spark, table)
    assert not is_blind(table, df)
    df.unpersist()


def test_a_subquery(spark, table):
    table.read(spark).createOrReplaceTempView("months")
    assert not is_blind(table, spark.sql("SELECT (SELECT max(a) FROM months) AS a, 1 AS month"))


def test_files_of_spark_s_other_sources(session, table):
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    assert not is_blind(table, table.read(session))


def test_those_that_do_not(spark, create, table):
    assert is_blind(table, spark.sql("SELECT 1 AS a, 1 AS month"))
    assert is_blind(table, of_another(spark, create))
    assert is_blind(table, spark.createDataFrame([(1, 1)], "a int, month int"))


@pytest.mark.parametrize("how", [how for how in READING if how != "its files"])
def test_what_was_appended_since_they_were_made_conflicts(spark, lake, table, how):
    df = READING[how](spark, table)
    lake.table(table.id).append(of_nothing_read(spark))
    with pytest.raises(ConcurrentAppendException):
        table.append(df)
    df.unpersist()


def test_files_tell_of_no_version(spark, lake, table):
    df = READING["its files"](spark, table)
    lake.table(table.id).append(of_nothing_read(spark))
    receipt = table.append(df)
    assert (receipt.read_version, receipt.is_blind_append) == (2, False)


def of_nothing_read(spark):
    return spark.sql("SELECT 1 AS a, 1 AS month")
