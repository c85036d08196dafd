"""What the options of `append` and `overwrite` leave in the log."""

import json

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tests.spark.tables import actions, data_files, folder_of, independent, overtake, rows
from tidegate import ConcurrentAppendException, InvalidRequest, MetadataChangedException
from tidegate.spark import InvalidRows, SchemaMismatch, UnsupportedTable


@pytest.fixture
def months(spark, create, copied):
    """A table of the rows (a, month) = (10, 1), (20, 2), (30, 3), (40, null)."""

    def make():
        table = create("a int, month int", "month")
        query = "SELECT * FROM VALUES (10, 1), (20, 2), (30, 3), (40, null) AS t(a, month)"
        table.append(spark.sql(query).coalesce(1))
        return table

    return copied(make)


def of_month(spark, month, a):
    return spark.sql(f"SELECT {a} AS a, {month} AS month")


def parameters(table, version):
    (info,) = actions(table, version, "commitInfo")
    return info["operationParameters"]


def fields(table, version):
    (metadata,) = actions(table, version, "metaData")
    return [
        (field["name"], field["type"], field["nullable"])
        for field in json.loads(metadata["schemaString"])["fields"]
    ]


class TestNames:
    @pytest.mark.parametrize("write", ["append", "overwrite"])
    def test_a_misspelt_one_is_refused_with_the_known_ones(self, spark, months, write):
        with pytest.raises(InvalidRequest, match=r"mergeSchem \(is mergeSchema meant") as raised:
            getattr(months, write)(of_month(spark, 1, 1), mergeSchem=True)
        known = "compression', 'dataChange', 'maxRecordsPerFile', 'mergeSchema', "
        assert known in str(raised.value)
        assert ("partitionOverwriteMode" in str(raised.value)) == (write == "overwrite")
        assert raised.value.definite
        assert months.version == 1

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            ({"mergeSchema": "yes"}, "true or false as option mergeSchema, found 'yes'"),
            ({"maxRecordsPerFile": 0}, "above 0"),
            ({"maxRecordsPerFile": "x"}, "whole number"),
            ({"compression": "zip"}, "one of .*zstd.* found 'zip'"),
            ({"txnAppId": "a"}, "go together"),
            ({"txnVersion": 1}, "go together"),
            ({"userMetadata": "x", "user_metadata": "y"}, "expected one way"),
            ({"txnAppId": "a", "txnVersion": 1, "txn": ("a", 1)}, "expected one way"),
            ({"partitionOverwriteMode": "some"}, "'static', 'dynamic'"),
            ({"overwriteSchema": True, "partitionOverwriteMode": "dynamic"}, "dynamic"),
            ({"overwriteSchema": True, "replace_where": "month = 1"}, "mergeSchema adds"),
            ({"partitionOverwriteMode": "dynamic", "replace_where": "month = 1"}, "one of them"),
            ({"mergeSchema": True, "dataChange": False}, "rows stay the same"),
        ],
    )
    def test_values_that_cannot_be_are_refused_before_a_job(self, spark, months, options, named):
        with pytest.raises(InvalidRequest, match=named):
            months.overwrite(of_month(spark, 1, 1), **options)
        assert months.version == 1

    def test_names_and_words_are_taken_in_any_case(self, spark, months):
        months.append(of_month(spark, 1, 1), MERGESCHEMA="True", usermetadata="x")
        assert parameters(months, 2)["canMergeSchema"] == "true"


class TestCommitInfo:
    def test_user_metadata(self, spark, months):
        months.append(of_month(spark, 1, 1), userMetadata="nightly")
        months.overwrite(of_month(spark, 1, 1), userMetadata="again")
        found = [actions(months, v, "commitInfo")[0]["userMetadata"] for v in (2, 3)]
        assert found == ["nightly", "again"]

    @pytest.mark.parametrize("write", ["append", "overwrite"])
    def test_an_applications_version_lands_once(self, spark, months, write):
        once = {"txnAppId": "etl", "txnVersion": "7"}
        receipt = getattr(months, write)(of_month(spark, 9, 90), **once)
        (txn,) = actions(months, receipt.version, "txn")
        assert (txn["appId"], txn["version"]) == ("etl", 7)
        before = data_files(months)
        assert getattr(months, write)(of_month(spark, 9, 91), **once) is None
        assert months.overwrite(of_month(spark, 9, 92), txn=("etl", 6)) is None
        assert (months.version, data_files(months)) == (2, before)
        assert getattr(months, write)(of_month(spark, 9, 91), txn=("etl", 8)).version == 3

    def test_an_overwrite_of_nothing_by_nothing_records_it(self, spark, create):
        table = create("id bigint")
        assert table.overwrite(spark.range(0), txn=("etl", 1)).version == 1
        assert table.txn_version("etl") == 1


