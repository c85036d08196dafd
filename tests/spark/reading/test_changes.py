"""The change data feed, read from change data files, whole files and deletion vectors."""

import datetime as dt
import json

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType, TimestampType

from tests.spark.reading.change_data import FEED, data_file, update
from tests.spark.reading.vectors import VECTORS, delete, vector_of
from tests.spark.tables import folder_of, rows
from tidegate import InvalidRequest
from tidegate.spark import ChangesUnavailable


@pytest.fixture
def feed(spark, source):
    """The feed without timestamps, in an order that does not depend on files; the same by
    `Table.changes` and, where that is asked, by the data source."""

    def read(table, first, last=None, *, by_source=True):
        found = table.changes(spark, from_version=first, to_version=last)
        assert found.schema["_commit_timestamp"].dataType == TimestampType()
        columns = [name for name in found.columns if name != "_commit_timestamp"]
        expected = rows(found.select(*columns))
        if not by_source:
            return expected
        options = {"readChangeFeed": "true", "startingVersion": first}
        if last is not None:
            options["endingVersion"] = last
        of_source = source.read(table, **options)
        assert of_source.schema.simpleString() == found.schema.simpleString()
        assert rows(of_source) == rows(found)
        return expected

    return read


def numbers(*values):
    return pa.table({"id": pa.array(values, pa.int64())})


def test_whole_files_are_inserts_and_deletes(spark, create, feed):
    table = create("id bigint, p int", "p", **FEED)
    table.append(spark.sql("SELECT 1L id, 1 p UNION ALL SELECT 2, 2"))
    table.overwrite(spark.sql("SELECT 3L id, 2 p"), replace_where="p = 2")
    inserted = [(1, 1, "insert", 1), (2, 2, "insert", 1)]
    replaced = [(2, 2, "delete", 2), (3, 2, "insert", 2)]
    assert feed(table, 0) == sorted(inserted + replaced)
    assert feed(table, 1, 1, by_source=False) == inserted
    assert feed(table, 2, 9, by_source=False) == replaced
    assert feed(table, 0, 0, by_source=False) == []


def test_change_data_files_say_it_all(spark, create, feed):
    table = create("id bigint, p int", "p", **FEED)
    table.append(spark.sql("SELECT id, 1 p FROM range(3)").coalesce(1))
    (old,) = table.scan().files
    changed = pa.table(
        {
            "id": pa.array([1, 10, 2], pa.int64()),
            "_change_type": ["update_preimage", "update_postimage", "delete"],
        }
    )
    update(table, old, numbers(0, 10), changed, name="two", partition={"p": "1"})
    assert feed(table, 2) == [
        (1, 1, "update_preimage", 2),
        (2, 1, "delete", 2),
        (10, 1, "update_postimage", 2),
    ]
    assert feed(table, 1, 1) == [(n, 1, "insert", 1) for n in range(3)]
    assert rows(table.read(spark)) == [(0, 1), (10, 1)]


def test_deletion_vectors_are_what_they_differ_in(spark, create, feed):
    table = create("id bigint", **FEED, **VECTORS)
    table.append(spark.range(6).coalesce(1))
    for gone in ([1], [1, 4, 5], [4], None):
        (file,) = table.scan().files
        delete(table, file, gone and vector_of(table, gone))
    table.overwrite(spark.range(0))
    assert feed(table, 2) == sorted(
        [
            (1, "delete", 2),
            (4, "delete", 3),
            (5, "delete", 3),
            (1, "insert", 4),
            (5, "insert", 4),
            (4, "insert", 5),
            *((n, "delete", 6) for n in range(6)),
        ]
    )
    assert feed(table, 1, 1, by_source=False) == [(n, "insert", 1) for n in range(6)]


def test_a_file_removed_with_its_vector_is_the_rest_of_it(spark, create, feed):
    table = create("id bigint", **FEED, **VECTORS)
    table.append(spark.range(3).coalesce(1))
    (file,) = table.scan().files
    delete(table, file, vector_of(table, [1]))
    table.overwrite(spark.range(0))
    assert feed(table, 3) == [(0, "delete", 3), (2, "delete", 3)]


def test_rewrites_are_no_changes(spark, create, feed):
    table = create("id bigint", **FEED)
    for n in range(2):
        table.append(spark.range(n, n + 1))
    with table.transaction() as txn:
        compacted = table.read(spark).coalesce(1)
        table.overwrite(compacted, transaction=txn, dataChange=False)
    assert feed(table, 3) == []


