"""Streams from tables: `readStream.format("tidegate")`, over restarts and past every commit."""

import pytest

from tests.spark.reading.change_data import FEED, append_rows
from tests.spark.reading.vectors import VECTORS, delete, vector_of
from tests.spark.tables import rows
from tidegate import VersionNotFound
from tidegate.spark import ChangesUnavailable, StreamStopped, UnsupportedSession, register


class Queries:
    """Streaming queries, and the rows of their batches."""

    def __init__(self, spark, url, checkpoint):
        self._spark = spark
        self._url = url
        self._checkpoint = checkpoint
        self.batches = []

    def start(self, table, **options):
        """One that goes on until it is stopped."""

        def take(df, _):
            self.batches.append(rows(df))

        stream = self._spark.readStream.format("tidegate").options(url=self._url, **options)
        writer = stream.load(table.name).writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", str(self._checkpoint)).start()


@pytest.fixture
def queries(session, lake, tmp_path):
    register(session)
    return Queries(session, lake.url, tmp_path / "checkpoint")


def ids(first, last):
    return [(n,) for n in range(first, last)]


def test_the_table_comes_first_and_then_what_is_appended(spark, create, reader):
    table = create("id bigint")
    table.append(spark.range(0, 4).repartition(2))
    table.append(spark.range(4, 6))
    assert reader.run(table) == [ids(0, 6)]
    assert reader.run(table) == []
    table.append(spark.range(6, 8))
    with table.transaction() as txn:
        txn.update_metadata(comment="nothing of rows")
        txn.commit("COMMENT")
    table.append(spark.range(8, 9))
    assert reader.run(table) == [ids(6, 9)]
    assert reader.run(table) == []


def test_batches_have_so_many_files(create, reader):
    table = create("id bigint")
    append_rows(table, 0, 5)
    assert reader.run(table, maxFilesPerTrigger="2") == [ids(0, 2), ids(2, 4), ids(4, 5)]
    append_rows(table, 5, 8)
    # Another limit after a restart changes nothing of what was read.
    assert reader.run(table, maxBytesPerTrigger="1") == [ids(5, 6), ids(6, 7), ids(7, 8)]
    append_rows(table, 8, 12)
    two = ("8.parquet", "9.parquet")
    size = sum(file.size for file in table.scan().files if file.path in two)
    assert reader.run(table, maxBytesPerTrigger=f"{size}b") == [ids(8, 10), ids(10, 12)]


def test_a_commit_may_be_read_in_parts(spark, create, reader):
    table = create("id bigint, p bigint", "p")
    table.append(spark.range(1).selectExpr("id", "id p"))
    assert len(reader.run(table)) == 1
    table.append(spark.range(10, 13).selectExpr("id", "id p").coalesce(1))
    parts = reader.run(table, maxFilesPerTrigger="2")
    assert [len(part) for part in parts] == [2, 1]
    assert sorted(parts[0] + parts[1]) == [(n, n) for n in range(10, 13)]


class TestBeginnings:
    @pytest.fixture
    def table(self, create):
        table = create("id bigint")
        self.timestamps = append_rows(table, 0, 3)
        return table

    def test_at_a_version(self, table, reader):
        assert reader.run(table, startingVersion="2") == [ids(1, 3)]

    def test_at_the_latest(self, spark, table, reader):
        assert reader.run(table, startingVersion="latest") == []
        table.append(spark.range(9, 10))
        assert reader.run(table, startingVersion="latest") == [ids(9, 10)]

    def test_at_a_timestamp(self, table, reader):
        _, second, _ = self.timestamps
        assert reader.run(table, startingTimestamp=str(second)) == [ids(1, 3)]

    def test_not_at_a_version_that_is_none(self, table, reader):
        with pytest.raises(VersionNotFound, match="9"):
            reader.run(table, startingVersion="9")