class TestFiles:
    def test_records_of_a_file(self, spark, create):
        table = create("id bigint")
        table.append(spark.range(10).coalesce(1), maxRecordsPerFile=4)
        found = [json.loads(add["stats"])["numRecords"] for add in actions(table, 1, "add")]
        assert sorted(found) == [2, 4, 4]
        assert sorted(row["id"] for row in independent(table)) == list(range(10))

    @pytest.mark.parametrize("codec", ["zstd", "gzip", "uncompressed", "snappy"])
    def test_the_codec(self, spark, create, codec):
        table = create("id bigint")
        table.append(spark.range(10).coalesce(1), compression=codec.upper())
        (path,) = data_files(table)
        footer = pq.read_metadata(folder_of(table) / path)
        assert footer.row_group(0).column(0).compression == codec.upper()

    def test_a_rewrite_changes_no_data(self, spark, months):
        with months.transaction() as txn:
            frame = months.read(spark).coalesce(1)
            receipt = months.overwrite(frame, transaction=txn, dataChange=False)
        added, removed = (actions(months, receipt.version, kind) for kind in ("add", "remove"))
        assert added
        assert len(removed) == 4
        assert not any(action["dataChange"] for action in (*added, *removed))
        assert receipt.isolation_level == "SnapshotIsolation"
        assert sorted(row["a"] for row in independent(months)) == [10, 20, 30, 40]

    def test_a_rewrite_goes_past_an_append(self, spark, lake, months):
        txn = months.transaction()
        frame = txn.read(spark)
        lake.table(months.id).append(of_month(spark, 5, 50))
        receipt = months.overwrite(frame, transaction=txn, dataChange="false")
        assert receipt.rebased_over == 1
        assert len(rows(lake.table(months.id).read(spark))) == 5

    def test_a_transaction_writes_files_with_them(self, spark, create):
        table = create("id bigint")
        with table.transaction() as txn:
            files = txn.write_files(
                spark.range(4).coalesce(1),
                maxRecordsPerFile=2,
                compression="gzip",
                dataChange=False,
            )
            with pytest.raises(InvalidRequest, match="mergeSchema"):
                txn.write_files(spark.range(1), mergeSchema=True)
        assert [file.data_change for file in files] == [False, False]
        assert all(".gz." in file.path for file in files)