def test_a_merge_that_says_it_changed_no_row_is_no_change(spark, create, feed):
    table = create("id bigint", **FEED)
    table.append(spark.range(2).coalesce(1))
    counts = ["numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"]
    for version, said in ((2, counts), (3, counts[:2])):
        with table.transaction() as txn:
            txn.remove(table.scan().files)
            txn.add([data_file(table, f"copy{version}.parquet", numbers(0, 1), {})])
            txn.commit("MERGE", metrics=dict.fromkeys(said, "0"))
    assert feed(table, 2, 2) == []
    assert feed(table, 3, 3) == sorted(
        (n, kind, 3) for n in range(2) for kind in ("delete", "insert")
    )


def test_every_row_has_the_moment_of_its_commit(spark, create):
    table = create("id bigint", **FEED)
    receipts = [table.append(spark.range(1)) for _ in range(2)]
    found = table.changes(spark, from_version=1).selectExpr(
        "_commit_version", "unix_millis(_commit_timestamp)"
    )
    assert rows(found) == [(r.version, r.timestamp) for r in receipts]


class TestSpans:
    def test_by_timestamps(self, spark, create):
        table = create("id bigint", **FEED)
        first, second = (table.append(spark.range(1)).timestamp for _ in range(2))
        versions = {
            (first, None): {1, 2},
            (first, first): {1},
            (first + 1, None): {2},
            (second, second): {2},
            (0, first): {1},
            (0, second + 10**9): {1, 2},
        }
        for (start, end), expected in versions.items():
            found = table.changes(spark, from_timestamp=start, to_timestamp=end)
            assert {row["_commit_version"] for row in found.collect()} == expected
        start = dt.datetime.fromtimestamp(second / 1000, dt.UTC).isoformat()
        found = table.changes(spark, from_timestamp=start)
        assert {row["_commit_version"] for row in found.collect()} == {2}

    @pytest.mark.parametrize(
        ("span", "message"),
        [
            ({}, "DELTA_NO_START_FOR_CDC_READ"),
            ({"to_version": 1}, "DELTA_NO_START_FOR_CDC_READ"),
            ({"from_version": 2}, "DELTA_CDC_START_VERSION_AFTER_LATEST.* 2 .* 1"),
            ({"from_version": 1, "to_version": 0}, "DELTA_INVALID_CDC_RANGE.*End cannot be before"),
            ({"from_version": 1, "from_timestamp": 1}, "DELTA_MULTIPLE_CDC_BOUNDARY.* starting"),
            (
                {"from_version": 1, "to_version": 1, "to_timestamp": 1},
                "DELTA_MULTIPLE_CDC_BOUNDARY.* ending",
            ),
            ({"from_timestamp": 10**15}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
            (
                {"from_version": 0, "to_timestamp": 1},
                "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            ),
        ],
    )
    def test_what_is_out_of_range_is_said(self, spark, create, span, message):
        table = create("id bigint", **FEED)
        table.append(spark.range(1))
        with pytest.raises(ChangesUnavailable, match=message):
            table.changes(spark, **span)

    def test_a_version_that_never_was_is_said(self, spark, create):
        table = create("id bigint", **FEED)
        with pytest.raises(InvalidRequest, match=r">= 0"):
            table.changes(spark, from_version=-1)


def switch(table, value):
    with table.transaction() as txn:
        txn.update_metadata(set_properties={"delta.enableChangeDataFeed": value})
        return txn.commit("SET TBLPROPERTIES")


class TestWhatWasRecorded:
    @pytest.fixture
    def table(self, spark, create, copied):
        """The feed is on from version 2 to 3."""

        def make():
            table = create("id bigint")
            table.append(spark.range(1))
            switch(table, "true")
            table.append(spark.range(10, 12).coalesce(1))
            switch(table, "false")
            return table

        return copied(make)

    @pytest.mark.parametrize(("first", "last", "missing"), [(2, 4, 4), (4, 4, 4)])
    def test_versions_without_it_are_named(self, spark, table, first, last, missing):
        with pytest.raises(ChangesUnavailable, match=rf"DELTA_MISSING_CHANGE_DATA.*\[{missing}\]"):
            table.changes(spark, from_version=first, to_version=last)


class TestSchemas:
    def test_columns_that_came_later_are_null(self, spark, create, feed):
        table = create("id bigint", **FEED)
        table.append(spark.range(1))
        table.append(spark.sql("SELECT 5L id, 'x' s"), mergeSchema=True)
        assert feed(table, 1) == [(0, None, "insert", 1), (5, "x", "insert", 2)]
        assert feed(table, 1, 1) == [(0, None, "insert", 1)]

    def test_columns_that_are_gone_are_named(self, spark, create):
        table = create("id bigint", **FEED)
        table.append(spark.range(1))
        table.overwrite(spark.sql("SELECT 'x' id"), overwriteSchema=True)
        with pytest.raises(ChangesUnavailable, match=r"INCOMPATIBLE_SCHEMA_CHANGE.*version 1"):
            table.changes(spark, from_version=1)

    def test_mapped_columns_are_read_by_the_last_versions_names(self, spark, create, feed):
        table = create("a string, b string", **FEED, **{"delta.columnMapping.mode": "name"})
        table.append(spark.sql("SELECT 'a1' a, 'b1' b"))
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            table.alter(spark=spark).rename_column(old, new)
        table.append(spark.sql("SELECT 'b2' a, 'a2' b"))
        assert feed(table, 1, 1) == [("a1", "b1", "insert", 1)]
        found = table.changes(spark, from_version=1)
        assert found.columns[:2] == ["b", "a"]
        assert feed(table, 1) == [("a1", "b1", "insert", 1), ("a2", "b2", "insert", 5)]

    def test_partitions_and_change_data_are_read_by_them(self, spark, create, feed):
        table = create("a int, p int, q int", "p", **FEED, **{"delta.columnMapping.mode": "name"})
        table.append(spark.sql("SELECT 1 a, 2 p, 3 q"))
        table.update({"a": "10"}, where="a = 1", spark=spark)
        table.alter(spark=spark).rename_column("p", "r")
        table.alter(spark=spark).rename_column("q", "p")
        assert table.changes(spark, from_version=1).columns[:3] == ["a", "r", "p"]
        assert feed(table, 1) == [
            (1, 2, 3, "insert", 1),
            (1, 2, 3, "update_preimage", 2),
            (10, 2, 3, "update_postimage", 2),
        ]

    def test_a_column_that_is_dropped_parts_the_versions(self, spark, create):
        table = create("a int, b int", **FEED, **{"delta.columnMapping.mode": "name"})
        table.append(spark.sql("SELECT 1 a, 2 b"))
        table.alter(spark=spark).drop_columns("b")
        table.alter(spark=spark).add_columns("b STRING")
        with pytest.raises(ChangesUnavailable, match="from 2 on, or for earlier ones") as gone:
            table.changes(spark, from_version=1)
        assert gone.value.error_class == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
        assert table.changes(spark, from_version=1, to_version=1).count() == 1
        table.alter(spark=spark).add_columns("c INT")
        table.alter(spark=spark).drop_columns("c")
        with pytest.raises(ChangesUnavailable, match="ask for versions from 5 on"):
            table.changes(spark, from_version=3)
        assert table.changes(spark, from_version=5).count() == 0

    def test_names_that_were_mapped_once_are_no_others(self, spark, create):
        table = create("a string, b string", **FEED, **{"delta.columnMapping.mode": "name"})
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            table.alter(spark=spark).rename_column(old, new)
        table.append(spark.sql("SELECT 'a' a, 'b' b"))
        table.alter(spark=spark).set_properties({"delta.enableChangeDataFeed": "false"})
        table.alter(spark=spark).drop_feature("columnMapping")
        with pytest.raises(ChangesUnavailable, match="INCOMPATIBLE_SCHEMA_CHANGE"):
            table.changes(spark, from_version=4, to_version=4)

    def test_widened_columns_are_read_as_they_are_now(self, spark, create, feed):
        table = create("a int", **FEED, **{"delta.enableTypeWidening": "true"})
        table.append(spark.sql("SELECT 1 a"))
        change = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
        schema = StructType([StructField("a", spark.range(1).schema["id"].dataType, True, change)])
        with table.transaction() as txn:
            txn.update_metadata(schema=schema)
            txn.commit("CHANGE COLUMN")
        table.append(spark.sql("SELECT 5000000000L a"))
        assert feed(table, 1) == [(1, "insert", 1), (5_000_000_000, "insert", 3)]


def test_a_commit_of_another_writer_with_odd_lines(spark, create, feed):
    table = create("id bigint", **FEED)
    table.append(spark.range(2).coalesce(1))
    (file,) = table.scan().files
    removed = {"path": file.path, "partitionValues": {}, "size": 1.0, "dataChange": True}
    line = json.dumps({"add": None, "remove": removed, "commitInfo": {"operation": "DELETE"}})
    log = folder_of(table) / "_delta_log"
    (log / f"{2:020d}.json").write_text(f"{line}\n{{}}\n")
    assert feed(table, 2) == [(0, "delete", 2), (1, "delete", 2)]
    assert rows(table.read(spark)) == []