class TestRemovals:
    @pytest.fixture
    def table(self, spark, create, reader):
        """Read to its end."""
        table = create("id bigint")
        table.append(spark.range(0, 3))
        assert reader.run(table) == [ids(0, 3)]
        return table

    def test_a_change_stops_it_also_where_deletes_do_not(self, spark, table, reader):
        table.overwrite(spark.range(10, 12))
        for options in ({}, {"ignoreDeletes": "true"}):
            with pytest.raises(
                StreamStopped, match=r"DELTA_SOURCE_TABLE_IGNORE_CHANGES.*version 2"
            ):
                reader.run(table, **options)
        assert reader.run(table, ignoreChanges="true") == [ids(10, 12)]

    def test_a_rewrite_is_nothing(self, table, spark, reader):
        with table.transaction() as txn:
            table.overwrite(table.read(spark).coalesce(1), transaction=txn, dataChange=False)
        assert reader.run(table) == []


def test_deletion_vectors_and_mapped_columns_are_read(spark, create, reader):
    table = create("id bigint, p int", "p", **VECTORS, **{"delta.columnMapping.mode": "name"})
    table.append(spark.sql("SELECT id, 1 p FROM range(3)").coalesce(1))
    (file,) = table.scan().files
    delete(table, file, vector_of(table, [1]))
    assert reader.run(table) == [[(0, 1), (2, 1)]]
    table.append(spark.sql("SELECT 7L id, 2 p"))
    assert reader.run(table) == [[(7, 2)]]
    (file,) = table.scan("p = 1").files
    delete(table, file, vector_of(table, [1, 2]))
    with pytest.raises(StreamStopped, match="IGNORE_CHANGES"):
        reader.run(table)


class TestFeed:
    def test_the_table_comes_first_as_inserts(self, spark, create, reader):
        table = create("id bigint", **FEED)
        table.append(spark.range(2))
        options = {"readChangeFeed": "true"}

        def changes(batches):
            return [[row[:-1] for row in batch] for batch in batches]

        assert changes(reader.run(table, **options)) == [[(0, "insert", 1), (1, "insert", 1)]]
        table.overwrite(spark.range(5, 6))
        table.append(spark.range(6, 7))
        assert changes(reader.run(table, maxFilesPerTrigger="1", **options)) == [
            [(0, "delete", 2), (1, "delete", 2), (5, "insert", 2)],
            [(6, "insert", 3)],
        ]

    def test_from_a_version(self, spark, create, reader):
        table = create("id bigint", **FEED)
        table.append(spark.range(1))
        table.overwrite(spark.range(0))
        (batch,) = reader.run(table, readChangeFeed="true", startingVersion="1")
        assert [row[:-1] for row in batch] == [(0, "delete", 2), (0, "insert", 1)]

    def test_without_it_the_stream_stops(self, spark, create, reader):
        table = create("id bigint")
        table.append(spark.range(1))
        with pytest.raises(ChangesUnavailable, match="DELTA_MISSING_CHANGE_DATA"):
            reader.run(table, readChangeFeed="true")


def test_a_query_that_goes_on_sees_what_comes(spark, create, queries):
    table = create("id bigint", **FEED)
    table.append(spark.range(1))
    query = queries.start(table, readChangeFeed="true")
    try:
        query.processAllAvailable()
        table.overwrite(spark.range(0))
        query.processAllAvailable()
    finally:
        query.stop()
    changes = [[row[:-1] for row in batch] for batch in queries.batches if batch]
    assert changes == [[(0, "insert", 1)], [(0, "delete", 2)]]


def test_a_checkpoint_is_of_one_table(spark, create, reader):
    table, other = create("id bigint"), create("id bigint")
    for each in (table, other):
        each.append(spark.range(1))
    reader.run(table)
    other.append(spark.range(1))
    with pytest.raises(StreamStopped, match="DIFFERENT_DELTA_TABLE"):
        reader.run(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ignoreDelete": "true"}, r"no option ignoredelete \(is ignoreDeletes meant"),
        ({"withEventTimeOrder": "true"}, "no option witheventtimeorder"),
        ({"ignoreDeletes": "yes"}, "true or false"),
        ({"maxFilesPerTrigger": "0"}, "at least 1"),
        ({"maxBytesPerTrigger": "many"}, "number of bytes"),
        ({"startingVersion": "1", "startingTimestamp": "1"}, "BOTH_SET"),
        ({"version": "1"}, "not for streams"),
        ({"where": "id = 1"}, "not for streams"),
    ],
)
def test_options_that_mean_nothing_are_refused(spark, create, reader, options, message):
    table = create("id bigint")
    table.append(spark.range(1))
    with pytest.raises(UnsupportedSession, match=message):
        reader.run(table, **options)
