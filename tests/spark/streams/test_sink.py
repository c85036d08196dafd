"""Streams into tables by `format("tidegate")` and by `table.sink()`: each batch lands once."""

import pytest
from pyspark.errors import PySparkException

from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, data_files, folder_of, independent, rows
from tidegate import (
    InvalidProposal,
    InvalidRequest,
    Lake,
    TransactionActive,
)
from tidegate.spark import CheckpointBehind, SchemaMismatch, UnsupportedSession, register
from tidegate.spark.source.source import TidegateSource
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Answer, Request, TransportFailure
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport


@pytest.fixture
def stream(session, tmp_path):
    return Stream(session, tmp_path, "id bigint, month int")


@pytest.fixture(params=["format", "sink"])
def road(request, session, lake):
    """Either road: from a table and an output mode to what is done with a stream's writer."""
    if request.param == "format":
        register(session)

    def into(table, mode="append"):
        if request.param == "sink":
            return lambda writer: writer.outputMode(mode).foreachBatch(table.sink(output_mode=mode))
        return lambda writer: (
            writer.outputMode(mode).format("tidegate").options(url=lake.url, path=table.name)
        )

    return into


def files_in_commits(table):
    return {add["path"] for v in range(1, table.version + 1) for add in actions(table, v, "add")}


class TestAppend:
    def test_each_batch_is_a_commit_that_names_it(self, session, create, stream, road):
        table = create("id bigint, month int", "month")
        stream.feed('{"id":1,"month":5}', '{"id":2,"month":6}')
        stream.feed('{"id":3,"month":5}')
        query = stream.run(road(table))
        assert rows(table.read(session)) == [(1, 5), (2, 6), (3, 5)]
        assert sorted(row["id"] for row in independent(table)) == [1, 2, 3]
        assert table.version == 2
        for version in (1, 2):
            (txn,) = actions(table, version, "txn")
            assert (txn["appId"], txn["version"]) == (query.id, version - 1)
            (info,) = actions(table, version, "commitInfo")
            assert info["operation"] == "STREAMING UPDATE"
            assert info["operationParameters"] == {
                "outputMode": "Append",
                "queryId": query.id,
                "epochId": str(version - 1),
            }
            assert info["isBlindAppend"]
        assert actions(table, 1, "commitInfo")[0]["operationMetrics"]["numOutputRows"] == "2"
        assert data_files(table) == files_in_commits(table)

    def test_a_batch_whose_end_was_not_noted_adds_no_rows_again(
        self, session, create, stream, road
    ):
        table = create("id bigint, month int")
        stream.feed('{"id":1,"month":5}')
        first = stream.run(road(table))
        stream.forget_end_of_last_batch()
        stream.feed('{"id":2,"month":5}')
        again = stream.run(road(table))
        assert first.id == again.id
        assert again.recentProgress[0]["batchId"] == 0
        assert rows(table.read(session)) == [(1, 5), (2, 5)]
        assert table.version == 2
        assert table.txn_version(first.id) == 1
        assert data_files(table) == files_in_commits(table)

    def test_both_roads_know_each_others_batches(self, session, lake, create, stream):
        register(session)
        table = create("id bigint, month int")
        stream.feed('{"id":1,"month":5}')
        stream.run(lambda writer: writer.foreachBatch(table.sink()))
        stream.forget_end_of_last_batch()
        stream.run(lambda writer: writer.format("tidegate").options(url=lake.url, path=table.id))
        assert table.version == 1

    def test_a_batch_that_failed_before_its_commit_is_done_again(
        self, session, create, stream, road
    ):
        table = create("id bigint NOT NULL, month int")
        stream.feed('{"id":1,"month":5}')
        stream.run(road(table))
        stream.feed('{"month":6}')
        with pytest.raises(PySparkException, match="id is NOT NULL"):
            stream.run(road(table))
        assert table.version == 1
        assert data_files(table) == files_in_commits(table)
        filled = stream.df.fillna({"id": 7})
        stream.run(road(table), filled)
        assert rows(table.read(session)) == [(1, 5), (7, 6)]

    def test_a_query_may_have_a_name(self, session, create, stream, road):
        table = create("id bigint, month int")
        stream.feed('{"id":1,"month":5}')
        query = stream.run(lambda writer: road(table)(writer.queryName("flights")))
        assert query.name == "flights"
        assert rows(table.read(session)) == [(1, 5)]

    def test_a_batch_without_rows_is_no_commit(self, session, create, stream, road):
        table = create("id bigint, month int")
        stream.feed('{"id":1,"month":5}')
        stream.run(road(table), stream.df.where("id > 1"))
        assert (table.version, data_files(table)) == (0, set())


