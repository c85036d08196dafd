"""Replacing a table's rows, or some partitions', through the real service."""

from uuid import uuid4

import pytest
from pyspark.sql.types import StructType

from tests.spark.tables import actions, data_files, independent, overtake, rows
from tidegate import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    InvalidProposal,
    InvalidRequest,
)
from tidegate.spark import InvalidRows
from tidegate_protocol.features.known import UNITY_TABLE_ID


@pytest.fixture
def months(spark, create, copied):
    """A table of the rows (month, a) = (1, 10), (2, 20), (3, 30), (null, 40)."""

    def make():
        table = create("a int, month int", "month")
        query = "SELECT * FROM VALUES (10, 1), (20, 2), (30, 3), (40, null) AS t(a, month)"
        table.append(spark.sql(query).coalesce(1))
        return table

    return copied(make)


def of_month(spark, month, a):
    return spark.sql(f"SELECT {a} AS a, {month} AS month")


class TestFull:
    def test_all_rows_are_replaced_in_one_commit(self, spark, months):
        receipt = months.overwrite(of_month(spark, 2, 21))
        assert rows(months.read(spark)) == [(21, 2)]
        assert independent(months) == [{"a": 21, "month": 2}]
        assert receipt.metrics.num_removed_files == 4
        (info,) = actions(months, receipt.version, "commitInfo")
        assert info["operationParameters"]["mode"] == "Overwrite"
        assert not info["isBlindAppend"]
        assert info["operationMetrics"]["numRemovedFiles"] == "4"
        assert months.read(spark, version=1).count() == 4

    def test_by_no_rows_it_empties_the_table(self, spark, months):
        months.overwrite(of_month(spark, 2, 21).where("false"))
        assert rows(months.read(spark)) == []
        assert independent(months) == []

    def test_nothing_by_nothing_is_no_commit(self, spark, create):
        table = create("id bigint")
        assert table.overwrite(spark.range(0)) is None
        assert table.version == 0

    def test_rows_of_the_table_itself_may_be_what_replaces_them(self, spark, months):
        months.overwrite(months.read(spark).selectExpr("a + 1 AS a", "month"))
        assert rows(months.read(spark)) == [(11, 1), (21, 2), (31, 3), (41, None)]

    def test_a_concurrent_append_is_a_conflict_that_names_it(self, spark, lake, months):
        overtake(months, lambda: lake.table(months.id).append(of_month(spark, 5, 50)))
        before = data_files(months)
        with pytest.raises(ConcurrentAppendException) as lost:
            months.overwrite(of_month(spark, 2, 21))
        assert lost.value.conflict.version == 2
        assert lost.value.conflict.operation == "WRITE"
        assert lost.value.definite
        assert len(data_files(months)) == len(before) + 1

    def test_an_append_only_table_is_refused_before_anything_is_written(self, spark, create):
        table = create("id bigint", **{"delta.appendOnly": "true"})
        table.append(spark.range(1).coalesce(1))
        with pytest.raises(InvalidProposal, match="append-only"):
            table.overwrite(spark.range(2))
        assert len(data_files(table)) == 1


