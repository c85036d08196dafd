"""Writing by `format("tidegate")`: Arrow batches against the real service."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tests.spark.layouts import layout_of
from tests.spark.tables import actions, data_files, folder_of, independent, rows
from tidegate import InvalidRequest
from tidegate.spark import InvalidRows, UnsupportedSession
from tidegate.spark.data_files.arrow_columns import BatchColumns
from tidegate.spark.source.source import TidegateSource
from tidegate_protocol.log.paths import decode

COLUMNS = """
    by tinyint, sh smallint, i int, l bigint, f float, d double, de decimal(20,3), bo boolean,
    s string, bi binary, da date, ts timestamp, st struct<x:int,y:struct<z:string>>,
    ar array<int>, ma map<string,bigint>, deep array<struct<k:map<string,array<double>>>>
"""
VALUES = """
    CAST(-1 AS tinyint) by, CAST(300 AS smallint) sh, 70000 i, 5000000000 l, 1.5F f, 0.1D d,
    CAST(12345678901234567.125 AS decimal(20,3)) de, true bo, 'ä 🙂' s, X'00FF' bi,
    DATE'1066-10-14' da, TIMESTAMP'2024-03-10 02:30:00.123456 UTC' ts,
    named_struct('x', 1, 'y', named_struct('z', 'q')) st, array(1, null) ar,
    map('k', CAST(5 AS bigint)) ma, array(named_struct('k', map('a', array(0.5D)))) deep