class TestComplete:
    def test_each_batch_replaces_all_rows(self, session, create, stream, road):
        table = create("month int, count bigint NOT NULL")
        counts = stream.df.groupBy("month").count()
        stream.feed('{"id":1,"month":5}')
        stream.feed('{"id":2,"month":5}', '{"id":3,"month":6}')
        query = stream.run(road(table, "complete"), counts)
        assert rows(table.read(session)) == [(5, 2), (6, 1)]
        assert table.read(session, version=1).collect() == [(5, 1)]
        (info,) = actions(table, 2, "commitInfo")
        assert info["operationParameters"]["outputMode"] == "Complete"
        assert not info["isBlindAppend"]
        stream.forget_end_of_last_batch()
        stream.run(road(table, "complete"), counts)
        assert table.txn_version(query.id) == 1
        assert table.version == 2

    def test_an_append_only_table_takes_none(self, create, stream, road):
        table = create("month int, count bigint", **{"delta.appendOnly": "true"})
        stream.feed('{"id":1,"month":5}')
        with pytest.raises(PySparkException, match="append-only"):
            stream.run(road(table, "complete"), stream.df.groupBy("month").count())
        assert data_files(table) == set()


class TestStart:
    @pytest.mark.parametrize(
        ("road", "select", "named"),
        [
            ("format", ["id", "month", "1 AS extra"], "extra"),
            ("format", ["id", "month", "null AS note"], "NullType"),
            ("sink", ["id", "month", "1 AS extra"], "extra"),
            ("sink", ["id"], "lacks the column month"),
            ("sink", ["array(id) AS id", "month"], "id"),
            ("sink", ["id", "month", "null AS note"], "NullType"),
        ],
        indirect=["road"],
    )
    def test_what_does_not_fit_is_refused_before_any_row(self, create, stream, road, select, named):
        table = create("id bigint, month int NOT NULL, note string")
        stream.feed('{"id":1,"month":5}')
        frame = stream.df.selectExpr(*select)
        with pytest.raises(SchemaMismatch, match=named):
            table.sink(frame)
        with pytest.raises(PySparkException, match=named):
            stream.run(road(table), frame)
        assert table.version == 0
        assert not list(folder_of(table).glob("tidegate_txn*"))

    def test_a_sink_looks_at_the_table_too(self, create, stream):
        table = create("id bigint, month int", **{"delta.appendOnly": "true"})
        table.sink(stream.df)
        with pytest.raises(InvalidProposal, match="append-only"):
            table.sink(stream.df, output_mode="complete")

    def test_other_output_modes_are_not_supported(self, session, lake, create, stream):
        table = create("id bigint, month int")
        with pytest.raises(UnsupportedSession, match="update output mode not supported"):
            table.sink(output_mode="update")
        register(session)
        stream.feed('{"id":1,"month":5}')
        options = {"url": lake.url, "path": table.name}
        counts = stream.df.groupBy("month").count()
        with pytest.raises(PySparkException, match="does not support Update mode"):
            stream.run(
                lambda writer: writer.outputMode("update").format("tidegate").options(**options),
                counts,
            )

    def test_options_that_are_not_for_streams_are_refused(self, session, lake, create, stream):
        register(session)
        table = create("id bigint, month int")
        stream.feed('{"id":1,"month":5}')
        options = {"url": lake.url, "path": table.name, "where": "1"}
        with pytest.raises(PySparkException, match="where"):
            stream.run(lambda writer: writer.format("tidegate").options(**options))
        assert table.version == 0

    @pytest.mark.parametrize("option", ["version", "timestamp", "mergeSchem"])
    def test_options_of_others_are_refused_by_the_source_itself(self, lake, create, stream, option):
        """As it is asked when a query starts."""
        table = create("id bigint, month int")
        source = TidegateSource({"url": lake.url, "path": table.name, option: "1"})
        with pytest.raises((UnsupportedSession, InvalidRequest), match=option.lower()):
            source.streamWriter(stream.df.schema, overwrite=False)