class TestReplaceWhere:
    @pytest.mark.parametrize("where", ["MONTH IN (2)", "`month` % 3 = 2"])
    def test_only_partitions_for_which_it_is_true_are_replaced(self, spark, months, where):
        receipt = months.overwrite(of_month(spark, 2, 21), replace_where=where)
        assert rows(months.read(spark)) == [(10, 1), (21, 2), (30, 3), (40, None)]
        assert receipt.metrics.num_removed_files == 1
        (info,) = actions(months, receipt.version, "commitInfo")
        assert info["operationParameters"]["predicate"] == where

    def test_the_null_partition_can_be_replaced(self, spark, months):
        months.overwrite(of_month(spark, "CAST(null AS int)", 41), replace_where="month IS NULL")
        assert rows(months.read(spark)) == [(10, 1), (20, 2), (30, 3), (41, None)]

    def test_what_the_service_cannot_judge_is_judged_by_spark(self, spark, months):
        where = "crc32(CAST(month AS string)) = crc32('2')"
        receipt = months.overwrite(of_month(spark, 2, 21), replace_where=where)
        assert receipt.metrics.num_removed_files == 1
        assert rows(months.read(spark)) == [(10, 1), (21, 2), (30, 3), (40, None)]

    def test_by_no_rows_it_deletes_the_partitions(self, spark, months):
        months.overwrite(of_month(spark, 2, 21).where("false"), replace_where="month >= 2")
        assert rows(months.read(spark)) == [(10, 1), (40, None)]

    def test_a_partition_that_is_not_there_is_added(self, spark, months):
        receipt = months.overwrite(of_month(spark, 9, 90), replace_where="month = 9")
        assert receipt.metrics.num_removed_files == 0
        assert months.read(spark).count() == 5

    def test_rows_outside_are_refused_and_leave_nothing(self, spark, months):
        before = data_files(months)
        with pytest.raises(InvalidRows, match=r"rows in the partition month=3, .*month = 2"):
            months.overwrite(
                of_month(spark, 2, 21).union(of_month(spark, 3, 31)), replace_where="month = 2"
            )
        with pytest.raises(InvalidRows, match="month=None"):
            months.overwrite(of_month(spark, "CAST(null AS int)", 21), replace_where="month = 2")
        assert months.version == 1
        assert data_files(months) == before

    @pytest.mark.parametrize(
        ("where", "said"),
        [
            ("nothing = 2", "`nothing`"),
            ("month =", "month ="),
            ("month", "month"),
            ("id = 0", "id"),
        ],
    )
    def test_what_is_no_condition_over_the_columns_is_refused(self, spark, months, where, said):
        before = data_files(months)
        with pytest.raises(InvalidRequest, match=said) as refusal:
            months.overwrite(of_month(spark, 2, 21), replace_where=where)
        assert refusal.value.code == "invalid-predicate"
        assert refusal.value.definite
        assert data_files(months) == before

    def test_a_concurrent_commit_elsewhere_is_no_conflict(self, spark, lake, months):
        overtake(months, lambda: lake.table(months.id).append(of_month(spark, 5, 50)))
        receipt = months.overwrite(of_month(spark, 2, 21), replace_where="month = 2")
        assert receipt.rebased_over == 1
        assert months.read(spark).count() == 5

    def test_a_concurrent_append_to_the_same_partition_is_one(self, spark, lake, months):
        overtake(months, lambda: lake.table(months.id).append(of_month(spark, 2, 22)))
        with pytest.raises(ConcurrentAppendException) as lost:
            months.overwrite(of_month(spark, 2, 21), replace_where="month = 2")
        assert lost.value.conflict.version == 2
        assert lost.value.conflict.partition == {"month": "2"}
        assert rows(months.read(spark, "month = 2")) == [(20, 2), (22, 2)]

    def test_so_is_one_that_removes_what_is_replaced(self, spark, lake, months):
        def rival():
            lake.table(months.id).overwrite(
                of_month(spark, 2, 22).where("false"), replace_where="month = 2"
            )

        overtake(months, rival)
        with pytest.raises(ConcurrentDeleteReadException):
            months.overwrite(of_month(spark, 2, 21), replace_where="month = 2")

    def test_times_are_read_as_the_session_reads_them(self, session, create):
        table = create("a int, p timestamp", "p")
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        table.append(
            session.sql(
                "SELECT 1 a, TIMESTAMP'2024-01-01 00:00:00' p UNION ALL "
                "SELECT 2, TIMESTAMP'2024-01-01 00:00:00Z'"
            )
        )
        where = "p = '2024-01-01 00:00:00'"
        table.overwrite(
            session.sql("SELECT 3 a, TIMESTAMP'2024-01-01 00:00:00' p"), replace_where=where
        )
        assert rows(table.read(session).select("a")) == [(2,), (3,)]
        assert rows(table.read(session, where).select("a")) == [(3,)]


@pytest.mark.parametrize(
    "change",
    [
        lambda table, df: table.replace(df, properties={"owner": "me"}),
        lambda table, df: table.overwrite(df, overwriteSchema=True),
        lambda table, df: table.restore(version=0),
    ],
    ids=["replace", "overwriteSchema", "restore"],
)
def test_the_id_that_unity_catalogs_clients_know_stays(spark, lake, change):
    name = f"main.test.unity_{uuid4().hex}"
    table = lake.create_table(name, schema=StructType.fromDDL("a int"), catalog_managed=True)
    with table.transaction() as txn:
        txn.update_metadata(set_properties={UNITY_TABLE_ID: "an id"})
        txn.commit("SET TBLPROPERTIES")
    change(table, spark.sql("SELECT 'x' name"))
    assert table.version == 2
    assert table.head().properties[UNITY_TABLE_ID] == "an id"
