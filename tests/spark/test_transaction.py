"""DataFrames in a transaction: what was read is judged, what is written waits for the commit."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.spark.tables import actions, data_files, folder_of, independent, rows
from tidegate import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    InvalidProposal,
    InvalidRequest,
    TransactionActive,
    TransactionClosed,
)
from tidegate.spark import InvalidRows, SchemaMismatch


@pytest.fixture
def months(spark, create, copied):
    """A table of the rows (a, month) = (10, 1), (20, 2), (30, 3)."""

    def make():
        table = create("a int, month int", "month")
        table.append(spark.sql("SELECT * FROM VALUES (10, 1), (20, 2), (30, 3) AS t(a, month)"))
        return table

    return copied(make)


def one_more(spark, table):
    """A row that says how many there were, in a month of its own."""
    count = table.read(spark).count()
    return spark.range(1).select(F.lit(count).cast("int").alias("a"), F.lit(9).alias("month"))


def written(txn, df):
    txn.add(txn.write_files(df))
    return txn.commit("WRITE")


def overwritten(txn, df):
    return txn.table.overwrite(df, replace_where="month = 8", transaction=txn)


class TestReads:
    @pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
    def test_of_two_that_read_and_append_one_is_told(self, spark, lake, create, level):
        table = create("a int, month int", **{"delta.isolationLevel": level})
        same = lake.table(table.id)
        with table.transaction() as first:
            first.add(first.write_files(one_more(spark, table)))
            with ThreadPoolExecutor(1) as pool:

                def rival():
                    with same.transaction() as second:
                        second.add(second.write_files(one_more(spark, same)))
                        return second.commit("WRITE")

                winner = pool.submit(rival).result()
            assert not winner.is_blind_append
            with pytest.raises(ConcurrentAppendException) as lost:
                first.commit("WRITE")
        assert lost.value.conflict.version == winner.version
        assert rows(table.read(spark)) == [(0, 9)]

    def test_two_that_only_append_both_land(self, spark, create):
        table = create("a int, month int")
        first, second = table.transaction(), table.transaction()
        for txn in (first, second):
            txn.add(txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month")))
        assert first.commit("WRITE").is_blind_append
        assert second.commit("WRITE").rebased_over == 1
        assert table.read(spark).count() == 2

    @pytest.mark.parametrize("where", ["month = 1", None])
    def test_what_was_read_before_it_began_is_known_where_it_is_written(
        self, spark, lake, months, where
    ):
        total = months.read(spark, where).agg(F.sum("a").cast("int").alias("a"))
        for write in (written, overwritten):
            txn = months.transaction(version=1)
            append_elsewhere(spark, lake, months, month=1)
            with pytest.raises(ConcurrentAppendException):
                write(txn, total.withColumn("month", F.lit(8)))
        elsewhere = months.transaction(version=1)
        elsewhere.add(elsewhere.write_files(spark.sql("SELECT 1 AS a, 8 AS month")))
        assert elsewhere.commit("WRITE").is_blind_append

    def test_what_was_read_before_others_committed_is_refused_to_a_later_one(
        self, spark, lake, months
    ):
        df = months.read(spark, "month = 1")
        past = months.read(spark, version=1)
        append_elsewhere(spark, lake, months, month=1)
        before = data_files(months)
        txn = months.transaction()
        with pytest.raises(InvalidRequest, match=r"as of version 1.* version 2"):
            txn.write_files(df)
        with pytest.raises(InvalidRequest, match=r"as of version 1.* version 2"):
            months.overwrite(df, transaction=txn)
        assert (data_files(months), months.version) == (before, 2)
        txn.add(txn.write_files(past))
        assert txn.commit("WRITE").is_blind_append

    @pytest.mark.parametrize("with_older", [False, True])
    def test_what_was_read_after_others_committed_is_refused_to_an_earlier_one(
        self, spark, lake, months, with_older
    ):
        """What was committed between the two would be there twice."""
        before = months.read(spark)
        txn = months.transaction()
        append_elsewhere(spark, lake, months, month=1)
        df = months.read(spark)
        df = df.union(before) if with_older else df
        with pytest.raises(InvalidRequest, match=r"as of version 2.* version 1"):
            months.overwrite(df, transaction=txn, dataChange=False)
        with pytest.raises(InvalidRequest, match=r"as of version 2.* version 1"):
            txn.write_files(df)
        assert months.version == 2

    def test_rows_of_files_that_it_gave_are_no_further_read(self, spark, lake, months):
        txn = months.transaction()
        files = txn.filter_files("month = 1")
        txn.add(txn.write_files(txn.rows_of(spark, files)))
        txn.remove(files)
        append_elsewhere(spark, lake, months, month=2)
        receipt = txn.commit("WRITE")
        assert (receipt.rebased_over, receipt.is_blind_append) == (1, False)

    def test_what_was_read_of_other_partitions_does_not_conflict(self, spark, lake, months):
        with months.transaction() as txn:
            total = months.read(spark, "month = 1").agg(F.sum("a").cast("int").alias("a"))
            txn.add(txn.write_files(total.withColumn("month", F.lit(8))))
            append_elsewhere(spark, lake, months, month=2)
            receipt = txn.commit("WRITE")
        assert (receipt.rebased_over, receipt.is_blind_append) == (1, False)
        assert rows(months.read(spark, "month = 8")) == [(10, 8)]

    def test_a_file_that_was_read_and_is_gone_conflicts(self, spark, lake, months):
        with months.transaction() as txn:
            copy = txn.read(spark, "month = 1").withColumn("month", F.lit(8))
            txn.add(txn.write_files(copy))

            def elsewhere():
                lake.table(months.id).overwrite(
                    spark.sql("SELECT 11 AS a, 1 AS month"), replace_where="month = 1"
                )

            in_another_thread(elsewhere)
            with pytest.raises((ConcurrentDeleteReadException, ConcurrentAppendException)):
                txn.commit("WRITE")

    def test_all_reads_are_of_one_snapshot(self, spark, lake, months):
        with months.transaction() as txn:
            before = rows(months.read(spark))
            append_elsewhere(spark, lake, months, month=1)
            assert rows(months.read(spark)) == before
            assert rows(txn.read(spark, "month = 1")) == [(10, 1)]
            assert rows(months.read(spark, version=txn.read_version)) == before
        assert months.read(spark).count() == 4

    def test_one_that_begins_earlier_reads_what_was_there(self, spark, months):
        append_elsewhere(spark, None, months, month=1)
        with months.transaction(version=1) as txn:
            assert months.read(spark).count() == 3
            assert txn.read(spark, "month = 1").count() == 1

    def test_the_past_is_no_read_of_the_transaction(self, spark, months):
        with months.transaction() as txn:
            assert months.read(spark, version=0).count() == 0
            txn.add(txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month")))
            assert txn.commit("WRITE").is_blind_append

    def test_reads_of_other_threads_and_tables_are_their_own(self, spark, create, months):
        other = create("id bigint")
        with months.transaction() as txn:
            other.read(spark).count()
            in_another_thread(lambda: months.read(spark).count())
            txn.add(txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month")))
            assert txn.commit("WRITE").is_blind_append

    def test_a_session_of_another_zone_has_read_what_its_times_mean(self, session, create):
        table = create("at timestamp, a int")
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        with table.transaction() as txn:
            assert txn.read(session, "at > '2026-01-01'").count() == 0
            assert "TIMESTAMP'2026-01-01 05:00:00+00:00'" in txn.explain("WRITE")

    def test_after_the_commit_nothing_joins_it(self, spark, months):
        with months.transaction() as txn:
            txn.add(txn.write_files(months.read(spark).limit(1)))
            txn.commit("WRITE")
            assert months.read(spark).count() == 4
            with pytest.raises(TransactionClosed):
                txn.read(spark)
            with pytest.raises(TransactionClosed):
                txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month"))


class TestNesting:
    def test_a_write_of_its_own_is_refused_before_anything_is_done(self, spark, months):
        frame = spark.sql("SELECT 1 AS a, 1 AS month")
        with months.transaction() as txn:
            for write in (
                lambda: months.append(frame),
                lambda: months.overwrite(frame),
                lambda: months.overwrite(frame, transaction=months.transaction()),
            ):
                with pytest.raises(TransactionActive, match=txn.id):
                    write()
            assert txn.is_open
        assert months.version == 1
        assert months.append(frame).version == 2

    def test_an_overwrite_may_be_told_to_use_the_active_one(self, spark, months):
        with months.transaction() as txn:
            frame = months.read(spark).withColumn("a", F.col("a") + 1)
            receipt = months.overwrite(frame, transaction=txn)
        assert receipt.transaction_id == txn.id
        assert rows(months.read(spark)) == [(11, 1), (21, 2), (31, 3)]

    def test_writes_of_other_tables_go_on(self, spark, create, months):
        other = create("a int, month int")
        with months.transaction():
            assert other.append(months.read(spark)).version == 1


class TestWrites:
    def test_files_are_written_as_an_append_writes_them(self, spark, create):
        table = create("month int, a int NOT NULL", "month", **{"delta.constraints.c": "a < 5"})
        with table.transaction() as txn:
            files = txn.write_files(spark.sql("SELECT bigint(id) AS A, 5 AS month FROM range(3)"))
            txn.add(files)
            receipt = txn.commit("WRITE")
        assert receipt.is_blind_append
        assert {file.partition_values["month"] for file in files} == {"5"}
        assert all('"numRecords"' in file.stats for file in files)
        assert sorted(row["a"] for row in independent(table)) == [0, 1, 2]
        (info,) = actions(table, 1, "commitInfo")
        assert info["tags"]["spark.app.id"] == spark.conf.get("spark.app.id")

    def test_what_is_refused_leaves_nothing_and_the_transaction_open(self, spark, create):
        table = create("a int NOT NULL", **{"delta.constraints.c": "a < 5"})
        with table.transaction() as txn:
            with pytest.raises(SchemaMismatch, match="extra"):
                txn.write_files(spark.sql("SELECT 1 AS a, 2 AS extra"))
            with pytest.raises(InvalidRows, match="constraint c"):
                txn.write_files(spark.sql("SELECT int(id) AS a FROM range(10)"))
            with pytest.raises(PySparkException, match="no good"):
                txn.write_files(
                    spark.sql(
                        "SELECT if(a = 1, raise_error('no good'), a) AS a FROM (SELECT 1 AS a)"
                    )
                )
            assert not list(folder_of(table).glob("tidegate_txn*"))
            txn.add(txn.write_files(spark.sql("SELECT 4 AS a")))
            assert txn.commit("WRITE").version == 1

    def test_without_a_commit_only_vacuum_finds_them(self, spark, months):
        before = data_files(months)
        with months.transaction() as txn:
            written = txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month"))
        assert months.version == 1
        assert months.read(spark).count() == 3
        left = data_files(months) - before
        assert left == {file.path for file in written}
        an_hour_ago = time.time() - 3600
        for path in left:
            os.utime(folder_of(months) / path, (an_hour_ago, an_hour_ago))
        options = {"retain": timedelta(0), "allow_shorter": True}
        assert set(months.vacuum(dry_run=True, **options).paths) == left
        months.vacuum(**options)
        assert data_files(months) == before
        assert months.read(spark).count() == 3

    def test_another_transaction_may_add_them(self, spark, lake, months):
        with months.transaction() as txn:
            months.read(spark)
            written = txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month"))
            txn.add(written)
            append_elsewhere(spark, lake, months, month=1)
            with pytest.raises(ConcurrentAppendException):
                txn.commit("WRITE")
        with months.transaction() as again:
            again.add(written)
            again.commit("WRITE")
        assert months.read(spark).count() == 5

    def test_files_have_the_schema_that_the_transaction_gives(self, spark, create):
        table = create("a int")
        with table.transaction() as txn:
            wider = spark.sql("SELECT 1 AS a, 'x' AS b")
            txn.update_metadata(schema=wider.schema.jsonValue() | {"fields": nullable(wider)})
            txn.add(txn.write_files(wider))
            with pytest.raises(InvalidProposal, match="already written data"):
                txn.update_metadata(comment="late")
            txn.commit("WRITE")
        assert independent(table) == [{"a": 1, "b": "x"}]

    def test_files_that_were_written_settle_the_schema(self, spark, months):
        with months.transaction() as txn:
            txn.write_files(spark.sql("SELECT 1 AS a, 1 AS month"))
            with pytest.raises(InvalidProposal, match="already written data"):
                txn.update_metadata(comment="late")


def nullable(df):
    return [field.jsonValue() | {"nullable": True} for field in df.schema.fields]


def in_another_thread(work):
    """Run it where this thread's transaction is not active."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def append_elsewhere(spark, lake, table, *, month):
    """A rival's append, past the transaction that is active here."""
    frame = spark.sql(f"SELECT 99 AS a, {month} AS month")
    handle = table if lake is None else lake.table(table.id)
    return in_another_thread(lambda: handle.append(frame))
