"""What `format("tidegate")` takes of its session, where options do not say it: as in `append`."""

import pytest
from pyspark.errors import PySparkException

from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, data_files, rows

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
APP_ID = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"
MODE = "spark.sql.sources.partitionOverwriteMode"
MONTHS = [(10, 1), (20, 2), (30, 3)]


@pytest.fixture
def named(session, months):
    """The session, once the table is made: what it writes is version 7 of the application etl."""
    session.conf.set(APP_ID, "etl")
    session.conf.set(VERSION, "7")
    return session


@pytest.fixture
def row(session):
    return session.sql("SELECT 11 AS a, 1 AS month")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_it_is_done_once(named, months, source, row, mode):
    source.write(row, months, mode)
    once, files = rows(months.read(named)), data_files(months)
    (txn,) = actions(months, 2, "txn")
    assert (txn["appId"], txn["version"]) == ("etl", 7)
    source.write(row, months, mode)
    assert months.append(row) is None
    assert (months.version, data_files(months)) == (2, files)
    assert rows(months.read(named)) == once
    assert (once == [(11, 1)]) == (mode == "overwrite")


def test_the_mode_of_a_batch_s_session_is_not_known(session, months, source, tmp_path):
    session.conf.set(MODE, "dynamic")
    stream = Stream(session, tmp_path, "a int, month int")
    stream.feed('{"a": 1, "month": 5}')

    def batch(df, _):
        df.sparkSession.conf.unset(MODE)
        source.write(df, months, "overwrite", **options)

    options = {}
    with pytest.raises(PySparkException, match=r"dynamic.* settings that the batch has unset"):
        stream.run(lambda writer: writer.foreachBatch(batch))
    options = {"partitionOverwriteMode": "static"}
    stream.run(lambda writer: writer.foreachBatch(batch))
    assert rows(months.read(session)) == [(1, 5)]


def test_options_go_first(named, months, source, row):
    source.write(row, months, txnAppId="other", txnVersion="7")
    source.write(row, months)
    assert [actions(months, n, "txn")[0]["appId"] for n in (2, 3)] == ["other", "etl"]


def test_a_frame_without_rows_is_recorded(named, months, source, row):
    source.write(row.where("a > 11"), months)
    source.write(row, months)
    assert rows(months.read(named)) == MONTHS
    assert months.version == 2


@pytest.mark.parametrize("missing", [APP_ID, VERSION])
def test_one_without_the_other_is_refused(named, months, source, row, missing):
    named.conf.unset(missing)
    files = data_files(months)
    with pytest.raises(PySparkException, match="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"):
        source.write(row, months)
    assert (rows(months.read(named)), data_files(months)) == (MONTHS, files)


def test_a_version_for_further_writes_is_refused(named, months, source, tmp_path):
    row = named.sql("SELECT 11 AS a, 1 AS month")
    files = data_files(months)
    stream = Stream(named, tmp_path, "a int, month int")
    stream.feed('{"a": 1, "month": 5}')

    def batch(df, _):
        df.sparkSession.conf.unset(APP_ID)
        df.sparkSession.conf.unset(VERSION)
        source.write(df, months)

    with pytest.raises(PySparkException, match=r"version .* settings that the batch has unset"):
        stream.run(lambda writer: writer.foreachBatch(batch))
    named.conf.set(f"{VERSION}.autoReset.enabled", "true")
    with pytest.raises(PySparkException, match="cannot unset the version"):
        source.write(row, months)
    assert (rows(months.read(named)), data_files(months)) == (MONTHS, files)
    source.write(row, months, txnAppId="etl", txnVersion="7")
    assert rows(months.read(named)) == [(10, 1), (11, 1), (20, 2), (30, 3)]


def test_partitions_are_overwritten_in_the_mode_of_the_session(session, months, source, row):
    session.conf.set(MODE, "dynamic")
    source.write(row, months, "overwrite", where="month = 1")
    assert rows(months.read(session)) == [(11, 1), (20, 2), (30, 3)]
    source.write(row.selectExpr("a", "2 AS month"), months, "overwrite")
    assert rows(months.read(session)) == [(11, 1), (11, 2), (30, 3)]
    (info,) = actions(months, 3, "commitInfo")
    assert info["operationParameters"]["isDynamicPartitionOverwrite"] == "true"
    source.write(row, months, "overwrite", partitionOverwriteMode="static")
    assert rows(months.read(session)) == [(11, 1)]
    source.write(row.selectExpr("1 AS b", "month"), months, "overwrite", overwriteSchema="true")
    assert rows(months.read(session)) == [(1, 1)]


def test_the_history_has_the_session_s_note(session, lake, months, source, tmp_path):
    row = session.sql("SELECT 11 AS a, 1 AS month")
    session.conf.set(USER_METADATA, "nightly")
    source.write(row, months)
    source.write(row, months, userMetadata="by hand")
    stream = Stream(session, tmp_path, "a int, month int")
    stream.feed('{"a": 1, "month": 5}')
    options = {"url": lake.url, "path": months.name}
    stream.run(lambda writer: writer.format("tidegate").options(**options))
    notes = [actions(months, n, "commitInfo")[0]["userMetadata"] for n in (2, 3, 4)]
    assert notes == ["nightly", "by hand", "nightly"]
