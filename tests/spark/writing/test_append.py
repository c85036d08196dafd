"""Appending through the real service, read back by Spark and, from the log alone, by deltalake."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tests.spark.tables import actions, data_files, folder_of, independent, overtake, rows
from tidegate import CommitStateUnknown, Lake, MetadataChangedException
from tidegate.spark import InvalidRows, SchemaMismatch
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import TransportFailure
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport
from tidegate_protocol.log.paths import decode

COLUMNS = """
    by tinyint, sh smallint, i int, l bigint, f float, d double, de decimal(20,3), bo boolean,
    s string, bi binary, da date, ts timestamp, st struct<x:int,y:struct<z:string>>,
    ar array<int>, ma map<string,bigint>, deep array<struct<k:map<string,array<double>>>>
"""
ROW = {
    "by": -1,
    "sh": 300,
    "i": 70000,
    "l": 2**40,
    "f": 1.5,
    "d": 0.1,
    "de": Decimal("12345678901234567.125"),
    "bo": True,
    "s": "ä 🙂\n",
    "bi": b"\x00\xff",
    "da": dt.date(1066, 10, 14),
    "ts": dt.datetime(2024, 3, 10, 2, 30, 0, 123456),
    "st": {"x": 1, "y": {"z": "q"}},
    "ar": [1, None],
    "ma": {"k": 5},
    "deep": [{"k": {"a": [0.5]}}],
}


def flat(value):
    """Maps as dicts and instants without their zone, which readers differ in."""
    match value:
        case dict():
            return {key: flat(item) for key, item in value.items()}
        case [(_, _), *_] if all(isinstance(item, tuple) for item in value):
            return {key: flat(item) for key, item in value}
        case list():
            return [flat(item) for item in value]
        case dt.datetime():
            return value.replace(tzinfo=None)
    return value


class TestRows:
    def test_every_type_comes_back(self, spark, create):
        table = create(COLUMNS)
        # Parsed as UTC, the session's zone; Python's own zone is another matter.
        ts = F.to_timestamp_ntz(F.lit(str(ROW["ts"]))).cast("timestamp")
        schema = StructType.fromDDL(COLUMNS)
        df = spark.createDataFrame([{**ROW, "ts": None}], schema).withColumn("ts", ts)
        nulls = spark.createDataFrame([{}], schema)

        assert table.append(df.union(nulls)).version == 1

        expected = [ROW, dict.fromkeys(ROW)]
        found = sorted(independent(table), key=lambda row: row["i"] is None)
        assert [flat(row) for row in found] == expected
        back = table.read(spark).orderBy(F.col("i").isNull())
        assert back.schema == schema
        assert [row["ts"] for row in back.selectExpr("cast(ts AS string) ts").collect()] == [
            str(ROW["ts"]),
            None,
        ]
        found = [row.asDict(recursive=True) for row in back.drop("ts").collect()]
        assert found == [{k: v for k, v in row.items() if k != "ts"} for row in expected]

    def test_timestamps_without_a_zone_come_back(self, spark, create):
        table = create("a timestamp_ntz")
        table.append(spark.sql("SELECT TIMESTAMP_NTZ'2024-03-10 02:30:00.123456' a"))
        local = dt.datetime(2024, 3, 10, 2, 30, 0, 123456)
        assert independent(table) == [{"a": local}]
        assert rows(table.read(spark)) == [(local,)]

    def test_every_partition_value_comes_back(self, spark, create):
        values = {
            "p0 string": "a/b=c%d e:f?g*h[i]{j}k^l~m+n#o&p,q",
            "p1 string": "äöü 漢字 🙂",
            "p2 string": " ",
            "p3 string": None,
            "p4 int": None,
            "p5 bigint": -(2**40),
            "p6 boolean": False,
            "p7 double": 1.5e300,
            "p8 decimal(9,3)": Decimal("1.500"),
            "p9 date": dt.date(1, 1, 1),
            "pa binary": b"plain",
        }
        names = [column.split()[0] for column in values]
        columns = "a int, " + ", ".join(values)
        table = create(columns, *names)
        schema = StructType.fromDDL(columns)
        row = (1, *values.values())
        table.append(spark.createDataFrame([row], schema))
        assert independent(table) == [dict(zip(["a", *names], row, strict=True))]
        assert rows(table.read(spark)) == [row]
        assert table.read(spark).schema == schema

    def test_the_empty_string_is_null_in_a_partition_column(self, spark, create):
        table = create("a int, p string", "p")
        table.append(spark.sql("SELECT 1 a, '' p"))
        assert independent(table) == [{"a": 1, "p": None}]
        assert rows(table.read(spark)) == [(1, None)]

    @pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
    def test_timestamps_as_partition_values_are_one_instant_for_all(self, session, create, zone):
        table = create("a int, p timestamp", "p")
        session.conf.set("spark.sql.session.timeZone", zone)
        table.append(session.sql("SELECT 1 a, TIMESTAMP'2024-03-10 02:30:00.25 UTC' p"))
        instant = dt.datetime(2024, 3, 10, 2, 30, 0, 250000, dt.UTC)
        assert independent(table) == [{"a": 1, "p": instant}]
        assert rows(table.read(session).selectExpr("unix_micros(p)")) == [
            (int(instant.timestamp() * 10**6),)
        ]

    def test_columns_may_come_in_any_order_and_case_and_some_not_at_all(self, spark, create):
        table = create("a int, b string, c date")
        table.append(spark.sql("SELECT 'x' B, 1 A"))
        assert independent(table) == [{"a": 1, "b": "x", "c": None}]


class TestCommits:
    def test_the_log_names_each_file_as_it_lies(self, spark, create):
        table = create("a int, month int", "month")
        receipt = table.append(
            spark.sql("SELECT id a, id % 2 month FROM range(10)"), user_metadata="nightly"
        )
        adds = actions(table, 1, "add")
        assert {decode(add["path"]) for add in adds} == data_files(table)
        for add in adds:
            month = add["partitionValues"]["month"]
            assert f"/month={month}/" in add["path"]
            assert receipt.transaction_id in add["path"]
            assert add["size"] == (folder_of(table) / decode(add["path"])).stat().st_size
        assert sum(json.loads(add["stats"])["numRecords"] for add in adds) == 10
        (info,) = actions(table, 1, "commitInfo")
        assert info["operation"] == "WRITE"
        assert info["operationParameters"] == {"mode": "Append", "partitionBy": '["month"]'}
        assert info["operationMetrics"]["numOutputRows"] == "10"
        assert info["userMetadata"] == "nightly"
        assert info["isBlindAppend"]

    def test_statistics_are_what_the_rows_say(self, spark, create):
        table = create("a int, s string, st struct<d:double>, n date")
        table.append(
            spark.sql(
                "SELECT CAST(id AS int) a, concat('s', id) s, named_struct('d', id / 2) st, "
                "if(id = 3, DATE'2024-01-03', null) n FROM range(5)"
            ).coalesce(1)
        )
        (found,) = pa.table(DeltaTable(table.location).get_add_actions(flatten=True)).to_pylist()
        assert {k: v for k, v in found.items() if k.partition(".")[0] in ("min", "max")} == {
            "min.a": 0,
            "max.a": 4,
            "min.s": "s0",
            "max.s": "s4",
            "min.st.d": 0.0,
            "max.st.d": 2.0,
            "min.n": dt.date(2024, 1, 3),
            "max.n": dt.date(2024, 1, 3),
        }
        assert found["num_records"] == 5
        assert found["null_count.n"] == 4

    def test_nothing_to_append_is_no_commit(self, spark, create):
        table = create("id bigint")
        assert table.append(spark.range(0)) is None
        assert table.version == 0
        assert data_files(table) == set()

    def test_an_applications_version_lands_once(self, spark, create):
        table = create("id bigint")
        assert table.append(spark.range(2), txn=("nightly", 7)).version == 1
        assert table.append(spark.range(2), txn=("nightly", 7)) is None
        assert table.append(spark.range(2), txn=("nightly", 6)) is None
        assert table.txn_version("nightly") == 7
        assert table.append(spark.range(0), txn=("nightly", 8)).version == 2
        assert table.txn_version("nightly") == 8
        assert table.read(spark).count() == 2

    def test_an_append_that_is_overtaken_by_another_lands_behind_it(self, spark, lake, create):
        table = create("id bigint")
        overtake(table, lambda: lake.table(table.id).append(spark.range(2)))
        receipt = table.append(spark.range(3))
        assert (receipt.read_version, receipt.version, receipt.rebased_over) == (0, 2, 1)
        assert table.read(spark).count() == 5


class AnswersLost:
    """The service behind a line that goes dead: proposals reach it or not, answers never do."""

    def __init__(self, url, *, arrives):
        self._transport = HttpTransport(url, token=None)
        self._arrives = arrives
        self._dead = False

    def send(self, request, *, timeout_s):
        if request.path.endswith("/commits"):
            self._dead = True
            if self._arrives:
                # Until it is answered: the caller's patience is over by then.
                self._transport.send(request, timeout_s=60.0)
        if self._dead:
            return TransportFailure(sent=True, detail="the line went dead")
        return self._transport.send(request, timeout_s=timeout_s)

    def close(self):
        self._transport.close()


class TestUnknownOutcomes:
    @pytest.mark.parametrize("arrives", [True, False])
    def test_what_may_have_landed_keeps_its_files(self, spark, lake, create, arrives):
        table = create("id bigint")
        line = AnswersLost(lake.url, arrives=arrives)
        policy = RetryPolicy(deadline_s=0.1, attempt_s=10.0)
        cut_off = Lake(Connection(line, policy=policy), url=lake.url)
        with cut_off, pytest.raises(CommitStateUnknown) as unknown:
            cut_off.table(table.id).append(spark.range(3))
        assert not unknown.value.definite
        assert data_files(table)
        assert table.read(spark).count() == (3 if arrives else 0)


class TestFailures:
    def test_a_row_that_does_not_fit_stops_everything(self, spark, create):
        table = create("id bigint NOT NULL")
        with pytest.raises(InvalidRows, match="column id is NOT NULL") as failure:
            table.append(spark.sql("SELECT if(id = 7, null, id) id FROM range(10)"))
        assert failure.value.definite
        assert table.version == 0
        assert not list(folder_of(table).glob("tidegate_txn*"))

    def test_a_frame_that_does_not_fit_is_refused_before_any_job(self, spark, create):
        table = create("id bigint")
        with pytest.raises(SchemaMismatch, match="extra"):
            table.append(spark.sql("SELECT 1 id, 2 extra"))
        assert not list(folder_of(table).glob("tidegate_txn*"))

    def test_a_job_that_fails_leaves_nothing(self, spark, create):
        table = create("id bigint")
        query = "SELECT if(id = 7, raise_error('this row is no good'), id) id FROM range(10)"
        with pytest.raises(PySparkException, match="this row is no good"):
            table.append(spark.sql(query))
        assert table.version == 0
        assert not list(folder_of(table).glob("tidegate_txn*"))

    def test_a_lost_race_takes_its_files_along(self, spark, lake, create):
        table = create("id bigint")

        def change():
            with lake.table(table.id).transaction() as other:
                other.update_metadata(comment="changed")
                other.commit("SET TBLPROPERTIES")

        overtake(table, change)
        with pytest.raises(MetadataChangedException) as failure:
            table.append(spark.range(5))
        assert failure.value.conflict.version == 1
        assert data_files(table) == set()
        assert not list(folder_of(table).glob("tidegate_txn*"))
