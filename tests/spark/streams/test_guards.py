"""What a stream's sink refuses, because rows would be lost or doubled without a word."""

import pytest
from pyspark.errors import PySparkException

from tests.spark.streams.queries import Stream
from tests.spark.tables import data_files, rows
from tidegate.spark import CheckpointBehind, register


@pytest.fixture
def stream(session, tmp_path):
    return Stream(session, tmp_path, "id bigint, month int")


class TestCheckpoints:
    @pytest.mark.parametrize("road", ["format", "sink"])
    def test_one_that_was_set_back_is_an_error(self, session, lake, create, stream, road):
        register(session)
        table = create("id bigint, month int")

        def into(writer):
            if road == "sink":
                return writer.foreachBatch(table.sink())
            return writer.format("tidegate").options(url=lake.url, path=table.name)

        for number in (1, 2):
            stream.feed(f'{{"id":{number},"month":5}}')
        stream.run(into)
        for _ in range(2):
            stream.forget_end_of_last_batch()
        for name in ("1", ".1.crc"):
            (stream.checkpoint / "offsets" / name).unlink()
        with pytest.raises(PySparkException, match="has recorded batch 1 of it"):
            stream.run(into)
        assert rows(table.read(session)) == [(1, 5), (2, 5)]
        assert len(data_files(table)) == 2

    def test_a_second_driver_that_was_faster_is_one(self, session, lake, create):
        table = create("id bigint")
        rival = lake.table(table.id).sink(app_id="a")
        ask = table.txn_version

        def asked(app_id):
            found = ask(app_id)
            if found < 0:
                rival(session.range(1), 0)
                rival(session.range(1), 1)
            return found

        table.txn_version = asked
        with pytest.raises(CheckpointBehind):
            table.sink(app_id="a")(session.range(1), 0)
        assert (table.version, len(data_files(table))) == (2, 2)


class TestModes:
    @pytest.mark.parametrize(
        ("of_query", "of_sink"),
        [("complete", "append"), ("update", "append"), ("append", "complete")],
    )
    def test_those_of_query_and_sink_agree(self, session, create, stream, of_query, of_sink):
        table = create("month int, count bigint")
        frame = stream.df.selectExpr("month", "id AS count")
        if of_query != "append":
            frame = stream.df.groupBy("month").count()
        stream.feed('{"id":1,"month":5}')
        sink = table.sink(output_mode=of_sink)
        with pytest.raises(PySparkException, match=f"mode {of_query}, and the sink {of_sink}"):
            stream.run(lambda writer: writer.outputMode(of_query).foreachBatch(sink), frame)
        assert (table.version, data_files(table)) == (0, set())


class TestParts:
    def test_a_second_part_of_a_batch_is_refused(self, session, create, stream):
        table = create("id bigint, month int")
        stream.feed('{"id":1,"month":5}', '{"id":2,"month":6}')

        def write(df, number):
            table.sink()(df.where("month = 5"), number)
            table.sink()(df.where("month = 6"), number)

        with pytest.raises(PySparkException, match=r"was written into table .* before in this run"):
            stream.run(lambda writer: writer.foreachBatch(write))
        assert rows(table.read(session)) == [(1, 5)]
        with pytest.raises(PySparkException, match="before in this run"):
            stream.run(lambda writer: writer.foreachBatch(write))
        assert table.version == 1

    def test_parts_with_applications_of_their_own_land(self, session, create, stream):
        table = create("id bigint, month int")
        sinks = {month: table.sink(app_id=f"month-{month}") for month in (5, 6)}

        def write(df, number):
            for month, sink in sinks.items():
                sink(df.where(f"month = {month}"), number)

        stream.feed('{"id":1,"month":5}', '{"id":2,"month":6}')
        stream.run(lambda writer: writer.foreachBatch(write))
        stream.forget_end_of_last_batch()
        stream.run(lambda writer: writer.foreachBatch(write))
        assert rows(table.read(session)) == [(1, 5), (2, 6)]
        assert table.version == 2

    def test_a_part_that_failed_may_be_tried_again(self, session, create, stream):
        table = create("id bigint NOT NULL, month int")
        sink = table.sink()

        def write(df, number):
            try:
                sink(df.selectExpr("nullif(id, 1L) AS id", "month"), number)
            except Exception:
                sink(df, number)

        stream.feed('{"id":1,"month":5}')
        stream.run(lambda writer: writer.foreachBatch(write))
        assert rows(table.read(session)) == [(1, 5)]
