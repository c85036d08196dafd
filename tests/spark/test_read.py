"""Reading tables of the real service: versions, predicates, and files of every origin."""

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from tests.spark.tables import folder_of, rows
from tidegate import DataFile, InvalidRequest, VersionNotFound
from tidegate.spark import InvalidCommand, UnsupportedTable
from tidegate.spark.read.file_values import discovered
from tidegate.spark.tables.layout import TRANSACTION_KEY, TableLayout


def add_file(table, path, data, **values):
    """Commit a Parquet file that some other writer might have put at this path."""
    where = folder_of(table) / path
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(data), where)
    file = DataFile(
        path=path,
        partition_values=values,
        size=where.stat().st_size,
        modification_time=0,
        data_change=True,
    )
    with table.transaction() as txn:
        txn.add([file])
        return txn.commit("WRITE")


def takes_fast_road(spark, table):
    scan = table.scan()
    layout = TableLayout.of(name=table.name, location=table.location, metadata=scan.metadata)
    return discovered(spark, layout, scan.files) is not None


class TestVersions:
    def test_by_version_and_by_timestamp(self, spark, create):
        table = create("id bigint")
        receipts = [table.append(spark.range(1)) for _ in range(2)]
        assert table.read(spark).count() == 2
        assert table.read(spark, version=0).count() == 0
        assert table.read(spark, version=1).count() == 1
        first, second = (receipt.timestamp for receipt in receipts)
        as_datetime = dt.datetime.fromtimestamp(first / 1000, dt.UTC)
        for timestamp in (first, as_datetime, as_datetime.isoformat()):
            assert table.read(spark, timestamp=timestamp).count() == 1
        assert table.read(spark, timestamp=second + 1).count() == 2

    def test_what_is_not_there_is_an_error(self, spark, create):
        table = create("id bigint")
        with pytest.raises(VersionNotFound):
            table.read(spark, version=1)
        with pytest.raises(VersionNotFound):
            table.read(spark, timestamp="1999-01-01T00:00:00Z")
        with pytest.raises(InvalidCommand, match="DELTA_TIMESTAMP_INVALID"):
            table.read(spark, timestamp="last week")
        with pytest.raises(ValueError, match="time zone"):
            table.read(spark, timestamp=dt.datetime(2099, 1, 1))

    @pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
    def test_a_text_without_a_zone_is_the_sessions(self, session, create, zone):
        session.conf.set("spark.sql.session.timeZone", zone)
        table = create("id bigint", **{"delta.enableChangeDataFeed": "true"})
        first, _ = (table.append(session.range(1)).timestamp for _ in range(2))
        local = dt.datetime.fromtimestamp(first / 1000, ZoneInfo(zone)).replace(tzinfo=None)
        for text in (str(local), local.isoformat(timespec="milliseconds")):
            assert table.read(session, timestamp=text).count() == 1
            found = table.changes(session, from_timestamp=text, to_timestamp=text)
            assert {row[0] for row in found.select("_commit_version").collect()} == {1}

    def test_a_frame_keeps_to_the_version_it_was_made_of(self, spark, create):
        table = create("id bigint")
        table.append(spark.range(1))
        before = table.read(spark)
        table.append(spark.range(1))
        assert before.count() == 1

    def test_an_empty_table_has_its_columns(self, spark, create):
        table = create("a int NOT NULL, p date, s struct<x:int>", "p")
        empty = table.read(spark)
        assert empty.collect() == []
        table.append(spark.sql("SELECT 1 a, DATE'2024-01-01' p, named_struct('x', 1) s"))
        assert empty.schema == table.read(spark).schema

    def test_the_schema_is_that_of_the_version(self, spark, create):
        table = create("a int, p int", "p")
        table.append(spark.sql("SELECT 1 a, 1 p"))
        with table.transaction() as txn:
            txn.update_metadata(schema=StructType.fromDDL("a int, p int, b string"))
            txn.commit("ADD COLUMNS")
        table.append(spark.sql("SELECT 2 a, 2 p, 'x' b"))
        assert rows(table.read(spark)) == [(1, 1, None), (2, 2, "x")]
        assert table.read(spark, version=1).columns == ["a", "p"]


class TestPredicates:
    def test_files_that_cannot_match_are_not_read(self, spark, create):
        table = create("a int, month int", "month")
        table.append(
            spark.sql(
                "SELECT CAST(id AS int) a, CAST(id % 12 AS int) month FROM range(120)"
            ).coalesce(1)
        )
        assert len(table.scan("month = 5").files) == 1
        assert len(table.read(spark, "month = 5").inputFiles()) == 1
        assert rows(table.read(spark, "month = 5")) == [(a, 5) for a in range(5, 120, 12)]
        assert len(table.read(spark, "a = 7").inputFiles()) < 12

    def test_rows_that_do_not_match_are_not_returned(self, spark, create):
        table = create("a int, s string")
        table.append(
            spark.sql("SELECT 1 a, 'x' s UNION ALL SELECT 2, 'y' UNION ALL SELECT null, 'z'")
        )
        assert rows(table.read(spark, "a > 1 OR s = 'z'")) == [(2, "y"), (None, "z")]
        assert rows(table.read(spark, "a > 1")) == [(2, "y")]
        assert rows(table.read(spark, "length(s) = 1 AND a = 1")) == [(1, "x")]

    @pytest.mark.parametrize("where", ["nothing = 1", "a =", "a = 1; DROP TABLE t"])
    def test_what_is_no_predicate_is_refused(self, spark, create, where):
        table = create("a int")
        with pytest.raises(InvalidRequest) as refusal:
            table.read(spark, where)
        assert refusal.value.code == "invalid-predicate"

    @pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
    def test_times_are_read_as_the_session_reads_them(self, session, create, zone):
        table = create("a timestamp, d date")
        session.conf.set("spark.sql.session.timeZone", zone)
        for text in ("2024-01-01 03:00:00", "2024-01-01 22:00:00"):
            table.append(session.sql(f"SELECT TIMESTAMP'{text}' a, DATE'2024-01-01' d"))
        for where in (
            "a = '2024-01-01 03:00:00'",
            "a < TIMESTAMP'2024-01-01 12:00:00'",
            "date(a) = d AND hour(a) = 3",
        ):
            assert table.read(session, where).count() == 1, where


