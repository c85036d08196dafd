"""Streams from tables: `readStream.format("tidegate")`, over restarts and past every commit."""

import json
import pickle

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.reading.change_data import FEED
from tests.spark.reading.vectors import VECTORS, delete, vector_of
from tests.spark.tables import rows
from tidegate import VersionNotFound
from tidegate.spark import ChangesUnavailable, StreamStopped, UnsupportedSession, register
from tidegate.spark.source.read_options import StreamOptions
from tidegate.spark.source.source import TidegateSource
from tidegate.spark.source.stream_files import StreamFiles
from tidegate.spark.source.stream_offset import Offset
from tidegate.spark.tables.layout import TableLayout


class Reader:
    """A stream from a table, asked as Spark asks it, with the offset that a checkpoint keeps; each
    run is a new one that takes what there is and ends."""

    def __init__(self, url):
        self._url = url
        self._offset = None

    def run(self, table, **options):
        """The rows of each batch of a run. Raises what it fails of."""
        source = TidegateSource({"path": table.name, "url": self._url, **options})
        schema = source.schema()
        stream = source.streamReader(schema)
        # Spark sends copies of it to the tasks.
        tasks = pickle.loads(CloudPickleSerializer().dumps(source.streamReader(schema)))
        stream.prepareForTriggerAvailableNow()
        if self._offset is None:
            self._offset = json.dumps(stream.initialOffset())
        batches = []
        while True:
            start = json.loads(self._offset)
            end = json.loads(json.dumps(stream.latestOffset(start, stream.getDefaultReadLimit())))
            if end == start:
                return batches
            parts = stream.partitions(start, end)
            found = [row for part in parts for batch in tasks.read(part) for row in tuples(batch)]
            batches.append(sorted(found))
            self._offset = json.dumps(end)


def tuples(batch):
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@pytest.fixture
def reader(spark, lake):
    return Reader(lake.url)


class Queries:
    """Streaming queries with one checkpoint."""

    def __init__(self, spark, url, checkpoint):
        self._spark = spark
        self._url = url
        self._checkpoint = checkpoint
        self.batches = []

    def start(self, table, **options):
        """One that goes on until it is stopped."""
        return self._writer(table, options).start()

    def run(self, table, **options):
        """The rows of each batch of one that takes what there is and ends."""
        self.batches.clear()
        self._writer(table, options).trigger(availableNow=True).start().awaitTermination()
        return list(self.batches)

    def _writer(self, table, options):
        def take(df, _):
            self.batches.append(rows(df))

        stream = self._spark.readStream.format("tidegate").options(url=self._url, **options)
        writer = stream.load(table.name).writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", str(self._checkpoint))


@pytest.fixture
def queries(session, lake, tmp_path):
    register(session)
    return Queries(session, lake.url, tmp_path / "checkpoint")


def layout_of(table):
    head = table.head()
    return TableLayout.of(name=table.name, location=table.location, metadata=head.metadata)


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


def test_batches_have_so_many_files(spark, create, reader):
    table = create("id bigint")
    for n in range(5):
        table.append(spark.range(n, n + 1))
    assert reader.run(table, maxFilesPerTrigger="2") == [ids(0, 2), ids(2, 4), ids(4, 5)]
    for n in range(5, 8):
        table.append(spark.range(n, n + 1))
    # Another limit after a restart changes nothing of what was read.
    assert reader.run(table, maxBytesPerTrigger="1") == [ids(5, 6), ids(6, 7), ids(7, 8)]
    for n in range(8, 12):
        table.append(spark.range(n, n + 1))
    size = sum(file.size for file in table.scan("id in (8, 9)").files)
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
    def table(self, spark, create):
        table = create("id bigint")
        self.timestamps = [table.append(spark.range(n, n + 1)).timestamp for n in range(3)]
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

    def test_a_delete_stops_it(self, spark, table, reader):
        table.overwrite(spark.range(0))
        with pytest.raises(StreamStopped, match=r"DELTA_SOURCE_IGNORE_DELETE.*version 2"):
            reader.run(table)
        table.append(spark.range(3, 4))
        assert reader.run(table, ignoreDeletes="true") == [ids(3, 4)]

    def test_a_change_stops_it_also_where_deletes_do_not(self, spark, table, reader):
        table.overwrite(spark.range(10, 12))
        for options in ({}, {"ignoreDeletes": "true"}):
            with pytest.raises(
                StreamStopped, match=r"DELTA_SOURCE_TABLE_IGNORE_CHANGES.*version 2"
            ):
                reader.run(table, **options)
        assert reader.run(table, ignoreChanges="true") == [ids(10, 12)]

    def test_changes_are_skipped_as_whole_commits(self, spark, table, reader):
        table.overwrite(spark.range(0))
        table.append(spark.range(4, 6))
        table.overwrite(spark.range(6, 9))
        table.append(spark.range(9, 11))
        options = {"ignoreChanges": "true", "skipChangeCommits": "true"}
        (batch,) = reader.run(table, **options)
        assert batch == [*ids(4, 6), *ids(9, 11)]

    def test_a_rewrite_is_nothing(self, table, spark, reader):
        with table.transaction() as txn:
            table.overwrite(table.read(spark).coalesce(1), transaction=txn, dataChange=False)
        assert reader.run(table) == []


