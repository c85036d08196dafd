"""What commands record as read: two that touch different rows both land, others conflict."""

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import actions, data_files, overtake, rows
from tidegate import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConflictError,
    InvalidRequest,
)


class TestDeletes:
    def test_of_two_partitions_both_land(self, spark, lake, months):
        same = lake.table(months.id)
        mine = lake.table(months.id)
        overtake(mine, lambda: same.delete("month = 2", spark=spark))
        changed = mine.delete("month = 1 AND a = 10", spark=spark)
        assert changed.receipt is not None
        assert changed.receipt.rebased_over == 1
        assert rows(months.read(spark)) == [(11, 1)]

    def test_of_one_partition_conflict_and_leave_nothing(self, spark, lake, months):
        same = lake.table(months.id)
        mine = lake.table(months.id)
        label = {"spark": spark, "user_metadata": "tidy up"}
        overtake(mine, lambda: same.delete("a = 11", **label))
        with pytest.raises(ConflictError, match="retries") as lost:
            mine.delete("a = 10", spark=spark)
        (note,) = lost.value.__notes__
        assert note.startswith("The DELETE was of the rows where (t")
        assert note.endswith(".a = 10).")
        told = str(lost.value)
        assert told.startswith("[DELTA_CONCURRENT_APPEND] version 2 (DELETE) added")
        application = spark.sparkContext.applicationId
        won = f"version 2 (DELETE) by {application}, userMetadata 'tidy up', partition month=1."
        assert f"The winner is {won} Next: do it again on the newer version; `retries`" in told
        assert rows(months.read(spark)) == [(10, 1), (20, 2), (21, 2)]
        named = {
            add["path"] for v in range(months.version + 1) for add in actions(months, v, "add")
        }
        assert data_files(months) == named

    def test_again_after_a_conflict_where_that_is_asked_for(self, spark, lake, months):
        same = lake.table(months.id)
        mine = lake.table(months.id)
        rivals = iter([11])

        def rival():
            for a in rivals:
                same.delete(f"a = {a}", spark=spark)

        overtake(mine, rival)
        changed = mine.delete("a = 10", spark=spark, retries=1)
        assert changed.deleted == 1
        assert rows(months.read(spark)) == [(20, 2), (21, 2)]

    def test_no_more_often_than_asked_for(self, spark, lake, months):
        same = lake.table(months.id)
        mine = lake.table(months.id)
        more = spark.range(1).select(F.lit(10).alias("a"), F.lit(1).alias("month"))
        overtake(mine, lambda: same.append(more))
        with pytest.raises(ConcurrentAppendException, match="with more retries"):
            mine.delete("a = 10", spark=spark, retries=1)
        assert months.version == 1 + 2

    def test_a_negative_number_of_retries_is_refused(self, spark, months):
        with pytest.raises(InvalidRequest, match="retries"):
            months.delete("a = 10", spark=spark, retries=-1)


class TestMerges:
    def test_of_two_partitions_both_land_by_the_values_of_their_sources(self, spark, lake, months):
        def upsert(table, month):
            source = spark.sql(f"SELECT {month}0 AS a, {month} AS month, 1 AS more").alias("s")
            merged = table.merge(source, "t.a = s.a AND t.month = s.month", alias="t")
            merged = merged.whenMatchedUpdate(set={"a": "s.a + 100"})
            return merged.whenNotMatchedInsert(values={"a": "s.a", "month": "s.month"}).execute()

        same, mine = lake.table(months.id), lake.table(months.id)
        overtake(mine, lambda: upsert(same, 2))
        assert upsert(mine, 1).receipt.rebased_over == 1
        assert rows(months.read(spark)) == [(11, 1), (21, 2), (110, 1), (120, 2)]

    def test_what_the_source_lacks_reads_the_whole_table(self, spark, lake, months):
        same, mine = lake.table(months.id), lake.table(months.id)
        overtake(mine, lambda: same.delete("month = 2", spark=spark))
        source = spark.sql("SELECT 10 AS a").alias("s")
        with pytest.raises(ConcurrentDeleteReadException):
            mine.merge(source, "t.a = s.a", alias="t").whenNotMatchedBySourceDelete().execute()

    def test_a_source_that_reads_the_table_conflicts_with_any_change(self, spark, lake, months):
        same, mine = lake.table(months.id), lake.table(months.id)
        source = months.read(spark).where("month = 1").alias("s")
        more = spark.range(1).select(F.lit(1).alias("a"), F.lit(7).alias("month"))
        overtake(mine, lambda: same.append(more))
        with pytest.raises(ConcurrentAppendException):
            mine.merge(source, "t.a = s.a AND t.month = s.month", alias="t").whenMatchedUpdate(
                set={"a": "0"}
            ).execute()
