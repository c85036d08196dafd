"""Writes of rows that were read from the table itself, which others have changed since."""

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import actions, data_files, rows
from tidegate import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConflictError,
    InvalidRequest,
    MetadataChangedException,
)


@pytest.fixture
def months(spark, create, copied):
    """A table of the rows (a, month) = (10, 1), (20, 2), of version 1."""

    def make():
        table = create("a int, month int", "month")
        table.append(spark.sql("SELECT * FROM VALUES (10, 1), (20, 2) AS t(a, month)").coalesce(1))
        return table

    return copied(make)


@pytest.fixture
def other(lake, months):
    """Another client's handle on it."""
    return lake.table(months.id)


def of_month(spark, month, a=77):
    return spark.sql(f"SELECT {a} AS a, {month} AS month")


def total(df, month=9):
    return df.agg(F.sum("a").cast("int").alias("a")).withColumn("month", F.lit(month))


def is_blind(table, version):
    (info,) = actions(table, version, "commitInfo")
    return info["isBlindAppend"]


RIVALS = {
    "append": lambda spark, table: table.append(of_month(spark, 2)),
    "overwrite": lambda spark, table: table.overwrite(of_month(spark, 2)),
    "delete": lambda spark, table: table.delete("month = 2", spark=spark),
}


class TestSinceTheRead:
    @pytest.mark.parametrize("rival", RIVALS)
    def test_a_commit_is_a_conflict_that_names_it(self, spark, months, other, rival):
        sums = total(months.read(spark))
        RIVALS[rival](spark, other)
        before = rows(months.read(spark)), data_files(months)
        with pytest.raises(ConflictError) as lost:
            months.append(sums)
        assert lost.value.conflict.version == 2
        assert (rows(months.read(spark)), data_files(months)) == before
        receipt = months.append(total(months.read(spark)))
        assert (receipt.read_version, receipt.version) == (2, 3)

    def test_of_two_that_read_and_append_one_is_told(self, spark, months, other):
        first, second = total(months.read(spark)), total(other.read(spark))
        assert months.append(first).is_blind_append is False
        with pytest.raises(ConcurrentAppendException):
            other.append(second)
        assert rows(months.read(spark, "month = 9")) == [(30, 9)]

    def test_the_oldest_version_that_was_read_counts(self, spark, months, other):
        early = months.read(spark, "month = 1")
        other.append(of_month(spark, 3))
        late = months.read(spark, "month = 2")
        with pytest.raises(ConcurrentAppendException) as lost:
            months.append(late.union(early))
        assert lost.value.conflict.version == 2

    def test_a_read_that_found_no_file_counts(self, spark, months, other):
        none = total(months.read(spark, "month = 5"), month=6)
        other.append(of_month(spark, 5))
        with pytest.raises(ConcurrentAppendException):
            months.append(none)

    def test_one_in_a_transaction_counts_after_it(self, spark, months, other):
        with months.transaction():
            sums = total(months.read(spark))
        other.append(of_month(spark, 2))
        with pytest.raises(ConcurrentAppendException):
            months.append(sums)

    def test_files_of_a_transaction_count_after_it(self, spark, months, other):
        with months.transaction() as txn:
            sums = total(txn.rows_of(spark, txn.filter_files("month = 1")))
        other.append(of_month(spark, 2))
        with pytest.raises(ConcurrentAppendException):
            months.append(sums)

    def test_a_subquery_of_inserted_values_counts(self, spark, months, other):
        months.read(spark).createOrReplaceTempView("own_rows")
        other.append(of_month(spark, 2))
        with pytest.raises(ConcurrentAppendException):
            months.insert(spark, [["(SELECT max(a) FROM own_rows)", "9"]])

    def test_another_table_is_none_of_it(self, spark, create, months, other):
        copy = create("a int, month int", "month")
        found = months.read(spark)
        other.append(of_month(spark, 2))
        for number in (1, 2):
            receipt = copy.append(found)
            assert (receipt.read_version, receipt.is_blind_append) == (number - 1, True)


