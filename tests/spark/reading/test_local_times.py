"""Timestamps of partitions without a zone in the log, as older writers left them: they are of the
zone of the session that reads them, as in Delta Spark."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.spark.layouts import layout_of
from tests.spark.tables import folder_of, rows
from tidegate import DataFile
from tidegate.spark.errors import InvalidRows, UnsupportedSession
from tidegate.spark.tables.partitions import canonical_text, typed_partitions
from tidegate.spark.tables.zones import SESSION_ZONE, zone_of

ZONE = "America/Los_Angeles"
LOCAL = "2024-01-02 03:04:05"
UTC = "2024-01-02T11:04:05.000000Z"
"""The same in Los Angeles."""
OTHER = "2024-01-02T03:04:05.000000Z"
IN_ZONE, IN_OTHER = 1704193445, 1704164645
"""Seconds since 1970 of these two."""


@pytest.fixture
def table(session, create):
    """Two files with the ids 1 and 2 of a local time, and one with 3 of an instant that has the
    same digits in UTC; the session is in Los Angeles."""
    session.conf.set(SESSION_ZONE, ZONE)
    made = create("id int, v string, p timestamp", "p")
    add(made, "a", [1], LOCAL)
    add(made, "b", [2], LOCAL)
    add(made, "c", [3], OTHER)
    return made


def add(table, path, ids, value):
    """Commit a file as some other writer had it."""
    where = folder_of(table) / path
    data = {"id": pa.array(ids, pa.int32()), "v": pa.array(["old"] * len(ids))}
    pq.write_table(pa.table(data), where)
    file = DataFile(
        path=path,
        partition_values={"p": value},
        size=where.stat().st_size,
        modification_time=0,
        data_change=True,
    )
    with table.transaction() as txn:
        txn.add([file])
        txn.commit("WRITE")


def seconds(df):
    return rows(df.select("id", F.unix_seconds("p")))


def values(table):
    """The partition values in the log, of each file."""
    return sorted(file.partition_values["p"] for file in table.scan().files)


class TestReading:
    def test_is_by_the_zone_of_the_session(self, session, table):
        assert seconds(table.read(session)) == [(1, IN_ZONE), (2, IN_ZONE), (3, IN_OTHER)]
        session.conf.set(SESSION_ZONE, "UTC")
        assert seconds(table.read(session)) == [(1, IN_OTHER), (2, IN_OTHER), (3, IN_OTHER)]

    @pytest.mark.parametrize("kind", ["TIMESTAMP_NTZ", "TIMESTAMP_LTZ"])
    def test_is_the_same_whatever_a_timestamp_is_by_its_plain_name(self, session, table, kind):
        session.conf.set("spark.sql.timestampType", kind)
        assert seconds(table.read(session)) == [(1, IN_ZONE), (2, IN_ZONE), (3, IN_OTHER)]

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (f"p = TIMESTAMP'{LOCAL}'", [1, 2]),
            (f"p = TIMESTAMP'{UTC}'", [1, 2]),
            (f"p = TIMESTAMP'{OTHER}'", [3]),
            ("CAST(p AS BIGINT) > 1704170000", [1, 2]),
            ("CAST(p AS DATE) = DATE'2024-01-01'", [3]),
        ],
    )
    def test_of_rows_that_match(self, session, table, source, where, expected):
        session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        for found in (
            table.read(session, where),
            table.read(session).where(where),
            source.read(table).where(where),
        ):
            assert sorted(row["id"] for row in found.collect()) == expected

    def test_by_the_data_source(self, session, table, source):
        everything = source.read(table)
        assert seconds(everything) == [(1, IN_ZONE), (2, IN_ZONE), (3, IN_OTHER)]
        session.conf.set(SESSION_ZONE, "+05:30")
        assert seconds(source.read(table))[0] == (1, IN_OTHER - 19_800)

    def test_by_tasks_that_are_not_told_the_zone_is_refused(self, session, table, source):
        with pytest.raises(PySparkException, match="are not told that of the session"):
            source.read(table).rdd.collect()

    def test_the_option_where_takes_none(self, session, table, source):
        times = f"p = TIMESTAMP'{UTC}'", f"p >= '{LOCAL}'", "CAST(p AS DATE) = '2024-01-01'"
        made = "CAST('2024-01-01' AS TIMESTAMP) IS NULL", "hour('2024-01-01') = 1"
        for where in (*times, *made, "EXTRACT(HOUR FROM p) = 1"):
            with pytest.raises(PySparkException, match="depend on the session's time zone"):
                source.read(table, where=where).collect()

    def test_what_is_no_time_is_refused(self, session, create):
        layout = layout_of("id int, p timestamp", partition_by=("p",))
        with pytest.raises(InvalidRows):
            typed_partitions(layout, [{"p": "2024-02-30 00:00:00"}])


class TestChanges:
    def test_are_read_by_the_zone_of_the_session(self, session, create, source):
        session.conf.set(SESSION_ZONE, ZONE)
        made = create(
            "id int, v string, p timestamp", "p", **{"delta.enableChangeDataFeed": "true"}
        )
        add(made, "a", [1, 2], LOCAL)
        made.delete("id = 1", spark=session)
        expected = [(1, IN_ZONE), (1, IN_ZONE), (2, IN_ZONE)]
        assert seconds(made.changes(session, from_version=1)) == expected
        assert seconds(source.read(made, readChangeFeed="true", startingVersion=1)) == expected

    def test_of_a_stream(self, session, table, source, tmp_path):
        stream = session.readStream.format("tidegate").options(url=source._url).load(table.name)
        found = tmp_path / "found"
        query = stream.writeStream.format("parquet").option("path", str(found))
        query = query.option("checkpointLocation", str(tmp_path / "log"))
        query.trigger(availableNow=True).start().awaitTermination(120)
        assert seconds(session.read.parquet(str(found))) == [
            *((1, IN_ZONE), (2, IN_ZONE), (3, IN_OTHER))
        ]


class TestRewriting:
    """What is written anew says its zone, and is the same instant."""

    @staticmethod
    def check(session, table, *expected):
        assert values(table) == sorted([OTHER, *expected])
        found = {number: IN_OTHER if number == 3 else IN_ZONE for number in (1, 2, 3)}
        assert dict(seconds(table.read(session))) == found
        if LOCAL not in expected:
            session.conf.set(SESSION_ZONE, "Asia/Tokyo")
            assert dict(seconds(table.read(session))) == found

    def test_optimize(self, session, table):
        add(table, "d", [], UTC)
        table.optimize(spark=session)
        # The file with an instant is of the partition that those without a zone are of.
        self.check(session, table, UTC)

    def test_update(self, session, table):
        table.update({"v": "'new'"}, "id <= 2", spark=session)
        self.check(session, table, UTC, UTC)

    def test_update_where_it_is(self, session, table):
        table.update({"v": "'new'"}, f"p = TIMESTAMP'{LOCAL}'", spark=session)
        assert rows(table.read(session, "v = 'new'").select("id")) == [(1,), (2,)]
        self.check(session, table, UTC, UTC)

    def test_delete(self, session, table):
        add(table, "d", [1, 7], LOCAL)
        table.delete("id = 7", spark=session)
        self.check(session, table, LOCAL, LOCAL, UTC)

    def test_merge(self, session, table):
        source = session.sql(f"SELECT 2 AS id, TIMESTAMP'{UTC}' AS p UNION ALL SELECT 1, NULL")
        merged = table.merge(source.alias("s"), "t.id = s.id AND t.p = s.p", alias="t")
        merged.whenMatchedUpdate(set={"v": "'new'"}).execute()
        self.check(session, table, LOCAL, UTC)


class TestRemoving:
    @pytest.mark.parametrize("text", [LOCAL, UTC])
    def test_of_whole_partitions(self, session, table, text):
        table.delete(f"p = TIMESTAMP'{text}'", spark=session)
        assert seconds(table.read(session)) == [(3, IN_OTHER)]
        assert values(table) == [OTHER]

    @pytest.mark.parametrize("road", ["table", "source"])
    def test_by_a_dynamic_overwrite(self, session, table, source, road):
        rows_ = session.sql(f"SELECT 9 AS id, 'new' AS v, TIMESTAMP'{LOCAL}' AS p")
        if road == "table":
            table.overwrite(rows_, partitionOverwriteMode="dynamic")
        else:
            source.write(rows_, table, "overwrite", partitionOverwriteMode="dynamic")
        assert seconds(table.read(session)) == [(3, IN_OTHER), (9, IN_ZONE)]
        assert values(table) == [OTHER, UTC]

    def test_by_replace_where(self, session, table):
        rows_ = session.sql(f"SELECT 9 AS id, 'new' AS v, TIMESTAMP'{UTC}' AS p")
        table.overwrite(rows_, replace_where=f"p = TIMESTAMP'{LOCAL}'")
        assert seconds(table.read(session)) == [(3, IN_OTHER), (9, IN_ZONE)]


class TestZones:
    """Python reads local times as Spark does."""

    NAMES = (ZONE, "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Etc/GMT+3", "UTC", "Z")
    OFFSETS = ("+05:30", "-3", "+1:5", "UTC+01:00", "GMT-0930", "+18:00", "-00:00:30")

    @pytest.mark.parametrize("name", NAMES + OFFSETS)
    def test_beside_spark(self, session, name):
        session.conf.set(SESSION_ZONE, name)
        layout = layout_of("id int, p timestamp", partition_by=("p",))
        # The hours around changes of the offset, and years of one rule each.
        texts = [
            (start + dt.timedelta(minutes=30 * step, microseconds=step)).isoformat(sep=" ")
            for start in (
                *(dt.datetime(2024, 3, 9, 22), dt.datetime(2024, 3, 30, 22)),
                *(dt.datetime(2024, 10, 26, 22), dt.datetime(2024, 11, 2, 22)),
                *(dt.datetime(2024, 4, 6, 22), dt.datetime(2024, 10, 5, 22)),
                *(dt.datetime(2011, 12, 29, 12), dt.datetime(1972, 7, 1), dt.datetime(2099, 7, 1)),
            )
            for step in range(60)
        ]
        typed = typed_partitions(layout, [{"p": text} for text in texts])["p"]
        micros = F.transform(typed, F.unix_micros)
        (row,) = session.range(1).select(micros.alias("found")).collect()
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        ours = [canonical_text(layout, "p", text, zone=name) for text in texts]
        assert [
            (dt.datetime.fromisoformat(text) - epoch) // dt.timedelta(microseconds=1)
            for text in ours
        ] == row["found"]

    @pytest.mark.parametrize("name", ["PST", "Nowhere/At_all", "../etc/passwd", ""])
    def test_that_python_does_not_know_are_refused(self, name):
        with pytest.raises(UnsupportedSession, match="Python does not know"):
            zone_of(name)

    def test_are_not_asked_for_values_that_say_theirs(self):
        layout = layout_of("id int, p timestamp", partition_by=("p",))
        assert canonical_text(layout, "p", UTC, zone=None) == UTC
        with pytest.raises(UnsupportedSession, match="not told"):
            canonical_text(layout, "p", LOCAL, zone=None)