class TestFiles:
    def test_folders_that_say_what_the_log_says_are_the_fast_road(self, spark, create):
        table = create("a int, p int, q string, d date", "p", "q", "d")
        row = "SELECT 1 a, 2 p, '{}' q, DATE'2024-01-01' d"
        table.append(spark.sql(row.format("x y")))
        table.append(spark.sql(row.format("a/b%=")))
        assert takes_fast_road(spark, table)
        assert {row["q"] for row in table.read(spark).collect()} == {"x y", "a/b%="}

    @pytest.mark.parametrize("column", ["timestamp", "timestamp_ntz", "decimal(9,2)", "double"])
    def test_types_that_folders_do_not_tell_take_the_other(self, spark, create, column):
        table = create(f"a int, p {column}", "p")
        table.append(spark.sql(f"SELECT 1 a, CAST(null AS {column}) p"))
        assert not takes_fast_road(spark, table)

    def test_the_log_is_right_where_a_folder_is_wrong(self, spark, create):
        table = create("a int, p int", "p")
        table.append(spark.sql("SELECT 1 a, 5 p"))
        add_file(table, "p=9/part-0.parquet", {"a": pa.array([2], pa.int32())}, p="6")
        add_file(table, "x/y/part-1.parquet", {"a": pa.array([3], pa.int32())}, p=None)
        assert not takes_fast_road(spark, table)
        assert rows(table.read(spark)) == [(1, 5), (2, 6), (3, None)]
        assert rows(table.read(spark, "p = 6")) == [(2, 6)]
        assert rows(table.read(spark).where("p IS NULL")) == [(3, None)]

    def test_other_writers_folders_are_the_fast_road_too(self, spark, create):
        table = create("a int, p int", "p")
        add_file(table, "p=6/part-0.parquet", {"a": pa.array([2], pa.int32())}, p="6")
        assert takes_fast_road(spark, table)
        assert rows(table.read(spark)) == [(2, 6)]

    def test_many_files_keep_their_own_values(self, spark, create):
        table = create("a int, p decimal(5,1)", "p")
        table.append(
            spark.sql("SELECT CAST(id AS int) a, CAST(id AS decimal(5,1)) p FROM range(60)")
        )
        assert not takes_fast_road(spark, table)
        assert all(a == p for a, p in table.read(spark).collect())
        pruned = table.read(spark).where("p = 7")
        assert rows(pruned) == [(7, 7)]

    def test_a_file_of_another_column_order_with_more_columns(self, spark, create):
        table = create("a int, b string, c double")
        data = {"extra": [1], "b": ["x"], "A": pa.array([7], pa.int32())}
        add_file(table, "part-0.parquet", data)
        assert rows(table.read(spark)) == [(7, "x", None)]

    @pytest.mark.parametrize("path", ["_rows.parquet", "folder/.rows.parquet"])
    def test_a_file_that_spark_would_pass_over_is_told(self, spark, source, create, path):
        table = create("a int")
        table.append(spark.sql("SELECT 1 AS a"))
        add_file(table, path, {"a": pa.array([2], pa.int32())})
        with pytest.raises(UnsupportedTable, match=path):
            table.read(spark)
        assert rows(source.read(table)) == [(1,), (2,)]

    def test_names_of_columns_are_taken_as_they_are(self, spark, create):
        table = create("`a.b` int, `p.q` int, `ä` int", "p.q")
        table.append(spark.sql("SELECT 1 `a.b`, 2 `p.q`, 3 `ä`"))
        assert takes_fast_road(spark, table)
        assert rows(table.read(spark)) == [(1, 2, 3)]
        assert rows(table.read(spark, "`p.q` = 2")) == [(1, 2, 3)]

    def test_a_column_may_be_named_like_our_folders(self, spark, create):
        table = create(f"{TRANSACTION_KEY} string, p int", "p")
        table.append(spark.sql(f"SELECT 'mine' {TRANSACTION_KEY}, 1 p"))
        assert rows(table.read(spark)) == [("mine", 1)]

    def test_locations_may_hold_what_patterns_and_urls_are_made_of(self, spark, lake, create):
        beside = create("a int")
        table = lake.create_table(
            f"{beside.name}x",
            schema=spark.sql("SELECT 1 a, 1 p").schema,
            partition_by="p",
            location=f"{beside.location}-we ird[ab]{{c}}100%ästar*a,b",
        )
        table.append(spark.sql("SELECT 1 a, 2 p"))
        add_file(table, "x/part-1.parquet", {"a": pa.array([3], pa.int32())}, p="4")
        assert rows(table.read(spark)) == [(1, 2), (3, 4)]
        assert rows(table.read(spark, "p = 2")) == [(1, 2)]