class TestPredicates:
    """Of a read in parts, only what touches that part is a conflict."""

    def test_elsewhere_is_none(self, spark, months, other):
        sums = total(months.read(spark, "month = 1"))
        other.append(of_month(spark, 2))
        other.delete("a = 20", spark=spark)
        receipt = months.append(sums)
        assert (receipt.read_version, receipt.rebased_over) == (1, 2)
        assert not is_blind(months, receipt.version)
        assert rows(months.read(spark)) == [(10, 1), (10, 9), (77, 2)]

    @pytest.mark.parametrize("month", [1, 2])
    def test_each_read_has_its_own(self, spark, months, other, month):
        some = months.read(spark, "month = 1").union(months.read(spark, "month = 2"))
        other.append(of_month(spark, 3))
        other.append(of_month(spark, month))
        with pytest.raises(ConcurrentAppendException) as lost:
            months.append(total(some))
        assert lost.value.conflict.version == 3

    def test_a_file_that_was_read_and_is_gone(self, spark, months, other):
        sums = total(months.read(spark, "month = 1"))
        other.delete("month = 1", spark=spark)
        with pytest.raises(ConcurrentDeleteReadException):
            months.append(sums)

    def test_with_a_read_of_all_of_it(self, spark, months, other):
        some = months.read(spark, "month = 1").union(months.read(spark))
        other.append(of_month(spark, 3))
        with pytest.raises(ConcurrentAppendException):
            months.append(total(some))

    def test_of_a_session_of_another_zone(self, session, lake, create):
        table = create("day date, a int", "day")
        table.append(session.sql("SELECT DATE'2026-01-01' AS day, 1 AS a"))
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        found = table.read(session, "day = '2026-01-01'")
        other = lake.table(table.id)
        other.append(session.sql("SELECT DATE'2026-03-01' AS day, 1 AS a"))
        table.append(found)
        other.append(session.sql("SELECT DATE'2026-01-01' AS day, 2 AS a"))
        with pytest.raises(ConcurrentAppendException):
            table.append(found)


class TestIsolation:
    @pytest.fixture
    def table(self, spark, create, copied):
        def make():
            table = create(
                "a int, month int", "month", **{"delta.isolationLevel": "WriteSerializable"}
            )
            table.append(of_month(spark, 1, a=10))
            return table

        return copied(make)

    def test_blind_appends_are_spared_where_the_level_spares_them(self, spark, lake, table):
        sums = total(table.read(spark))
        lake.table(table.id).append(of_month(spark, 1))
        receipt = table.append(sums)
        assert (receipt.read_version, receipt.version) == (1, 3)
        assert not is_blind(table, 3)

    def test_one_that_read_the_table_is_not(self, spark, lake, table):
        first, second = total(table.read(spark)), total(table.read(spark))
        lake.table(table.id).append(first)
        with pytest.raises(ConcurrentAppendException):
            table.append(second)


class TestOptions:
    def test_a_column_that_was_added_since(self, spark, months, other):
        found = months.read(spark).withColumn("b", F.lit(1))
        other.append(of_month(spark, 2).withColumn("b", F.lit(1)), mergeSchema=True)
        with pytest.raises(MetadataChangedException):
            months.append(found, mergeSchema=True)
        assert months.version == 2
        receipt = months.append(months.read(spark).withColumn("b", F.lit(1)))
        assert receipt.read_version == 2

    def test_what_an_application_has_recorded_is_done(self, spark, months):
        sums = total(months.read(spark))
        assert months.append(sums, txn=("nightly", 7)).version == 2
        assert months.append(sums, txn=("nightly", 7)) is None
        with pytest.raises(ConcurrentTransactionException):
            months.append(sums, txn=("nightly", 8))

    def test_without_changes_of_data(self, spark, months, other):
        found = months.read(spark)
        other.delete("month = 2", spark=spark)
        with pytest.raises(ConcurrentDeleteReadException):
            months.append(found, dataChange=False)


class TestRewrites:
    """What says that the table has its rows already takes them from one version, the latest."""

    @pytest.fixture(params=["append", "delete"])
    def early(self, request, spark, months, other):
        found = months.read(spark)
        RIVALS[request.param](spark, other)
        return found

    def test_rows_of_two_versions_are_refused(self, spark, months, early):
        late = months.read(spark).select("a")
        with pytest.raises(InvalidRequest, match="reads it as of versions 1 to 2"):
            months.append(early.join(late, "a"), dataChange=False)
        assert (months.version, len(data_files(months))) == (2, live_and_gone(months))

    def test_those_of_a_past_are_refused(self, spark, months, early):
        past = months.read(spark, version=1)
        for df in (past, past.join(months.read(spark).select("a"), "a")):
            with pytest.raises(InvalidRequest, match="a version or timestamp that was asked for"):
                months.append(df, dataChange=False)
            with (
                pytest.raises(InvalidRequest, match="a version or timestamp"),
                months.transaction() as txn,
            ):
                txn.write_files(df, dataChange=False)
            with pytest.raises(InvalidRequest, match="a version or timestamp"):
                months.overwrite(df, transaction=months.transaction(), dataChange=False)
        assert months.version == 2

    def test_those_of_one_read_are_taken(self, spark, months, early):
        found = months.read(spark)
        assert months.append(found.join(found.select("a"), "a"), dataChange=False).version == 3


