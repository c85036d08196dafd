"""What the write options of `format("tidegate")` leave in the log."""

import json

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, data_files, folder_of, independent, rows


def info(table, version):
    (found,) = actions(table, version, "commitInfo")
    return found


class TestBatch:
    def test_a_misspelt_one_is_refused_with_the_known_ones(self, session, months, source):
        frame = months.read(session)
        with pytest.raises(
            PySparkException, match=r"mergeschem \(is mergeSchema meant\?\).*maxRecordsPerFile"
        ):
            source.write(frame, months, mergeSchem="true")
        with pytest.raises(PySparkException, match="true or false"):
            source.write(frame, months, mergeSchema="yes")
        assert months.version == 1

    def test_an_error_has_its_words_and_no_frames(self, session, months, source):
        frame = months.read(session).withColumn("note", F.lit(1))
        for call, told in (
            (lambda: source.write(frame, months), "SchemaMismatch: [DELTA_METADATA_MISMATCH] the"),
            (lambda: source.read(months, timestamp="2026-01-31"), "[DELTA_TIMESTAMP_INVALID] exp"),
            (lambda: source.read(months, version=7), "VersionNotFound: [DELTA_VERSION_NOT_FOUND"),
            (
                lambda: source.read(months, readChangeFeed="true", startingVersion=0).collect(),
                "ChangesUnavailable: [DELTA_MISSING_CHANGE_DATA] Error getting change data",
            ),
        ):
            with pytest.raises(PySparkException) as refused:
                call()
            assert told in str(refused.value)
            assert str(refused.value).count('File "') == 1

    def test_a_row_that_does_not_fit_says_so_alone(self, session, create, source):
        table = create("id bigint not null")
        with pytest.raises(PySparkException) as refused:
            source.write(session.sql("SELECT CAST(null AS BIGINT) AS id"), table)
        assert "InvalidRows: [DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column id" in str(refused.value)
        assert str(refused.value).count('File "') == 1

    def test_they_are_none_of_reading(self, months, source):
        with pytest.raises(PySparkException, match="compression"):
            source.read(months, compression="zstd").count()

    def test_what_is_kept_in_the_history_and_lands_once(self, session, months, source):
        frame = session.sql("SELECT 90 AS a, 9 AS month")
        once = {"txnAppId": "etl", "txnVersion": "3", "userMetadata": "nightly"}
        source.write(frame, months, **once)
        (txn,) = actions(months, 2, "txn")
        assert (txn["appId"], txn["version"]) == ("etl", 3)
        assert info(months, 2)["userMetadata"] == "nightly"
        before = data_files(months)
        source.write(frame, months, **once)
        assert (months.version, data_files(months)) == (2, before)

    @pytest.mark.parametrize(
        ("codec", "written"),
        [
            ("zstd", ("ZSTD", ".zstd.parquet")),
            ("GZIP", ("GZIP", ".gz.parquet")),
            ("none", ("UNCOMPRESSED", ".parquet")),
            ("lz4", ("LZ4", ".lz4.parquet")),
        ],
    )
    def test_files(self, session, create, source, codec, written):
        table = create("id bigint, p int", "p")
        frame = session.sql("SELECT id, int(id % 2) AS p FROM range(10)").coalesce(1)
        source.write(frame, table, compression=codec, maxRecordsPerFile="2", dataChange="false")
        added = actions(table, 1, "add")
        counts = [json.loads(add["stats"])["numRecords"] for add in added]
        assert sorted(counts) == [1, 1, 2, 2, 2, 2]
        assert not any(add["dataChange"] for add in added)
        for path in data_files(table):
            footer = pq.read_metadata(folder_of(table) / path)
            assert footer.row_group(0).column(0).compression == written[0]
            assert path.endswith(written[1])
        assert sorted(row["id"] for row in independent(table)) == list(range(10))
        assert rows(table.read(session)) == rows(frame)

    def test_columns_are_added(self, session, months, source):
        frame = session.sql("SELECT 40 AS a, 4 AS month, 'x' AS note")
        with pytest.raises(PySparkException, match="note"):
            source.write(frame, months)
        source.write(frame, months, mergeSchema="true")
        assert len(actions(months, 2, "metaData")) == 1
        assert info(months, 2)["operationParameters"]["canMergeSchema"] == "true"
        assert rows(source.read(months).where("month >= 3")) == [(30, 3, None), (40, 4, "x")]

    def test_columns_are_replaced(self, session, months, source):
        frame = session.sql("SELECT 'x' AS name, 4 AS month")
        source.write(frame, months, "overwrite", overwriteSchema="true")
        assert independent(months) == [{"name": "x", "month": 4}]
        assert info(months, 2)["operationParameters"]["mode"] == "Overwrite"

    def test_partitions_with_new_rows_are_replaced(self, session, months, source):
        frame = session.sql("SELECT * FROM VALUES (11, 1), (90, 9) AS t(a, month)")
        source.write(frame, months, "overwrite", partitionOverwriteMode="dynamic")
        assert rows(months.read(session)) == [(11, 1), (20, 2), (30, 3), (90, 9)]
        assert info(months, 2)["operationParameters"]["isDynamicPartitionOverwrite"] == "true"
        with pytest.raises(PySparkException, match="expected one of them"):
            source.write(
                frame, months, "overwrite", partitionOverwriteMode="dynamic", where="month = 1"
            )


def test_a_streams_batches_take_them(session, lake, create, source, tmp_path):
    table = create("id bigint")
    stream = Stream(session, tmp_path, "id bigint, month int")
    stream.feed('{"id":1,"month":5}', '{"id":2,"month":5}')
    stream.feed('{"id":3,"month":6}')
    options = {
        "url": lake.url,
        "path": table.name,
        "mergeSchema": "true",
        "userMetadata": "stream",
        "maxRecordsPerFile": "1",
        "compression": "zstd",
    }
    frame = stream.df.coalesce(1)
    stream.run(lambda writer: writer.format("tidegate").options(**options), frame)
    assert rows(table.read(session)) == [(1, 5), (2, 5), (3, 6)]
    assert [len(actions(table, version, "add")) for version in (1, 2)] == [2, 1]
    assert [len(actions(table, version, "metaData")) for version in (1, 2)] == [1, 0]
    assert info(table, 1)["userMetadata"] == "stream"
    assert all(path.endswith(".zstd.parquet") for path in data_files(table))
