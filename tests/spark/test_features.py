"""Tables with optional features, written and left alone through the real service."""

import pytest
from pyspark.errors import PySparkException

from tests.spark.tables import actions, data_files, independent, rows
from tidegate.spark import UnsupportedTable


def test_row_ids_are_given_out_to_what_spark_writes(spark, create):
    table = create("id bigint", **{"delta.enableRowTracking": "true"})
    table.append(spark.range(3).coalesce(1))
    receipt = table.append(spark.range(10, 15).coalesce(1))
    (first,) = actions(table, 1, "add")
    (second,) = actions(table, 2, "add")
    assert (first["baseRowId"], first["defaultRowCommitVersion"]) == (0, 1)
    assert (second["baseRowId"], second["defaultRowCommitVersion"]) == (3, 2)
    (info,) = actions(table, receipt.version, "commitInfo")
    assert info["tags"]["delta.rowTracking.preserved"] == "true"
    table.overwrite(spark.range(2).coalesce(1))
    (third,) = actions(table, 3, "add")
    assert third["baseRowId"] == 8
    assert rows(table.read(spark)) == [(0,), (1,)]
    assert independent(table) == [{"id": 0}, {"id": 1}]


def test_a_rewrite_would_lose_the_ids_of_rows(spark, create, source):
    table = create("a int", **{"delta.enableRowTracking": "true"})
    table.append(spark.sql("SELECT 1 a"))
    with table.transaction() as txn, pytest.raises(UnsupportedTable, match="new ids"):
        table.overwrite(table.read(spark), transaction=txn, dataChange=False)
    with pytest.raises(UnsupportedTable, match="new ids"):
        table.append(spark.sql("SELECT 1 a"), dataChange=False)
    with pytest.raises(PySparkException, match="new ids"):
        source.write(spark.sql("SELECT 1 a"), table, dataChange="false")
    assert table.version == 1


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        (
            {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
            "icebergCompatV2",
        ),
    ],
)
def test_what_spark_would_write_wrongly_is_left_alone(spark, create, properties, named):
    table = create("id bigint", **properties)
    with pytest.raises(UnsupportedTable, match=named):
        table.append(spark.range(3))
    assert (table.version, data_files(table)) == (0, set())
