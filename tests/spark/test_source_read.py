"""Reading by `format("tidegate")`: versions, predicates and pushed filters."""

import datetime as dt

import pytest
from pyspark.errors import PySparkException

from tests.spark.tables import data_files, folder_of, rows


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

    @pytest.mark.parametrize("pushdown", ["true", "false"])
    def test_filters_keep_the_rows_they_should_with_and_without_pushdown(
        self, session, create, source, pushdown
    ):
        session.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
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
        for where in (
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
        ):
            expected = rows(df.where(where).select("a"))
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

    def test_an_old_file_lacks_new_columns(self, session, create, source):
        table = create("a int")
        table.append(session.sql("SELECT 1 a"))
        with table.transaction() as txn:
            txn.update_metadata(schema=session.sql("SELECT 1 a, array('x') AS b").schema)
            txn.commit("ADD COLUMNS")
        assert rows(source.read(table)) == [(1, None)]

    def test_a_schema_of_the_callers_own_must_be_the_tables(self, session, lake, create, source):
        table = create("a int, b string")
        reader = session.read.format("tidegate").option("url", lake.url)
        assert reader.schema("a int, b string").load(table.name).count() == 0
        with pytest.raises(PySparkException, match="has the columns"):
            reader.schema("a bigint").load(table.name).collect()

    def test_a_table_that_is_not_there(self, session, lake, source):
        with pytest.raises(PySparkException, match=r"TableNotFound|no table"):
            session.read.format("tidegate").option("url", lake.url).load("main.test.none").collect()