def live_and_gone(table):
    """How many files versions 1 and 2 have added."""
    return sum(len(actions(table, version, "add")) for version in (1, 2))


class TestThePast:
    """Rows of a version that was asked for are those of that version, whatever was committed
    since: as in Delta, they are no read of the transaction."""

    @pytest.fixture(params=["version", "timestamp", "no file"])
    def past(self, request, spark, months, other):
        where = "month = 5" if request.param == "no file" else None
        asked = {"version": 1}
        if request.param == "timestamp":
            asked = {"timestamp": months.history(limit=1)[0].timestamp}
        other.append(of_month(spark, 2))
        return months.read(spark, where, **asked)

    def test_their_append_is_blind(self, spark, months, past):
        receipt = months.append(total(past))
        assert (receipt.read_version, receipt.version) == (2, 3)
        assert is_blind(months, 3)

    def test_beside_a_read_of_now(self, spark, months, other, past):
        both = past.union(months.read(spark, "month = 2"))
        other.append(of_month(spark, 1))
        receipt = months.append(total(both))
        assert (receipt.read_version, receipt.is_blind_append) == (2, False)
        both = past.union(months.read(spark, "month = 2"))
        other.append(of_month(spark, 2))
        with pytest.raises(ConcurrentAppendException):
            months.append(total(both))


class TestOtherWrites:
    def test_partitions_that_rows_of_others_replace(self, spark, months, other):
        sums = total(months.read(spark, "month = 1"), month=2)
        other.append(of_month(spark, 3))
        assert months.overwrite(sums, replace_where="month = 2").read_version == 1
        sums = total(months.read(spark, "month = 1"), month=2)
        other.append(of_month(spark, 1))
        with pytest.raises(ConcurrentAppendException):
            months.overwrite(sums, replace_where="month = 2")
        assert rows(months.read(spark, "month = 2")) == [(10, 2)]

    def test_a_source_of_a_merge(self, spark, months, other):
        def put(source):
            merged = months.merge(source.alias("s"), "t.month = 99 AND s.month = 9", alias="t")
            return merged.whenNotMatchedInsertAll().execute()

        sums = total(months.read(spark, "month = 1"))
        other.append(of_month(spark, 2))
        put(sums)
        assert rows(months.read(spark, "month = 9")) == [(10, 9)]
        sums = total(months.read(spark, "month = 1"))
        other.append(of_month(spark, 1))
        with pytest.raises(ConflictError):
            put(sums)


class TestOfTheDataSource:
    """Rows that `format("tidegate")` has read."""

    def test_a_commit_since_they_were_loaded_is_a_conflict(self, spark, source, months, other):
        sums = total(source.read(months))
        other.append(of_month(spark, 2))
        with pytest.raises(ConcurrentAppendException) as lost:
            months.append(sums)
        assert lost.value.conflict.version == 2
        receipt = months.append(total(source.read(months)))
        assert (receipt.read_version, receipt.is_blind_append) == (2, False)

    def test_the_name_of_the_format_is_read_in_any_case(self, spark, source, lake, months):
        loaded = spark.read.format("TideGate").option("url", lake.url).load(months.name)
        assert months.append(total(loaded)).is_blind_append is False

    def test_elsewhere_than_their_where_it_is_none(self, spark, source, months, other):
        sums = total(source.read(months, where="month = 1"))
        other.append(of_month(spark, 2))
        assert months.append(sums).read_version == 1
        sums = total(source.read(months, where="month = 1"))
        other.append(of_month(spark, 1))
        with pytest.raises(ConcurrentAppendException):
            months.append(sums)

    def test_those_of_a_past(self, spark, source, months, other):
        sums = total(source.read(months, version=1))
        other.append(of_month(spark, 2))
        assert months.append(sums).is_blind_append