class TestMergeSchema:
    def test_new_columns_come_last_and_are_nullable(self, spark, months):
        new = spark.sql("SELECT 1 AS a, 5 AS month, 'x' AS note, array(2.5D) AS list")
        months.append(new, mergeSchema=True)
        assert fields(months, 2) == [
            ("a", "integer", True),
            ("month", "integer", True),
            ("note", "string", True),
            ("list", {"type": "array", "elementType": "double", "containsNull": True}, True),
        ]
        assert parameters(months, 2)["canMergeSchema"] == "true"
        found = rows(months.read(spark).select("a", "month", "note"))
        assert found == [
            (1, 5, "x"),
            (10, 1, None),
            (20, 2, None),
            (30, 3, None),
            (40, None, None),
        ]
        assert {row["note"] for row in independent(months)} == {"x", None}

    def test_new_fields_inside_of_a_struct(self, spark, create):
        table = create("s struct<x: int>, l array<struct<x: int>>")
        table.append(spark.sql("SELECT named_struct('x', 1) s, array(named_struct('x', 1)) l"))
        table.append(
            spark.sql(
                "SELECT named_struct('Y', 'b', 'x', 2L) S, array(named_struct('x', 2, 'z', true)) l"
            ),
            mergeSchema=True,
        )
        assert table.read(spark).schema.simpleString() == (
            "struct<s:struct<x:int,Y:string>,l:array<struct<x:int,z:boolean>>>"
        )
        found = rows(table.read(spark).selectExpr("s.x", "s.Y", "l[0].z"))
        assert found == [(1, None, None), (2, "b", True)]

    def test_comments_come_along_and_not_null_stays(self, spark, create):
        table = create("id bigint NOT NULL")
        new = spark.sql("SELECT 1L AS id, 'x' AS note")
        new = new.withMetadata("note", {"comment": "of the clerk", "other": 1})
        table.append(new, mergeSchema=True)
        (metadata,) = actions(table, 1, "metaData")
        found = json.loads(metadata["schemaString"])["fields"]
        assert found[0]["nullable"] is False
        assert found[1]["metadata"] == {"comment": "of the clerk"}

    def test_columns_that_are_there_keep_their_types(self, spark, months):
        months.append(
            spark.sql("SELECT 5L AS A, '7' AS month")
            .select("A", "month")
            .selectExpr("A", "int(month) AS month"),
            mergeSchema=True,
        )
        assert actions(months, 2, "metaData") == []
        with pytest.raises(InvalidRows, match="no int"):
            months.append(spark.sql("SELECT 5000000000 AS a, 7 AS month"), mergeSchema=True)

    def test_without_it_the_refusal_names_it(self, spark, months):
        new = spark.sql("SELECT 1 AS a, 5 AS month, 'x' AS note")
        for options in ({}, {"mergeSchema": False}):
            with pytest.raises(SchemaMismatch, match=r"\['note'\].*mergeSchema"):
                months.append(new, **options)
        assert months.version == 1

    def test_a_column_without_a_type_is_refused(self, spark, months):
        new = spark.sql("SELECT 1 AS a, 5 AS month, null AS note")
        with pytest.raises(SchemaMismatch, match=r"note.*NullType"):
            months.append(new, mergeSchema=True)

    def test_it_is_a_change_that_others_meet(self, spark, lake, months):
        new = spark.sql("SELECT 1 AS a, 5 AS month, 'x' AS note")
        overtake(months, lambda: lake.table(months.id).append(new, mergeSchema=True))
        with pytest.raises(MetadataChangedException):
            months.append(of_month(spark, 1, 1))

    def test_no_rows_leave_their_columns(self, spark, months):
        new = spark.sql("SELECT 1 AS a, 5 AS month, 'x' AS note").where("false")
        assert months.append(new, mergeSchema=True).version == 2
        assert [name for name, _, _ in fields(months, 2)] == ["a", "month", "note"]

    def test_an_overwrite_of_some_partitions_adds_columns(self, spark, months):
        new = spark.sql("SELECT 11 AS a, 1 AS month, 'x' AS note")
        months.overwrite(new, replace_where="month = 1", mergeSchema=True)
        found = rows(months.read(spark, "month <= 2"))
        assert found == [(11, 1, "x"), (20, 2, None)]


class TestOverwriteSchema:
    def test_the_frames_columns_take_the_place_of_all(self, spark, months):
        new = spark.sql("SELECT 'x' AS name, 1 AS Month, bigint(2) AS a")
        months.overwrite(new, overwriteSchema=True)
        assert fields(months, 2) == [
            ("name", "string", True),
            ("month", "integer", True),
            ("a", "long", True),
        ]
        assert parameters(months, 2)["canOverwriteSchema"] == "true"
        assert rows(months.read(spark)) == [("x", 1, 2)]
        assert independent(months) == [{"name": "x", "month": 1, "a": 2}]
        assert months.read(spark, version=1).columns == ["a", "month"]

    def test_the_same_columns_are_no_change(self, spark, months):
        months.overwrite(of_month(spark, 1, 1), overwriteSchema=True)
        assert actions(months, 2, "metaData") == []

    def test_what_the_table_is_partitioned_by_stays(self, spark, months):
        with pytest.raises(SchemaMismatch, match="partitioned by"):
            months.overwrite(spark.sql("SELECT 1 AS a"), overwriteSchema=True)

    def test_a_constraint_keeps_its_columns(self, spark, create):
        table = create("id bigint, n int", **{"delta.constraints.c": "n > 0"})
        with pytest.raises(UnsupportedTable, match="constraint c"):
            table.overwrite(spark.range(1), overwriteSchema=True)
        assert (table.version, data_files(table)) == (0, set())

    def test_it_is_not_for_appending(self, spark, months):
        with pytest.raises(InvalidRequest, match="overwriteSchema"):
            months.append(of_month(spark, 1, 1), overwriteSchema=True)


