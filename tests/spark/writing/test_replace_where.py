"""Replacing rows by a predicate over any columns."""

import pytest

from tests.spark.tables import actions, data_files, independent, overtake, rows
from tidegate import ConcurrentAppendException
from tidegate.spark import InvalidRows, UnsupportedTable


@pytest.fixture
def pairs(spark, create, copied):
    """A table of (a, b) in two files: (1, 1), (2, 1) and (3, 2), (null, 2)."""

    def make():
        table = create("a int, b int")
        table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 1) AS t(a, b)").coalesce(1))
        table.append(spark.sql("SELECT * FROM VALUES (3, 2), (null, 2) AS t(a, b)").coalesce(1))
        return table

    return copied(make)


def pair(spark, a, b):
    return spark.sql(f"SELECT {a} a, {b} b").coalesce(1)


def test_what_stays_of_a_touched_file_is_written_again_with_the_new_rows(spark, pairs):
    (untouched,) = (add["path"] for add in actions(pairs, 2, "add"))
    receipt = pairs.overwrite(pair(spark, 1, 7), replace_where="a = 1")
    assert rows(pairs.read(spark)) == [(1, 7), (2, 1), (3, 2), (None, 2)]
    assert len(independent(pairs)) == 4
    (removed,) = actions(pairs, receipt.version, "remove")
    assert removed["path"] != untouched
    metrics = pairs.history(limit=1)[0].operation_metrics
    found = {name: metrics[name] for name in ("numDeletedRows", "numCopiedRows", "numOutputRows")}
    assert found == {"numDeletedRows": "1", "numCopiedRows": "1", "numOutputRows": "1"}


def test_columns_may_be_mapped(spark, create):
    table = create("a int, b int, p int", "p", **{"delta.columnMapping.mode": "name"})
    table.append(spark.sql("SELECT * FROM VALUES (1, 1, 5), (2, 1, 5) AS t(a, b, p)").coalesce(1))
    table.overwrite(spark.sql("SELECT 1 a, 7 b, 5 p"), replace_where="a = 1 AND p = 5")
    assert rows(table.read(spark)) == [(1, 7, 5), (2, 1, 5)]
    table.overwrite(spark.sql("SELECT 9 a, 9 b, 5 p"), replace_where="p = 5")
    assert rows(table.read(spark)) == [(9, 9, 5)]


def test_rows_may_be_marked_in_one_file_and_in_no_other(spark, create):
    table = create("a int, b int", **{"delta.enableDeletionVectors": "true"})
    table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 1), (5, 1) AS t(a, b)").coalesce(1))
    table.append(spark.sql("SELECT * FROM VALUES (3, 2), (4, 0) AS t(a, b)").coalesce(1))
    table.delete("a = 1")
    table.overwrite(pair(spark, 9, 9), replace_where="a > 3 OR b > 7")
    assert rows(table.read(spark)) == [(2, 1), (3, 2), (9, 9)]
    metrics = table.history(limit=1)[0].operation_metrics
    assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("2", "2")


def test_where_it_is_null_a_row_stays(spark, pairs):
    pairs.overwrite(pair(spark, 9, 2), replace_where="a > 2")
    assert rows(pairs.read(spark)) == [(1, 1), (2, 1), (9, 2), (None, 2)]


def test_rows_outside_are_refused_and_nothing_stays(spark, pairs):
    before = data_files(pairs)
    with pytest.raises(InvalidRows, match=r"\(a = 1\) violated .*\n - a : 5") as refusal:
        pairs.overwrite(pair(spark, 5, 1), replace_where="a = 1")
    assert refusal.value.error_class == "DELTA_REPLACE_WHERE_MISMATCH"
    assert (pairs.version, data_files(pairs)) == (2, before)


def test_it_may_name_partition_and_other_columns(spark, create):
    table = create("a int, p int", "p")
    table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 1), (1, 2) AS t(a, p)"))
    table.overwrite(spark.sql("SELECT 1 a, 1 p UNION ALL SELECT 1, 1"), replace_where="a=1 AND p=1")
    assert rows(table.read(spark)) == [(1, 1), (1, 1), (1, 2), (2, 1)]


def test_a_concurrent_append_of_such_rows_is_a_conflict(spark, lake, pairs):
    overtake(pairs, lambda: lake.table(pairs.id).append(pair(spark, 1, 3)))
    with pytest.raises(ConcurrentAppendException):
        pairs.overwrite(pair(spark, 1, 7), replace_where="a = 1")


def test_a_concurrent_append_to_another_partition_is_none(spark, lake, create):
    table = create("a int, b int", "b")
    table.append(pair(spark, 1, 1))
    overtake(table, lambda: lake.table(table.id).append(pair(spark, 1, 2)))
    table.overwrite(pair(spark, 2, 1), replace_where="a < 5 AND b = 1")
    assert rows(table.read(spark)) == [(1, 2), (2, 1)]


def test_constraints_hold_of_the_new_rows(spark, create):
    table = create("a int, b int", **{"delta.constraints.small": "b < 5"})
    table.append(pair(spark, 1, 1))
    with pytest.raises(InvalidRows, match="small"):
        table.overwrite(pair(spark, 1, 9), replace_where="a = 1")


def test_copied_rows_would_need_change_data(spark, create):
    table = create("a int, b int", **{"delta.enableChangeDataFeed": "true"})
    table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 1) AS t(a, b)").coalesce(1))
    with pytest.raises(UnsupportedTable, match="change data"):
        table.overwrite(pair(spark, 1, 9), replace_where="a = 1")
    assert table.version == 1
    table.overwrite(pair(spark, 1, 9), replace_where="a < 5")
    assert rows(table.read(spark)) == [(1, 9)]


def test_rows_that_stay_keep_their_ids(spark, create):
    table = create("a int, b int", **{"delta.enableRowTracking": "true"})
    table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 1) AS t(a, b)").coalesce(1))
    table.overwrite(pair(spark, 1, 7), replace_where="a = 1")
    txn = table.transaction()
    found = rows(txn.rows_of(spark, txn.filter_files(), with_ids=True))
    assert found == [(1, 7, found[0][2], 2), (2, 1, 1, 1)]
    assert found[0][2] > 1
    assert table.history(limit=1)[0].tags["delta.rowTracking.preserved"] == "true"
