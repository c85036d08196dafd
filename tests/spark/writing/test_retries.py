"""Writes that are done again after a conflict, because their caller asks for it."""

import pytest

from tests.spark.tables import rows
from tidegate import ConcurrentAppendException, ConflictError, InvalidRequest
from tidegate.models import TableHead
from tidegate.spark.write.repeats import repeated


@pytest.fixture
def table(spark, create):
    table = create("id bigint")
    table.append(spark.range(1))
    return table


def overtaken(table, rivals):
    """Let one of the rivals commit after each head that the handle asks for, while there are
    any."""
    ask = table.head

    def head() -> TableHead:
        found = ask()
        if rivals:
            rivals.pop()()
        return found

    table.head = head


def rival_of(spark, lake, table):
    return lambda: lake.table(table.id).append(spark.range(50, 51))


def test_a_conflict_is_the_end_unless_retries_are_asked_for(spark, lake, table):
    overtaken(table, [rival_of(spark, lake, table)])
    with pytest.raises(ConcurrentAppendException):
        table.overwrite(spark.range(5, 6))


def test_the_whole_write_is_done_again_at_the_latest_version(spark, lake, table):
    # The first head is that by which the retry is found to be safe.
    overtaken(table, [rival_of(spark, lake, table), rival_of(spark, lake, table)])
    receipt = table.overwrite(spark.range(5, 6), retries=1)
    assert receipt.version == 4
    assert rows(table.read(spark)) == [(5,)]


def test_numbers_of_two_writers_are_disjoint_with_them(spark, lake, create):
    metadata = '{"delta.identity.start":1,"delta.identity.step":1}'
    field = f'{{"name":"id","type":"long","nullable":true,"metadata":{metadata}}}'
    other = '{"name":"a","type":"long","nullable":true,"metadata":{}}'
    schema = f'{{"type":"struct","fields":[{field},{other}]}}'
    table = lake.create_table(f"{create('a int').name}_r", schema=schema)
    one = spark.range(1).coalesce(1).selectExpr("id AS a")
    overtaken(table, [lambda: lake.table(table.id).append(one)] * 2)
    table.append(one, retries=2)
    assert rows(table.read(spark).select("id")) == [(1,), (2,), (3,)]


def test_rows_of_the_table_itself_are_refused(spark, table):
    with pytest.raises(InvalidRequest, match="as of one version"):
        table.append(table.read(spark), retries=1)


def test_a_transaction_says_where_it_begins(spark, table):
    with pytest.raises(InvalidRequest, match="without a transaction"):
        table.overwrite(spark.range(1), transaction=table.transaction(), retries=1)


def test_less_than_none_is_refused(spark, table):
    with pytest.raises(InvalidRequest, match="from 0 on"):
        table.append(spark.range(1), retries=-1)


def test_the_last_conflict_tells_of_all_attempts():
    def work() -> None:
        raise ConflictError("lost")

    with pytest.raises(ConflictError) as lost:
        repeated(work, retries=2, clock_s=iter([1.0, 3.5]).__next__)
    (note,) = lost.value.__notes__
    assert "3 attempts in 2.5 s" in note