class TestSchemas:
    def test_a_new_column_stops_it_and_a_restart_goes_on(self, spark, create, lake, reader):
        table = create("id bigint")
        table.append(spark.range(1))
        assert reader.run(table) == [ids(0, 1)]
        source = TidegateSource({"path": table.name, "url": lake.url})
        stream = source.streamReader(source.schema())
        table.append(spark.sql("SELECT 5L id, 'x' s"), mergeSchema=True)
        start = Offset(table_id=table.id, version=2).to_json()
        with pytest.raises(StreamStopped, match=r"DELTA_SCHEMA_CHANGED_WITH_VERSION.*version 2"):
            stream.latestOffset(start, ReadAllAvailable())
        assert reader.run(table) == [[(5, "x")]]

    def test_a_column_that_is_gone_stops_it_for_good(self, spark, create, reader):
        table = create("id bigint, s string")
        table.append(spark.sql("SELECT 1L id, 'x' s"))
        assert len(reader.run(table)) == 1
        table.append(spark.sql("SELECT 2L id, 'y' s"))
        table.overwrite(spark.sql("SELECT 3L id"), overwriteSchema=True)
        for _ in range(2):
            with pytest.raises(StreamStopped, match="DELTA_SCHEMA_CHANGED"):
                reader.run(table, ignoreChanges="true")


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


def test_a_query_reads_on_after_a_restart(spark, create, queries):
    table = create("id bigint, p int", "p")
    table.append(spark.sql("SELECT id, 1 p FROM range(2)").coalesce(1))
    table.append(spark.sql("SELECT id, 2 p FROM range(2, 3)"))
    first, second = [(0, 1), (1, 1)], [(2, 2)]
    assert sorted(queries.run(table, maxFilesPerTrigger="1")) == [first, second]
    table.append(spark.sql("SELECT id, 3 p FROM range(3, 4)"))
    assert queries.run(table) == [[(3, 3)]]
    table.overwrite(spark.sql("SELECT 9L id, 9 p"))
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        queries.run(table)


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
        ({"ignoreDelete": "true"}, "no options .*ignoredelete"),
        ({"withEventTimeOrder": "true"}, "no options"),
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


class TestLostCommits:
    """A log that was cleaned up past a stream."""

    @pytest.fixture
    def table(self, spark, create):
        table = create("id bigint")
        for n in range(3):
            table.append(spark.range(n, n + 1))
        found = table.commit_bytes

        def commit_bytes(version):
            if version == 2:
                raise VersionNotFound("version 2 is gone", definite=True)
            return found(version)

        table.commit_bytes = commit_bytes
        return table

    def versions(self, table, **options):
        files = StreamFiles(table, layout_of(table), StreamOptions.parse(options))
        start = Offset(table_id=table.id, version=1)
        return [offset.version for offset, _ in files.steps(start, last=3)]

    def test_are_an_error(self, table):
        with pytest.raises(StreamStopped, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
            self.versions(table)

    def test_are_passed_over_where_that_is_asked_for(self, table):
        assert self.versions(table, failondataloss="false") == [2, 4]


class TestOffsets:
    def test_they_come_back_from_json(self):
        offset = Offset(table_id="t", version=3, index=4, is_snapshot=True)
        text = json.dumps(offset.to_json())
        assert Offset.parse(json.loads(text), table_id="t") == offset

    def test_one_of_a_newer_client_is_refused(self):
        value = Offset(table_id="t", version=3).to_json() | {"format": 2}
        with pytest.raises(StreamStopped, match="DELTA_INVALID_SOURCE_OFFSET_FORMAT"):
            Offset.parse(value, table_id="t")


@pytest.mark.parametrize(
    ("text", "expected"), [("1024", 1024), ("10m", 10 << 20), ("1gb", 1 << 30), ("7B", 7)]
)
def test_sizes_are_read_as_spark_writes_them(text, expected):
    assert StreamOptions.parse({"maxbytespertrigger": text}).max_bytes == expected


def test_a_size_of_nothing_is_refused():
    with pytest.raises(UnsupportedSession, match="number of bytes"):
        StreamOptions.parse({"maxbytespertrigger": "0"})