"""


class TestRoundTrip:
    @pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
    def test_every_type_is_what_sparks_own_reader_finds(self, session, create, source, zone):
        session.conf.set("spark.sql.session.timeZone", zone)
        table = create(COLUMNS)
        df = session.sql(f"SELECT {VALUES}")
        nulls = session.createDataFrame([{}], StructType.fromDDL(COLUMNS))
        source.write(df.union(nulls).coalesce(1), table)

        assert [row["i"] for row in independent(table)] == [70000, None]
        comparable = [F.to_json(F.struct("*")), "bi", "ts"]
        expected = rows(df.union(nulls).select(comparable))
        assert rows(table.read(session).select(comparable)) == expected
        back = source.read(table)
        assert back.schema == table.read(session).schema
        assert rows(back.select(comparable)) == expected

    def test_partition_values_are_those_of_the_other_road(self, session, create, source):
        values = {
            "p0 string": "'a/b=c%d e:f?g*h[i]{j}k^l'",
            "p1 string": "CAST(null AS string)",
            "p2 timestamp": "TIMESTAMP'2024-03-10 02:30:00.25 UTC'",
            "p3 timestamp_ntz": "TIMESTAMP_NTZ'2024-03-10 02:30:00.25'",
            "p4 date": "DATE'0001-01-01'",
            "p5 decimal(9,3)": "CAST(-1.5 AS decimal(9,3))",
            "p6 double": "CAST('NaN' AS double)",
            "p7 boolean": "false",
            "p8 binary": "X'C3A4'",
            "p9 float": "1.1F",
        }
        names = [column.split()[0] for column in values]
        table = create("a int, " + ", ".join(values), *names)
        selected = ", ".join(
            f"{value} {name}" for name, value in zip(names, values.values(), strict=True)
        )
        df = session.sql(f"SELECT 1 a, {selected}").coalesce(1)
        source.write(df, table)
        table.append(df)
        one, other = (actions(table, version, "add")[0] for version in (1, 2))
        assert one["partitionValues"] == other["partitionValues"]
        texts = [F.col(name).cast("string").alias(name) for name in names]
        assert rows(source.read(table).select(texts)) == rows(df.union(df).select(texts))

    def test_two_partition_columns_are_told_apart(self, session, create, source):
        table = create("a int, p int, q string", "p", "q")
        df = session.sql(
            "SELECT CAST(id AS int) a, CAST(id % 3 AS int) p, if(id % 2 = 0, null, 'x') q "
            "FROM range(0, 60, 1, 2)"
        )
        source.write(df, table)
        assert rows(source.read(table)) == rows(df)
        assert rows(table.read(session)) == rows(df)
        assert len(data_files(table)) == 12

    def test_statistics_are_those_of_the_other_road(self, session, create, source):
        table = create("a int, s string, st struct<d:double>, n date, ts timestamp")
        df = session.sql(
            "SELECT CAST(id AS int) a, concat(repeat('s', 40), id) s, "
            "named_struct('d', id / 2) st, if(id = 3, DATE'2024-01-03', null) n, "
            "timestamp_micros(id * 1234567) ts FROM range(5)"
        ).coalesce(1)
        source.write(df, table)
        table.append(df)
        one, other = (json.loads(actions(table, v, "add")[0]["stats"]) for v in (1, 2))
        assert one == other

    @pytest.mark.parametrize("place", ["d", "named_struct('d', d)"])
    def test_a_column_with_nan_has_no_bounds(self, session, create, source, place):
        column = "double" if place == "d" else "struct<d:double>"
        table = create(f"a {column}")
        query = (
            f"SELECT {place} a FROM (SELECT CAST(x AS double) d FROM VALUES ('1'), ('NaN') t(x))"
        )
        source.write(session.sql(query).coalesce(1), table)
        stats = json.loads(actions(table, 1, "add")[0]["stats"])
        assert stats["minValues"] == stats["maxValues"] == {}
        where = "a > 100" if place == "d" else "a.d > 100"
        assert table.read(session, where).count() == 1

    def test_minus_zero_is_zero(self, session, create, source):
        table = create("d double, f float, s struct<d:double>")
        df = session.sql("SELECT -0.0D d, CAST(-0.0 AS float) f, named_struct('d', -0.0D) s")
        source.write(df, table)
        for where in ("d = 0.0", "f IN (0.0, 1.0)", "s.d >= 0.0"):
            assert table.read(session).where(where).count() == 1, where
        assert table.delete("d = 0.0", spark=session).deleted == 1


class TestWriting:
    def test_each_task_writes_its_own_files_in_the_transactions_folder(
        self, session, create, source
    ):
        table = create("id bigint, month int", "month")
        df = session.range(0, 100, 1, 3).selectExpr("id", "CAST(id % 2 AS int) month")
        source.write(df, table)
        adds = actions(table, 1, "add")
        assert len(adds) == 6
        assert {decode(add["path"]) for add in adds} == data_files(table)
        assert {add["path"].split("/")[1] for add in adds} == {"month=0", "month=1"}
        for add in adds:
            path = folder_of(table) / decode(add["path"])
            assert add["size"] == path.stat().st_size
            assert pq.read_schema(path).names == ["id"]
        (info,) = actions(table, 1, "commitInfo")
        assert info["operation"] == "WRITE"
        assert info["operationMetrics"]["numOutputRows"] == "100"

    def test_columns_go_by_name_and_numbers_that_fit_are_converted(self, session, create, source):
        table = create("a tinyint, b double, c date")
        source.write(session.sql("SELECT CAST(2 AS int) B, 7L A"), table)
        assert rows(table.read(session)) == [(7, 2.0, None)]

    @pytest.mark.parametrize(
        "case",
        [
            ("SELECT 1 a, 2 more", "a int", r"\['more'\]"),
            ("SELECT 'x' a", "a int", "column a is string in the DataFrame"),
            ("SELECT 300 a", "a tinyint", "column a holds a value that is no byte"),
            ("SELECT 1 b", "a int NOT NULL, b int", "lacks the column a"),
            ("SELECT CAST(null AS int) a", "a int NOT NULL", "column a is NOT NULL"),
            ("SELECT 1 a, 2 A", "a int", "twice"),
        ],
    )
    def test_what_does_not_fit_is_refused_and_leaves_nothing(self, session, create, source, case):
        query, columns, said = case
        session.conf.set("spark.sql.caseSensitive", "true")
        table = create(columns)
        with pytest.raises(PySparkException, match=said):
            source.write(session.sql(query), table)
        # An abort takes a version of its own, which is empty.
        assert table.scan().files == ()
        assert data_files(table) == set()

    def test_a_fraction_is_no_integer(self):
        columns = BatchColumns(StructType.fromDDL("a double"), layout_of("a int"))
        with pytest.raises(InvalidRows, match="column a holds a value that is no integer"):
            columns.conform(pa.RecordBatch.from_pydict({"a": [1.0, 1.5]}))

    def test_a_repeated_task_leaves_one_copy_of_its_rows(self, session, create, source):
        table = create("id bigint, p int", "p")

        def failing_once(batches):
            yield from batches
            task = TaskContext.get()
            if task.partitionId() == 1 and task.attemptNumber() == 0:
                raise RuntimeError("the task fails after its rows")

        df = session.range(0, 1000, 1, 2).mapInArrow(failing_once, "id bigint")
        source.write(df.selectExpr("id", "CAST(id % 3 AS int) p"), table)
        assert sorted(row["id"] for row in independent(table)) == list(range(1000))
        assert len(data_files(table)) == 6

    def test_a_job_that_fails_leaves_nothing_and_its_id_never_lands(self, session, create, source):
        table = create("id bigint")
        query = "SELECT if(id = 700, raise_error('no good'), id) id FROM range(0, 1000, 1, 2)"
        with pytest.raises(PySparkException, match="no good"):
            source.write(session.sql(query), table)
        assert table.scan().files == ()
        assert not list(folder_of(table).glob("tidegate_txn*"))

    def test_no_rows_are_no_commit(self, session, create, source):
        table = create("id bigint")
        source.write(session.range(0), table)
        assert table.version == 0

    def test_overwrite_replaces_the_partitions_of_its_where(self, session, create, source):
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        table = create("id bigint, p int, d date", "p", "d")
        table.append(
            session.sql("SELECT id, CAST(id % 3 AS int) p, DATE'2026-11-20' d FROM range(6)")
        )
        where = "P IN (0, 2) AND d = '2026-11-20'"
        new = session.sql("SELECT 9L id, 2 p, DATE'2026-11-20' d")
        source.write(new, table, mode="overwrite", where=where)
        found = sorted((row["id"], row["p"]) for row in independent(table))
        assert found == [(1, 1), (4, 1), (9, 2)]
        (info,) = actions(table, 2, "commitInfo")
        assert info["operationParameters"]["predicate"] == where
        source.write(new.where("false"), table, mode="overwrite", where="p = 1")
        assert [row["id"] for row in independent(table)] == [9]

    @pytest.mark.parametrize(
        ("where", "said"),
        [
            ("p = 2", "rows in the partition p=1, .*p = 2"),
            ("crc32(p) = 2", "cannot be told of the partition {'p': '1'}"),
        ],
    )
    def test_a_where_that_a_row_does_not_fit_is_refused(self, session, create, source, where, said):
        table = create("id bigint, p int", "p")
        table.append(session.sql("SELECT 1L id, 1 p"))
        before = data_files(table)
        with pytest.raises(PySparkException, match=said):
            source.write(session.sql("SELECT 2L id, 1 p"), table, mode="overwrite", where=where)
        assert data_files(table) == before
        assert len(table.scan().files) == 1

    @pytest.mark.parametrize(
        ("where", "said"),
        [
            ("p = 1 AND id = 1", "not over partition columns alone"),
            ("p =", "syntax error"),
            ("nothing = 1", "no column 'nothing'"),
            ("p = year(CAST(id AS timestamp))", "partition columns alone"),
            ("p = hour(timestamp('2026-11-20'))", "time zone"),
        ],
    )
    def test_a_where_that_does_not_fit_the_table_is_refused(self, lake, create, where, said):
        """Before any row is asked for: Spark is told by the source alone."""
        table = create("id bigint, p int", "p")
        source = TidegateSource({"path": table.name, "url": lake.url, "where": where})
        schema = StructType.fromDDL("id bigint, p int")
        with pytest.raises((InvalidRequest, UnsupportedSession), match=said):
            source.writer(schema, overwrite=True)

    def test_a_where_is_for_overwriting(self, session, create, source):
        table = create("id bigint, p int", "p")
        with pytest.raises(PySparkException, match="where is not for appending"):
            source.write(session.sql("SELECT 2L id, 1 p"), table, where="p = 1")

    def test_a_where_that_another_commit_touched_is_a_conflict(self, session, lake, create, source):
        table = create("id bigint, p int", "p")
        name, url = table.name, lake.url

        def overtaken(batches):
            import tidegate

            yield from batches
            file = tidegate.DataFile(
                path="p=2/rival",
                partition_values={"p": "2"},
                size=1,
                modification_time=0,
                data_change=True,
            )
            with tidegate.connect(url) as here, here.table(name).transaction() as rival:
                rival.add([file])
                rival.commit("WRITE")

        df = (
            session.range(0, 1, 1, 1)
            .selectExpr("id", "1 p")
            .mapInArrow(overtaken, "id bigint, p int")
        )
        source.write(df, table, mode="overwrite", where="p = 1")
        with pytest.raises(PySparkException, match="ConcurrentAppendException"):
            source.write(df, table, mode="overwrite", where="p > 0")

    def test_an_overwrite_that_lost_a_race_says_to_whom_and_leaves_nothing(
        self, session, lake, create, source
    ):
        table = create("id bigint")
        table.append(session.range(5))
        before = data_files(table)
        name, url = table.name, lake.url

        def losing(batches):
            import tidegate

            yield from batches
            with tidegate.connect(url) as here, here.table(name).transaction() as rival:
                rival.update_metadata(comment="changed")
                rival.commit("SET TBLPROPERTIES")

        df = session.range(0, 2, 1, 1).mapInArrow(losing, "id bigint")
        with pytest.raises(PySparkException, match="MetadataChangedException") as lost:
            source.write(df, table, mode="overwrite")
        assert "The winner is version 2" in str(lost.value)
        assert data_files(table) == before

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"replaceWere": "id = 1"}, r"no option replacewere \(is replaceWhere meant\?\)"),
            ({"mergeSchemas": "true"}, r"is mergeSchema meant\?"),
            ({"version": "1"}, "version is not for writing"),
            ({"timestampAsOf": "2026-11-28T00:00:00Z"}, "timestamp is not for writing"),
            ({"readVersion": "one"}, "expected a number as option readVersion"),
            ({"where": "id = 1", "replaceWhere": "id = 2"}, "were given two values"),
        ],
    )
    def test_options_that_it_would_pass_over_are_refused(
        self, session, create, source, options, said
    ):
        table = create("id bigint")
        table.append(session.range(1))
        with pytest.raises(PySparkException, match=said):
            source.write(session.range(2), table, mode="overwrite", **options)
        assert table.version == 1

    def test_partition_by_is_refused_by_pyspark_itself(self, session, lake, create, source):
        """The table says how it is partitioned; what contradicts it never reaches the source."""
        table = create("id bigint, p int", "p")
        writer = session.range(2).selectExpr("id", "1 p").write.format("tidegate").mode("append")
        with pytest.raises(PySparkException):
            writer.option("url", lake.url).partitionBy("id").save(table.name)
        assert table.version == 0

    def test_a_table_with_rules_is_refused(self, session, create, source):
        table = create("a int", **{"delta.constraints.positive": "a > 0"})
        with pytest.raises(PySparkException, match="CHECK constraints"):
            source.write(session.sql("SELECT -1 a"), table)
        assert table.version == 0
