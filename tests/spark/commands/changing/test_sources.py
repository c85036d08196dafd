"""Sources of MERGE: read twice as if once, whatever they are made of."""

from uuid import uuid4

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from tests.spark.tables import rows
from tidegate.spark.merge.source import MergeSource


def test_a_source_that_is_never_the_same_is_read_once(spark, create):
    table = create("id int, v double")
    table.append(spark.range(50).selectExpr("cast(id as int) AS id", "0D AS v"))
    source = spark.range(50).select(F.col("id").cast("int"), F.rand().alias("v")).alias("s")
    source = source.where("s.v < 0.5").alias("s")
    changed = table.merge(source, "t.id = s.id", alias="t").whenMatchedUpdateAll().execute()
    found = table.read(spark).where("v > 0").collect()
    assert len(found) == changed.updated == int(changed.metrics["numSourceRows"])
    assert all(row["v"] < 0.5 for row in found)


def test_what_a_subquery_of_a_source_reads_may_change_meanwhile(spark, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "ids"))
    ids = f"SELECT id FROM parquet.`{tmp_path / 'ids'}`"
    source = spark.sql(f"SELECT id FROM range(9) WHERE id IN ({ids})")
    kept = MergeSource.of(source).frame
    spark.range(5).write.mode("overwrite").parquet(str(tmp_path / "ids"))
    assert kept.count() == 3


def test_a_source_with_the_time_or_a_function_of_users_is_read_once(spark):
    drawn = F.udf(lambda _: uuid4().hex)
    for value in (F.current_timestamp(), drawn("id")):
        kept = MergeSource.of(spark.range(2).select(value.alias("value"))).frame
        assert rows(kept) == rows(kept)


def test_a_source_that_chooses_by_the_order_of_rows_is_read_once(spark):
    ids = spark.range(4).selectExpr("id", "id % 2 AS k")
    numbered = F.row_number().over(Window.orderBy("k"))
    for chosen in (ids.limit(1), ids.dropDuplicates(["k"]), ids.select("id", numbered.alias("n"))):
        assert MergeSource.of(chosen).frame is not chosen
    assert MergeSource.of(ids).frame is ids


def test_a_source_may_have_dates_that_python_has_not(spark, create):
    table = create("d date")
    table.append(spark.sql("SELECT DATE'2026-01-01' d"))
    source = spark.sql("SELECT * FROM VALUES (DATE'2026-01-01'), (DATE'+12000-01-01') AS s(d)")
    merged = table.merge(source.alias("s"), "t.d = s.d", alias="t").whenMatchedDelete()
    assert merged.execute().deleted == 1


def test_a_source_of_nothing_but_nulls_matches_nothing(spark, months):
    source = spark.sql("SELECT cast(NULL AS int) AS a, 9 AS month").alias("s")
    merged = months.merge(source, "t.a = s.a", alias="t").whenMatchedDelete()
    assert merged.whenNotMatchedInsertAll().execute().inserted == 1
    assert (None, 9) in rows(months.read(spark))


def test_columns_of_either_side_may_bear_the_same_names_without_an_alias(spark, months):
    source = spark.sql("SELECT 10 AS a, 5 AS month")
    months.merge(source.alias("s"), "t.a = s.a", alias="t").whenMatchedUpdate(
        set={"a": F.col("s.a") + F.col("t.month") + F.col("s.month")}
    ).execute()
    assert rows(months.read(spark)) == [(11, 1), (16, 1), (20, 2), (21, 2)]


def test_text_that_reads_as_a_variable_of_sql_is_text(spark, create):
    table = create("k string, v int")
    text = "${env:HOME}"
    rows_of = [(text, 1), ("b", 1)]
    table.append(spark.createDataFrame(rows_of, "k string, v int"))
    source = spark.createDataFrame([(text, 2)], "k string, v int").alias("s")
    merge = table.merge(source, "t.k = s.k", alias="t").whenMatchedUpdateAll()
    merge.whenNotMatchedInsertAll().execute()
    assert rows(table.read(spark)) == [(text, 2), ("b", 1)]


@pytest.mark.parametrize("key", ["CAST(X'FF' AS STRING)", "concat('a', chr(0))"])
def test_keys_that_are_no_text_of_the_services(spark, create, key):
    table = create("k string, v int")
    table.append(spark.sql(f"SELECT {key} k, 1 v"))
    source = spark.sql(f"SELECT * FROM VALUES ({key}, 2), ('b', 2) AS s(k, v)").alias("s")
    merge = table.merge(source, "t.k = s.k", alias="t").whenMatchedUpdateAll()
    done = merge.whenNotMatchedInsertAll().execute()
    assert (done.updated, done.inserted) == (1, 1)


def test_partition_columns_of_any_name(spark, create):
    table = create("`p``q` int, a int", "p`q")
    table.append(spark.sql("SELECT 1 `p``q`, 1 a"))
    source = spark.sql("SELECT 1 a, 2 `p``q`").alias("s")
    table.merge(source, "t.a = s.a", alias="t").whenMatchedUpdateAll().execute()
    assert rows(table.read(spark)) == [(2, 1)]


def test_a_condition_with_a_text_that_the_service_refuses(spark, create):
    table = create("k string")
    table.append(spark.sql("SELECT explode(array('a', concat('a', chr(0)))) k"))
    assert table.delete(F.col("k") == "a\0", spark=spark).deleted == 1
    assert rows(table.read(spark).where(F.col("k") == "a\0")) == []
