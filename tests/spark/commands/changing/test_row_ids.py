"""Row ids and row commit versions of rows that commands write again."""

import pytest

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import rows
from tidegate_protocol.features.properties import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN

TRACKED = {"delta.enableRowTracking": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


def ids(table, spark) -> dict[int, tuple[int, int]]:
    """The id and the commit version of each row, by its `a`."""
    txn = table.transaction()
    names = [table.head().properties[key] for key in (ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN)]
    found = txn.rows_of(spark, txn.filter_files(), with_ids=True).select("a", *names)
    assert found.schema.names == ["a", *names]
    return {a: (row_id, version) for a, row_id, version in rows(found)}


@pytest.mark.parametrize(
    "properties",
    [{}, CHANGES | VECTORS, CHANGES | MAPPED],
    ids=["copied", "marked with changes", "mapped"],
)
def test_stay_with_their_rows(spark, create, properties):
    table = create("a int, b int, p int", "p", **TRACKED, **properties)
    for first in (0, 5):
        table.append(
            spark.range(first, first + 5).selectExpr("int(id) AS a", "0 AS b", "1 AS p").coalesce(1)
        )
    before = ids(table, spark)
    assert before == {a: (a, 1 if a < 5 else 2) for a in range(10)}

    table.update({"b": "b + 1"}, "a IN (1, 6)", spark=spark)
    updated = before | {1: (1, 3), 6: (6, 3)}
    source = spark.sql("SELECT * FROM VALUES (2, 7, 1), (3, 7, 1), (100, 7, 2) AS s(a, b, p)")
    merge = table.merge(source.alias("s"), "t.a = s.a", alias="t")
    merge = merge.whenMatchedDelete("s.a = 3").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceUpdate("t.a = 9", {"b": "9"}).execute()
    after = ids(table, spark)
    new_id, version = after.pop(100)
    assert (new_id > 9, version) == (True, 4)
    merged = updated | {2: (2, 4), 9: (9, 4)}
    del merged[3]
    assert after == merged

    table.delete("a = 4", spark=spark)
    del merged[4]
    tags = [commit.tags["delta.rowTracking.preserved"] for commit in table.history(limit=3)]
    assert tags == ["true"] * 3

    table.optimize(spark=spark)
    assert ids(table, spark) == merged | {100: (new_id, 4)}
    assert rows(table.read(spark).select("a", "b"))[:4] == [(0, 0), (1, 1), (2, 7), (5, 0)]


def test_of_a_table_that_does_not_track_them_are_none(spark, create):
    table = create("a int", **{"delta.feature.rowTracking": "supported"})
    table.append(spark.sql("SELECT * FROM VALUES (1), (2) AS t(a)").coalesce(1))
    table.update({"a": "a + 10"}, "a = 1", spark=spark)
    txn = table.transaction()
    assert txn.rows_of(spark, txn.filter_files(), with_ids=True).columns == ["a"]
    assert "delta.rowTracking.preserved" not in table.history(limit=1)[0].tags
