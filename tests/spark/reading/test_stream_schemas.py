"""Streams from tables whose columns or partitioning change meanwhile."""

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.spark.reading.change_data import FEED
from tests.spark.reading.readers import tuples
from tidegate.spark import ChangesUnavailable, StreamStopped
from tidegate.spark.source.source import TidegateSource
from tidegate.spark.source.streams.offset import Offset


@pytest.fixture
def planned(lake):
    """Plan a stream with the columns that a table has now; what it returns reads all that the
    table has from a version on."""

    def plan(table, **options):
        source = TidegateSource({"path": table.name, "url": lake.url, **options})
        stream = source.streamReader(source.schema())

        def read(version):
            start = Offset(table_id=table.id, version=version).to_json()
            parts = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
            found = [row for part in parts for b in stream.read(part) for row in tuples(b)]
            return sorted(found, key=str)

        return read

    return plan


def test_a_new_column_stops_it_and_a_restart_goes_on(spark, create, planned, reader):
    table = create("id bigint")
    table.append(spark.range(1))
    assert reader.run(table) == [[(0,)]]
    read = planned(table)
    table.append(spark.sql("SELECT 5L id, 'x' s"), mergeSchema=True)
    with pytest.raises(StreamStopped, match=r"DELTA_SCHEMA_CHANGED_WITH_VERSION.*version 2"):
        read(2)
    assert reader.run(table) == [[(5, "x")]]


def test_a_column_that_is_gone_stops_it_for_good(spark, create, reader):
    table = create("id bigint, s string")
    table.append(spark.sql("SELECT 1L id, 'x' s"))
    assert len(reader.run(table)) == 1
    table.append(spark.sql("SELECT 2L id, 'y' s"))
    table.overwrite(spark.sql("SELECT 3L id"), overwriteSchema=True)
    for _ in range(2):
        with pytest.raises(StreamStopped, match="DELTA_SCHEMA_CHANGED"):
            reader.run(table, ignoreChanges="true")


def test_another_partitioning_stops_it_and_a_feed(spark, create, planned, reader):
    table = create("id bigint, p int", **FEED)
    table.append(spark.sql("SELECT 1L id, 1 p"))
    assert reader.run(table) == [[(1, 1)]]
    read = planned(table, skipChangeCommits="true")
    again = spark.sql("SELECT 2L id, 2 p")
    table.overwrite(again, overwriteSchema=True, partition_by=["p"])
    table.append(spark.sql("SELECT 3L id, 3 p"))
    with pytest.raises(StreamStopped, match=r"DELTA_SCHEMA_CHANGED.*partitioned by \['p'\]"):
        read(2)
    assert reader.run(table, skipChangeCommits="true") == [[(3, 3)]]
    with pytest.raises(ChangesUnavailable, match=r"INCOMPATIBLE_SCHEMA_CHANGE.*version 1"):
        table.changes(spark, from_version=1)


def test_columns_that_become_mapped_do_not_stop_it(spark, create, planned):
    table = create("id bigint, s struct<x: int>")
    read = planned(table)
    table.append(spark.sql("SELECT 2L id, struct(2 x) s"))
    table.alter(spark=spark).set_properties({"delta.columnMapping.mode": "name"})
    table.append(spark.sql("SELECT 3L id, struct(3 x) s"))
    expected = [(2, {"x": 2}), (3, {"x": 3})]
    assert read(1) == expected
    assert planned(table)(1) == expected
