"""Writes that are done again after a conflict, because their caller asks for it."""

import pytest

from tests.spark.tables import rows
from tidegate import ConcurrentAppendException, InvalidRequest
from tidegate.models import TableHead


@pytest.fixture
def table(spark, create, copied):
    def make():
        table = create("id bigint")
        table.append(spark.range(1))
        return table

    return copied(make)


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


def test_it_is_said_each_time(spark, lake, table, caplog):
    overtaken(table, [rival_of(spark, lake, table), rival_of(spark, lake, table)])
    table.overwrite(spark.range(5, 6), retries=3)
    (told,) = [record for record in caplog.records if record.name.startswith("tidegate.spark")]
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith("a write has lost to version 3 (WRITE)")
    assert told.getMessage().endswith("; done again, attempt 2 of 4")


def test_so_is_a_table_replaced_again(spark, lake, table):
    overtaken(table, [rival_of(spark, lake, table)] * 2)
    receipt = table.replace(spark.range(7, 9), retries=1)
    assert receipt.version == 4
    assert rows(table.read(spark)) == [(7,), (8,)]
    with pytest.raises(InvalidRequest, match="as of one version"):
        table.replace(table.read(spark), retries=1)


def test_inserts_are_done_again_by_the_columns_that_there_are_then(spark, lake, table):
    def rival() -> None:
        lake.table(table.id).alter(spark=spark).add_columns("a int")

    # The first two heads are of the columns, and of the look whether it may be done again.
    overtaken(table, [rival, lambda: None, lambda: None])
    receipt = table.insert(spark, [["8"]], columns=["id"], retries=1)
    assert (receipt.version, receipt.read_version) == (3, 2)
    assert rows(table.read(spark)) == [(0, None), (8, None)]


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