class TestSink:
    def test_rows_of_any_table_of_ours_go_through_sparks_plan(self, session, create, stream):
        table = create("id int, month int", "month", **{"delta.constraints.c": "id < 5"})
        stream.feed('{"id":1,"month":5}')
        stream.run(lambda writer: writer.foreachBatch(table.sink(stream.df)))
        assert rows(table.read(session)) == [(1, 5)]
        stream.feed('{"id":9,"month":5}')
        with pytest.raises(PySparkException, match="CHECK constraint c"):
            stream.run(lambda writer: writer.foreachBatch(table.sink()))
        assert table.version == 1

    def test_options_of_batches(self, session, create, stream):
        table = create("id bigint")
        stream.feed('{"id":1,"month":5}', '{"id":2,"month":5}')
        frame = stream.df.coalesce(1)
        with pytest.raises(SchemaMismatch, match=r"month.*mergeSchema"):
            table.sink(frame)
        sink = table.sink(frame, mergeSchema=True, userMetadata="stream", maxRecordsPerFile=1)
        stream.run(lambda writer: writer.foreachBatch(sink), frame)
        assert rows(table.read(session)) == [(1, 5), (2, 5)]
        assert len(actions(table, 1, "add")) == 2
        (info,) = actions(table, 1, "commitInfo")
        assert info["userMetadata"] == "stream"
        assert info["operationParameters"]["canMergeSchema"] == "true"
        for option in ("txnAppId", "overwriteSchema", "mergeSchem"):
            with pytest.raises(InvalidRequest, match=option):
                table.sink(**{option: "x"})

    def test_complete_batches_may_replace_the_schema(self, session, create):
        table = create("id bigint")
        sink = table.sink(output_mode="complete", app_id="a", overwriteSchema=True)
        table.append(session.range(3))
        sink(session.sql("SELECT 'x' AS name"), 0)
        assert independent(table) == [{"name": "x"}]

    def test_an_application_of_the_callers_own(self, session, create, stream):
        table = create("id bigint, month int")
        sink = table.sink(app_id="nightly")
        frame = session.sql("SELECT 1L AS id, 5 AS month")
        sink(frame, 4)
        sink(frame, 4)
        with pytest.raises(CheckpointBehind, match="has recorded batch 4 of it"):
            sink(frame, 3)
        assert (table.version, table.txn_version("nightly")) == (1, 4)

    def test_without_a_query_there_is_no_id(self, session, create):
        table = create("id bigint")
        with pytest.raises(UnsupportedSession, match="no batch of a streaming query"):
            table.sink()(session.range(1), 0)

    def test_a_transaction_has_no_batches_in_it(self, session, create):
        table = create("id bigint")
        with table.transaction(), pytest.raises(TransactionActive):
            table.sink(app_id="a")(session.range(1), 0)

    def test_of_two_runs_of_one_batch_the_slower_adds_nothing(self, session, lake, create):
        table = create("id bigint")
        rival = lake.table(table.id).sink(app_id="a")
        ask = table.txn_version

        def asked(app_id):
            found = ask(app_id)
            # Once, after the slower one has found that nothing has landed.
            if found < 0:
                rival(session.range(1), 0)
            return found

        table.txn_version = asked
        table.sink(app_id="a")(session.range(1), 0)
        assert table.version == 1
        assert data_files(table) == files_in_commits(table)

    def test_a_commit_whose_answer_was_lost_is_found_by_the_next_run(
        self, session, lake, create, stream
    ):
        table = create("id bigint, month int")
        transport = LosingCommits(lake.url)
        connection = Connection(
            transport, policy=RetryPolicy(deadline_s=0.2), sleep=lambda seconds: None
        )
        with Lake(connection, url=lake.url) as losing:
            sink = losing.table(table.id).sink()
            stream.feed('{"id":1,"month":5}')
            with pytest.raises(PySparkException, match="CommitStateUnknown"):
                stream.run(lambda writer: writer.foreachBatch(sink))
        assert table.version == 1
        stream.run(lambda writer: writer.foreachBatch(table.sink()))
        assert rows(table.read(session)) == [(1, 5)]
        assert data_files(table) == files_in_commits(table)


class LosingCommits:
    """A transport over the real one that loses the answers to proposals."""

    def __init__(self, url: str) -> None:
        self._real = HttpTransport(url, token=None)

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        answer = self._real.send(request, timeout_s=timeout_s)
        if request.path.endswith("/commits"):
            return TransportFailure(sent=True, detail="the answer was lost")
        return answer

    def close(self) -> None:
        self._real.close()
