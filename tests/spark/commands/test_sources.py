"""Sources of MERGE: read twice as if once, whatever they are made of."""

from pyspark.sql import functions as F

from tests.spark.tables import rows


def test_a_source_that_is_never_the_same_is_read_once(spark, create):
    table = create("id int, v double")
    table.append(spark.range(50).selectExpr("cast(id as int) AS id", "0D AS v"))
    source = spark.range(50).select(F.col("id").cast("int"), F.rand().alias("v")).alias("s")
    source = source.where("s.v < 0.5").alias("s")
    changed = table.merge(source, "t.id = s.id", alias="t").whenMatchedUpdateAll().execute()
    found = table.read(spark).where("v > 0").collect()
    assert len(found) == changed.updated == int(changed.metrics["numSourceRows"])
    assert all(row["v"] < 0.5 for row in found)


def test_a_source_of_nothing_but_nulls_matches_nothing(spark, months):
    source = spark.sql("SELECT cast(NULL AS int) AS a, 9 AS month").alias("s")
    merged = months.merge(source, "t.a = s.a", alias="t").whenMatchedDelete()
    assert merged.whenNotMatchedInsertAll().execute().inserted == 1
    assert (None, 9) in rows(months.read(spark))


def test_the_table_itself_may_be_the_source(spark, months):
    source = months.read(spark).selectExpr("a", "a + 1 AS next").alias("s")
    months.merge(source, "t.a = s.a", alias="t").whenMatchedUpdate(set={"a": "s.next"}).execute()
    assert rows(months.read(spark)) == [(11, 1), (12, 1), (21, 2), (22, 2)]


def test_columns_of_either_side_may_bear_the_same_names_without_an_alias(spark, months):
    source = spark.sql("SELECT 10 AS a, 5 AS month")
    months.merge(source.alias("s"), "t.a = s.a", alias="t").whenMatchedUpdate(
        set={"a": F.col("s.a") + F.col("t.month") + F.col("s.month")}
    ).execute()
    assert rows(months.read(spark)) == [(11, 1), (16, 1), (20, 2), (21, 2)]
