"""Writes of rows that were made of the table's own, which others have changed since."""

from functools import partial

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import folder_of, overtake, rows
from tidegate import ConflictError, InvalidRequest

MONTHS = [(10, 1), (11, 1), (20, 2), (21, 2)]


def total_of(spark, table):
    """The sum of the table, as a row of a source that matches 10."""
    total = F.sum("a").cast("int").alias("total")
    return table.read(spark).agg(total, F.lit(10).alias("a")).alias("s")


def put_total(table, source, **options):
    merged = table.merge(source, "t.a = s.a", alias="t")
    return merged.whenMatchedUpdate(set={"a": "s.total"}).execute(**options)


def raise_one(spark, table):
    table.update({"a": "1000"}, "a = 20", spark=spark)


class TestMerges:
    def test_what_was_committed_since_the_source_was_read_is_a_conflict(self, spark, lake, months):
        source = total_of(spark, months)
        raise_one(spark, lake.table(months.id))
        with pytest.raises(ConflictError) as lost:
            put_total(months, source)
        assert lost.value.conflict.version == months.version
        put_total(months, total_of(spark, months))
        assert rows(months.read(spark)) == [(11, 1), (21, 2), (1000, 2), (1042, 1)]

    def test_a_source_of_an_earlier_version_that_was_asked_for_is_none_of_now(
        self, spark, lake, months
    ):
        first = months.version
        raise_one(spark, lake.table(months.id))
        source = months.read(spark, version=first).where("a = 20").selectExpr("a", "month")
        merged = months.merge(source.alias("s"), "t.a = 1000 AND s.a = 20", alias="t")
        merged.whenMatchedUpdate(set={"a": "s.a"}).execute()
        assert rows(months.read(spark)) == MONTHS

    def test_they_are_not_repeated_with_rows_of_another_version(self, spark, lake, months):
        same, mine = lake.table(months.id), lake.table(months.id)
        source = total_of(spark, months)
        overtake(mine, lambda: raise_one(spark, same))
        with pytest.raises(InvalidRequest, match="as of one version"):
            put_total(mine, source, retries=1)


class TestConditions:
    @pytest.fixture
    def seen(self, spark, months):
        months.read(spark).createOrReplaceTempView("seen")
        return "a = 10 AND EXISTS (SELECT 1 FROM seen WHERE seen.a = 20)"

    @pytest.mark.parametrize("command", ["delete", "update"])
    def test_what_was_committed_since_a_subquery_was_read(self, spark, lake, months, seen, command):
        raise_one(spark, lake.table(months.id))
        run = partial(getattr(months, command), *([{"a": "0"}] if command == "update" else []))
        with pytest.raises(ConflictError):
            run(seen, spark=spark)
        assert (10, 1) in rows(months.read(spark))

    def test_as_of_now(self, spark, months, seen):
        assert months.delete(seen, spark=spark).deleted == 1

    def test_they_are_not_repeated(self, spark, months, seen):
        with pytest.raises(InvalidRequest, match="as of one version"):
            months.delete(seen, spark=spark, retries=1)
        assert months.delete("a = 10", spark=spark, retries=1).deleted == 1


class TestOverwrites:
    @pytest.mark.parametrize("way", ["overwrite", "replace"])
    def test_what_was_appended_since_they_were_read_is_not_lost(self, spark, lake, months, way):
        some = months.read(spark).where("a > 10")
        more = spark.sql("SELECT 77 AS a, 1 AS month")
        lake.table(months.id).append(more)
        with pytest.raises(ConflictError):
            getattr(months, way)(some)
        assert rows(months.read(spark)) == [*MONTHS, (77, 1)]
        getattr(months, way)(months.read(spark).where("a > 10"))
        assert rows(months.read(spark)) == [(11, 1), (20, 2), (21, 2), (77, 1)]

    def test_rows_of_an_earlier_version_that_was_asked_for(self, spark, lake, months):
        first = months.version
        raise_one(spark, lake.table(months.id))
        months.overwrite(months.read(spark, version=first))
        assert rows(months.read(spark)) == MONTHS

    def test_rows_of_no_known_version(self, spark, lake, months):
        files = spark.read.option("recursiveFileLookup", "true").schema("a int")
        some = files.parquet(str(folder_of(months))).selectExpr("a", "1 AS month").alias("s")
        lake.table(months.id).append(spark.sql("SELECT 77 AS a, 1 AS month"))
        merge = months.merge(some, "t.a = s.a", alias="t").whenMatchedDelete()
        writes = (partial(months.overwrite, some), partial(months.replace, some), merge.execute)
        mixed = partial(months.overwrite, some.union(months.read(spark)))
        some.createOrReplaceTempView("files")
        exists = partial(months.delete, "EXISTS (SELECT 1 FROM files WHERE files.a = 20)")
        for write in (*writes, mixed, partial(exists, spark=spark)):
            with pytest.raises(InvalidRequest, match="does not say of which version"):
                write()
        with months.transaction() as txn:
            months.overwrite(some, transaction=txn)
        assert rows(months.read(spark)) == [(10, 1), (11, 1), (20, 1), (21, 1)]

    def test_rows_of_the_change_feed_are_of_a_past(self, spark, create):
        table = create("a int", **{"delta.enableChangeDataFeed": "true"})
        table.append(spark.sql("SELECT 1 AS a"))
        table.update({"a": "2"}, spark=spark)
        feed = table.changes(spark, from_version=2).where("_change_type = 'update_preimage'")
        table.overwrite(feed.select("a"))
        assert rows(table.read(spark)) == [(1,)]

    def test_rows_that_a_transaction_has_read(self, spark, lake, months):
        with months.transaction():
            some = months.read(spark).where("a > 10")
        lake.table(months.id).append(spark.sql("SELECT 77 AS a, 1 AS month"))
        with pytest.raises(ConflictError):
            months.overwrite(some)


class TestReadsOfNothing:
    """A table, or a part of one, without a file."""

    @pytest.fixture
    def empty(self, create):
        return create("a int, month int COMMENT 'of the year'", "month")

    @pytest.mark.parametrize("where", [None, "month = 7"])
    def test_an_append_of_what_was_made_of_it_is_not_blind(self, spark, empty, where):
        found = empty.read(spark, where)
        assert found.schema["month"].metadata == {"comment": "of the year"}
        first = found.groupBy().count().selectExpr("int(count) AS a", "1 AS month")
        assert empty.append(first).is_blind_append is False

    def test_an_overwrite_loses_nothing(self, spark, lake, empty):
        count = empty.read(spark).groupBy().count().selectExpr("int(count) AS a", "1 AS month")
        lake.table(empty.id).append(spark.sql("SELECT 77 AS a, 1 AS month"))
        with pytest.raises(ConflictError):
            empty.overwrite(count)
        assert rows(empty.read(spark)) == [(77, 1)]
