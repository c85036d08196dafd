"""Reading by `format("tidegate")`: versions, predicates and pushed filters."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tests.spark.layouts import layout_of
from tests.spark.tables import data_files, folder_of, rows
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.source.file_rows import FileRows
from tidegate.spark.storage.arrow import ArrowStore

OLD = {"org.apache.spark.version": "2.4.6"}
LEGACY = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}


class TestReading:
    def test_versions_and_timestamps(self, session, create, source):
        table = create("id bigint")
        first = table.append(session.range(1))
        table.append(session.range(1))
        assert source.read(table).count() == 2
        assert source.read(table, version=1).count() == 1
        assert source.read(table, version=0).count() == 0
        at = dt.datetime.fromtimestamp(first.timestamp / 1000, dt.UTC)
        assert source.read(table, timestamp=at.isoformat()).count() == 1
        assert source.read(table, timestamp=first.timestamp).count() == 1

    def test_a_frame_keeps_to_the_version_it_was_loaded_at(self, session, create, source):
        table = create("id bigint")
        table.append(session.range(1))
        loaded = source.read(table)
        table.append(session.range(1))
        assert loaded.count() == 1

    def test_where_takes_whole_partitions(self, session, create, source):
        table = create("a int, month int", "month")
        table.append(
            session.sql("SELECT 1 a, 5 month UNION ALL SELECT 2, 6 UNION ALL SELECT 3, null")
        )
        assert rows(source.read(table, where="month = 5")) == [(1, 5)]
        assert rows(source.read(table, where="month IS NULL OR month > 5")) == [(2, 6), (3, None)]
        assert source.read(table, where="month = 7").count() == 0

    def test_where_that_would_cut_through_a_file_is_refused(self, session, create, source):
        table = create("a int, month int", "month")
        table.append(session.sql("SELECT 1 a, 5 month UNION ALL SELECT 2, 5").coalesce(1))
        with pytest.raises(PySparkException, match="does not decide about the file"):
            source.read(table, where="a = 1").collect()
        assert rows(source.read(table, where="a <= 2")) == [(1, 5), (2, 5)]

    def test_where_that_sessions_read_otherwise_is_refused(self, session, create, source):
        table = create("a int, s string", "s")
        table.append(session.sql(r"SELECT 1 AS a, 'x' AS s UNION ALL SELECT 2, 'a\\b'"))
        session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
        for where in ("\"s\" = 'x'", 's = "x"', r"s = 'a\b'", "s = 'x''y'", '`s` = "x\'"'):
            with pytest.raises(PySparkException, match=r"read .* in several ways"):
                source.read(table, where=where).collect()
            with pytest.raises(PySparkException, match=r"read .* in several ways"):
                source.write(session.sql("SELECT 1 a, 'x' s"), table, "overwrite", where=where)
        assert rows(source.read(table, where="s IN ('x', '\"', 'time', '')")) == [(1, "x")]

    def test_where_takes_columns_that_are_called_times(self, session, create, source):
        kinds = "`event-ts` timestamp, flight_time int, ntz timestamp_ntz, d date"
        table = create(f"a int, {kinds}", "event-ts", "flight_time", "ntz", "d")
        table.append(
            session.sql(
                "SELECT 1 AS a, TIMESTAMP'2024-01-01 03:00:00' AS `event-ts`, 5 AS flight_time, "
                "TIMESTAMP_NTZ'2024-01-01 03:00:00' AS ntz, DATE'2024-01-01' AS d"
            )
        )
        for where in (
            "flight_time = 5 AND year(d) = 2024",
            "ntz >= '2024-01-01 02:00:00'",
            "d = DATE'2024-01-01'",
        ):
            assert source.read(table, where=where).count() == 1
        for where in (
            "`event-ts` >= '2024-01-01 00:00:00'",
            "date_trunc('DAY', d) = d",
            "d < TIMESTAMP'2024-01-01 00:00:00Z'",
        ):
            with pytest.raises(PySparkException, match="depend on the session's time zone"):
                source.read(table, where=where).collect()

    def test_pushed_filters_keep_the_rows_they_should(self, session, create, source):
        session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        table = create(
            "a int, month int, s string, d date, ts timestamp, de decimal(5,2), "
            "st struct<x:int>, f double",
            "month",
        )
        df = session.sql(
            "SELECT CAST(id AS int) a, if(id = 9, null, CAST(id % 4 + 3 AS int)) month, "
            "if(id = 1, 'x_1', if(id = 2, 'it\\'s \\\\ here', 'xy')) s, "
            "date_add(DATE'2024-01-01', CAST(id AS int)) d, "
            "TIMESTAMP'2024-01-01 00:00:00 UTC' + make_interval(0,0,0,0,CAST(id AS int)) ts, "
            "CAST(id / 2 AS decimal(5,2)) de, named_struct('x', CAST(id AS int)) st, "
            "CAST(id AS double) f FROM range(10)"
        ).coalesce(1)
        table.append(df)
        predicates = (
            "month = 5",
            "month IN (5, 6) AND a > 1",
            "NOT month = 5",
            "month IS NULL",
            "month <=> null",
            r"s LIKE 'x\\_%'",
            r"s LIKE '%y'",
            r"s = 'it\'s \\ here'",
            "d = DATE'2024-01-05'",
            "ts >= TIMESTAMP'2024-01-01 05:00:00 UTC'",
            "de = 1.50",
            "st.x = 1 AND st.x IS NOT NULL",
            "f > CAST('NaN' AS double) OR f < 1.5",
        )
        found = df.select("a", *(F.expr(where).alias(where) for where in predicates)).collect()
        for where in predicates:
            expected = [(row["a"],) for row in found if row[where]]
            assert expected, where
            assert rows(source.read(table).where(where).select("a")) == expected, where

    def test_pushed_filters_prune_files(self, session, create, source):
        table = create("a int, month int", "month")
        table.append(session.sql("SELECT 1 a, 5 month UNION ALL SELECT 2, 6").coalesce(1))
        broken = next(path for path in data_files(table) if "month=6" in path)
        (folder_of(table) / broken).write_bytes(b"not read, and so not found out")
        session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        assert rows(source.read(table).where("month = 5")) == [(1, 5)]
        with pytest.raises(PySparkException):
            source.read(table).where("month = 6").collect()

    def test_pushed_filters_of_any_length(self, session, create, source):
        table = create("a bigint, s string")
        table.append(session.sql("SELECT 1L a, 'x' s UNION ALL SELECT 2, 'x'"))
        session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        many = [1, *range(10**17, 10**17 + 3_500)]
        read = source.read(table).where(F.col("a").isin(many)).where("s = 'x'")
        assert rows(read) == [(1, "x")]

    def test_an_old_file_lacks_new_columns(self, session, create, source):
        table = create("a int")
        table.append(session.sql("SELECT 1 a"))
        with table.transaction() as txn:
            txn.update_metadata(schema=StructType.fromDDL("a int, b array<string>"))
            txn.commit("ADD COLUMNS")
        assert rows(source.read(table)) == [(1, None)]

    @pytest.mark.parametrize("name", ["versionAsOf", "VERSIONASOF", "version", "timestampAsOf"])
    def test_deltas_names_of_a_past_are_known(self, session, create, source, name):
        table = create("a int")
        table.append(session.sql("SELECT 1 a"))
        table.append(session.sql("SELECT 2 a"))
        asked = table.as_of(1).timestamp if name == "timestampAsOf" else 1
        assert rows(source.read(table, **{name: asked})) == [(1,)]

    def test_a_schema_of_the_callers_own_is_refused(self, session, lake, create, source):
        table = create("a int, b string")
        reader = session.read.format("tidegate").option("url", lake.url)
        with pytest.raises(PySparkException, match="DELTA_UNSUPPORTED_SCHEMA_DURING_READ"):
            reader.schema("a int, b string").load(table.name).count()

    def test_a_table_that_is_not_there(self, session, lake, source):
        with pytest.raises(PySparkException, match=r"TableNotFound|no table"):
            session.read.format("tidegate").option("url", lake.url).load("main.test.none").collect()


class TestCalendars:
    """Arrow takes the days of Spark's older releases for Gregorian ones."""

    @pytest.fixture
    def read(self, spark, tmp_path):
        def read(ddl, values, metadata, **options):
            layout = layout_of(ddl, folder=tmp_path)
            target = to_arrow_schema(layout.spark_schema, timezone="UTC")
            table = pa.Table.from_pylist([{"a": value} for value in values], target)
            path = str(tmp_path / "f.parquet")
            pq.write_table(table.replace_schema_metadata(metadata), path, **options)
            batches = FileRows(path=path, partition_values={}).batches(
                layout, ArrowStore(layout.location), target
            )
            return [row["a"] for batch in batches for row in batch.to_pylist()]

        return read

    @pytest.mark.parametrize("metadata", [OLD, LEGACY])
    @pytest.mark.parametrize(
        ("ddl", "wrap"),
        [
            ("a date", lambda day: day),
            ("a struct<x: int, d: date>", lambda day: {"x": 1, "d": day}),
            ("a array<date>", lambda day: [None, day]),
            ("a map<string, date>", lambda day: [("k", day)]),
        ],
    )
    def test_early_days_are_refused_at_any_depth(self, read, ddl, wrap, metadata):
        late, early = wrap(dt.date(1582, 10, 15)), wrap(dt.date(1582, 10, 4))
        assert read(ddl, [late, None], metadata) == [late, None]
        with pytest.raises(UnsupportedTable, match=r"Table\.read"):
            read(ddl, [late, early], metadata)
        assert read(ddl, [early], {}) == [early]
        assert read(ddl, [early], {"org.apache.spark.version": "3.0.0"}) == [early]

    @pytest.mark.parametrize(
        ("metadata", "int96", "is_refused"),
        [
            (OLD, False, True),
            (LEGACY, False, True),
            (LEGACY, True, False),
            ({"org.apache.spark.version": "3.0.3"}, False, False),
            ({"org.apache.spark.version": "3.0.3"}, True, True),
            (
                {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""},
                True,
                True,
            ),
        ],
    )
    def test_early_instants_are_refused_by_how_they_are_stored(
        self, read, metadata, int96, is_refused
    ):
        late = dt.datetime(1900, 1, 1, tzinfo=dt.UTC)
        early = late - dt.timedelta(microseconds=1)
        options = {"use_deprecated_int96_timestamps": int96}
        assert read("a timestamp", [late], metadata, **options) == [late]
        if is_refused:
            with pytest.raises(UnsupportedTable, match="Julian"):
                read("a timestamp", [early], metadata, **options)
        else:
            assert read("a timestamp", [early], metadata, **options) == [early]

    def test_times_without_a_zone_are_of_one_calendar(self, read):
        early = dt.datetime(1000, 1, 1)
        assert read("a timestamp_ntz", [early], OLD) == [early]

    def test_rows_that_spark_converts_are_not_read_as_other_ones(self, session, create, source):
        session.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
        table = create("d date", **{"delta.enableDeletionVectors": "true"})
        early = session.sql("SELECT * FROM VALUES (DATE'1000-01-01'), (DATE'2000-01-01') AS t(d)")
        table.append(early.coalesce(1))
        assert rows(table.read(session)) == [(dt.date(1000, 1, 1),), (dt.date(2000, 1, 1),)]
        with pytest.raises(PySparkException, match="Julian calendar in its column d"):
            source.read(table).collect()
        table.delete("d < DATE'1500-01-01'")
        assert rows(source.read(table)) == [(dt.date(2000, 1, 1),)]
