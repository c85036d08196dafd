"""Batches that are made of rows of the table that they go into."""

import pytest
from pyspark.errors import PySparkException

from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, rows


@pytest.fixture
def stream(session, tmp_path):
    return Stream(session, tmp_path, "id bigint, month int")


@pytest.fixture
def table(session, create, copied):
    """A table of the row (1, 5)."""

    def make():
        table = create("id bigint, month int")
        table.append(session.sql("SELECT 1L AS id, 5 AS month"))
        return table

    return copied(make)


def feed(stream, *months):
    for month in months:
        stream.feed(f'{{"id":1,"month":{month}}}')


def are_blind(table, *versions):
    found = (actions(table, version, "commitInfo") for version in versions)
    return [info["isBlindAppend"] for (info,) in found]


def ids(table, df, **asked):
    return table.read(df.sparkSession, **asked).select("id").distinct()


def append_elsewhere(lake, table, df):
    lake.table(table.id).append(df.sparkSession.sql("SELECT 2L AS id, 1 AS month"))


def test_each_batch_begins_where_it_has_read(session, lake, create, table, stream):
    feed(stream, 6, 7)
    sink = table.sink()

    def write(df, number):
        sink(df.join(ids(table, df), "id"), number)

    stream.run(lambda writer: writer.foreachBatch(write))
    assert rows(table.read(session)) == [(1, 5), (1, 6), (1, 7)]
    assert are_blind(table, 2, 3) == [False, False]


def test_a_commit_since_a_batch_has_read_is_a_conflict(session, lake, table, stream):
    feed(stream, 6)
    sink = table.sink()
    rivals = [append_elsewhere]

    def write(df, number):
        joined = df.join(ids(table, df), "id")
        if rivals:
            rivals.pop()(lake, table, df)
        sink(joined, number)

    with pytest.raises(PySparkException, match="ConcurrentAppendException"):
        stream.run(lambda writer: writer.foreachBatch(write))
    assert rows(table.read(session)) == [(1, 5), (2, 1)]
    # Started again, the query repeats the batch, which reads anew.
    stream.run(lambda writer: writer.foreachBatch(write))
    assert rows(table.read(session)) == [(1, 5), (1, 6), (2, 1)]


def test_a_batch_that_has_landed_is_done_whatever_was_committed_since(session, lake, table, stream):
    feed(stream, 6)
    sink = table.sink()

    def write(df, number):
        joined = df.join(ids(table, df), "id")
        append_elsewhere(lake, table, df)
        sink(joined, number)

    stream.run(
        lambda writer: writer.foreachBatch(lambda df, n: sink(df.join(ids(table, df), "id"), n))
    )
    stream.forget_end_of_last_batch()
    stream.run(lambda writer: writer.foreachBatch(write))
    assert rows(table.read(session)) == [(1, 5), (1, 6), (2, 1)]


def test_what_the_query_is_joined_with_is_the_same_for_all_batches(session, table, stream):
    feed(stream, 6, 7)
    joined = stream.df.join(ids(table, stream.df), "id")
    stream.run(lambda writer: writer.foreachBatch(table.sink(joined)), joined)
    assert rows(table.read(session)) == [(1, 5), (1, 6), (1, 7)]
    assert are_blind(table, 2, 3) == [False, False]


def test_a_past_that_a_batch_asks_for_is_none_of_now(session, lake, table, stream):
    feed(stream, 6)
    sink = table.sink()

    def write(df, number):
        joined = df.join(ids(table, df, version=1), "id")
        append_elsewhere(lake, table, df)
        sink(joined, number)

    stream.run(lambda writer: writer.foreachBatch(write))
    assert rows(table.read(session)) == [(1, 5), (1, 6), (2, 1)]
    assert are_blind(table, 3) == [True]