class TestDynamic:
    def test_partitions_with_new_rows_are_replaced(self, spark, months):
        new = spark.sql("SELECT * FROM VALUES (11, 1), (12, 1), (41, null), (90, 9) AS t(a, month)")
        receipt = months.overwrite(new, partitionOverwriteMode="dynamic")
        assert rows(months.read(spark)) == [
            (11, 1),
            (12, 1),
            (20, 2),
            (30, 3),
            (41, None),
            (90, 9),
        ]
        assert parameters(months, receipt.version) == {
            "mode": "Overwrite",
            "partitionBy": '["month"]',
            "isDynamicPartitionOverwrite": "true",
        }
        removed = actions(months, receipt.version, "remove")
        assert sorted(str(each["partitionValues"]["month"]) for each in removed) == ["1", "None"]

    def test_no_rows_replace_nothing(self, spark, months):
        frame = of_month(spark, 1, 1).where("false")
        assert months.overwrite(frame, partitionOverwriteMode="dynamic") is None

    def test_a_table_without_partitions_is_replaced(self, spark, create):
        table = create("id bigint")
        table.append(spark.range(5))
        receipt = table.overwrite(spark.range(2), partitionOverwriteMode="dynamic")
        assert "isDynamicPartitionOverwrite" not in parameters(table, receipt.version)
        assert table.read(spark).count() == 2

    def test_an_append_to_such_a_partition_conflicts_another_does_not(self, spark, lake, months):
        rival = lake.table(months.id)
        overtake(months, lambda: rival.append(of_month(spark, 3, 31)))
        new = of_month(spark, 1, 11)
        assert months.overwrite(new, partitionOverwriteMode="dynamic").rebased_over == 1
        same = lake.table(months.id)
        overtake(same, lambda: rival.append(of_month(spark, 1, 13)))
        with pytest.raises(ConcurrentAppendException):
            same.overwrite(new, partitionOverwriteMode="dynamic")

    def test_partitions_of_any_type(self, spark, create):
        names = ("s", "d", "b", "t", "n", "i")
        table = create(
            "a int, s string, d date, b boolean, t timestamp, n decimal(5,2), i bigint", *names
        )
        first = spark.range(4).select(
            F.col("id").cast("int").alias("a"),
            F.concat(F.lit("o'x\\"), F.col("id") % 2).alias("s"),
            F.expr("DATE'2024-01-01' + int(id % 2)").alias("d"),
            F.expr("id % 2 = 0").alias("b"),
            F.expr("TIMESTAMP'2024-01-01 00:00:00'").alias("t"),
            F.expr("1.5BD").alias("n"),
            F.col("id").alias("i"),
        )
        table.append(first)
        again = first.where("a IN (0, 3)").selectExpr("a + 10 AS a", *names)
        receipt = table.overwrite(again, partitionOverwriteMode="dynamic")
        assert receipt.metrics.num_removed_files == 2
        assert rows(table.read(spark).select("a")) == [(1,), (2,), (10,), (13,)]

    def test_many_partitions(self, spark, create):
        table = create("a int, p string", "p")
        frame = spark.sql(
            "SELECT int(id) AS a, repeat(char(97 + id % 20), 230) AS p FROM range(20)"
        )
        table.append(frame.coalesce(1))
        table.overwrite(frame.where("a < 18").coalesce(1), partitionOverwriteMode="dynamic")
        assert table.read(spark).count() == 20
        assert len(actions(table, 2, "remove")) == 18
