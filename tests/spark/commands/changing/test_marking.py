"""Commands that mark rows by deletion vectors, where a table has them on."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import ArithmeticException

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, folder_of, rows

CHANGES = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def numbers(spark, create):
    """The rows 0 to 9, five in each of two files."""
    table = create("id bigint, v string", **VECTORS)
    frame = spark.range(10).selectExpr("id", "concat('v', id) AS v")
    table.append(frame.repartitionByRange(2, "id"))
    assert len(table.scan().files) == 2
    return table


def ids(table, spark) -> list[int]:
    return [row[0] for row in rows(table.read(spark))]


def independent(table) -> list[int]:
    """The ids that delta-rs finds by the log alone."""
    found = QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT id FROM t")
    return sorted(pa.table(found.read_all())["id"].to_pylist())


def written(table) -> list[Path]:
    """All but the log, in which the service writes checksums by itself."""
    folder = folder_of(table)
    return sorted(path for path in folder.rglob("*") if folder / "_delta_log" not in path.parents)


def vectors_in(table) -> list[int | None]:
    """How many rows each live file has lost."""
    found = [file.deletion_vector for file in table.scan().files]
    return sorted(0 if vector is None else vector.cardinality for vector in found)


class TestDelete:
    def test_marks_rows_and_copies_none(self, spark, numbers):
        before = {file.path for file in numbers.scan().files}
        changed = numbers.delete("id IN (1, 3, 6)", spark=spark)
        assert (changed.deleted, changed.metrics["numCopiedRows"]) == (3, "0")
        assert changed.metrics["numDeletionVectorsAdded"] == "2"
        assert {file.path for file in numbers.scan().files} == before
        assert vectors_in(numbers) == [1, 2]
        assert ids(numbers, spark) == [0, 2, 4, 5, 7, 8, 9]
        assert independent(numbers) == ids(numbers, spark)

    def test_a_second_one_adds_to_the_vector(self, spark, numbers):
        numbers.delete("id = 1", spark=spark)
        changed = numbers.delete("id IN (3, 4)", spark=spark)
        counts = {
            name: changed.metrics[f"numDeletionVectors{name}"] for name in ("Added", "Updated")
        }
        assert counts == {"Added": "1", "Updated": "1"}
        assert vectors_in(numbers) == [0, 3]
        assert ids(numbers, spark) == [0, 2, 5, 6, 7, 8, 9]

    def test_a_file_without_rows_goes(self, spark, numbers):
        numbers.delete("id IN (0, 1)", spark=spark)
        changed = numbers.delete("v IN ('v2', 'v3', 'v4', 'v5')", spark=spark)
        assert changed.metrics["numRemovedFiles"] == "1"
        assert vectors_in(numbers) == [1]
        assert ids(numbers, spark) == [6, 7, 8, 9]

    def test_its_change_data_are_the_vectors(self, spark, create):
        table = create("id bigint", **VECTORS, **CHANGES)
        table.append(spark.range(5).coalesce(1))
        table.delete("id >= 3", spark=spark)
        assert actions(table, table.version, "cdc") == []
        feed = table.changes(spark, from_version=table.version).select("id", "_change_type")
        assert rows(feed) == [(3, "delete"), (4, "delete")]

    def test_rows_of_a_large_file(self, spark, create):
        """Positions in several chunks."""
        table = create("id bigint", **VECTORS)
        table.append(spark.range(200_000).coalesce(1))
        assert table.delete("id % 50000 = 7", spark=spark).deleted == 4
        assert table.read(spark).where("id % 50000 = 7").count() == 0
        assert table.read(spark).count() == 199_996

    def test_row_ids_stay_where_rows_are_marked(self, spark, create):
        table = create("id bigint", **VECTORS, **{"delta.enableRowTracking": "true"})
        table.append(spark.range(5).coalesce(1))
        (file,) = table.scan().files
        assert table.delete("id = 2", spark=spark).deleted == 1
        (after,) = table.scan().files
        assert after.base_row_id == file.base_row_id
        assert after.default_row_commit_version == file.default_row_commit_version

    def test_the_session_may_switch_them_off(self, spark, numbers):
        setting = "spark.databricks.delta.delete.deletionVectors.persistent"
        spark.conf.set(setting, "false")
        try:
            numbers.delete("id = 1", spark=spark)
        finally:
            spark.conf.unset(setting)
        assert vectors_in(numbers) == [0, 0]


class TestUpdate:
    def test_writes_the_rows_that_change_alone(self, spark, numbers):
        changed = numbers.update({"v": "'new'"}, "id IN (1, 6, 7)", spark=spark)
        assert (changed.updated, changed.metrics["numCopiedRows"]) == (3, "0")
        assert vectors_in(numbers) == [0, 0, 1, 2], "the rows are in new files"
        found = {row["id"]: row["v"] for row in numbers.read(spark).collect()}
        assert sorted(found) == list(range(10))
        assert {id_ for id_, v in found.items() if v == "new"} == {1, 6, 7}
        assert independent(numbers) == ids(numbers, spark)

    def test_exactly_the_rows_that_were_marked(self, spark, numbers):
        """Whatever the condition says the second time."""
        for _ in range(3):
            condition = "pmod(hash(id, current_timestamp()), 2) = 0"
            numbers.update({"v": "'new'"}, condition, spark=spark)
            assert ids(numbers, spark) == list(range(10))

    def test_its_change_data(self, spark, create):
        table = create("id bigint, v int", **VECTORS, **CHANGES)
        table.append(spark.range(4).selectExpr("id", "0 AS v").coalesce(1))
        table.update({"v": "id"}, "id >= 2", spark=spark)
        feed = table.changes(spark, from_version=table.version).select("id", "v", "_change_type")
        kinds = Counter(row["_change_type"] for row in feed.collect())
        assert kinds == {"update_preimage": 2, "update_postimage": 2}


class TestMerge:
    def test_marks_and_inserts(self, spark, numbers):
        source = spark.sql("SELECT * FROM VALUES (1L), (6L), (8L), (77L) AS s(id)").alias("s")
        merge = numbers.merge(source, "t.id = s.id", alias="t")
        merge = merge.whenMatchedDelete("s.id = 8")
        merge = merge.whenMatchedUpdate("s.id < 5", set={"v": "'new'"})
        changed = merge.whenNotMatchedInsert(values={"id": "s.id", "v": "'in'"}).execute()
        assert (changed.updated, changed.deleted, changed.inserted) == (1, 1, 1)
        assert changed.metrics["numTargetRowsCopied"] == "0"
        assert vectors_in(numbers) == [0, 1, 1]
        found = {row["id"]: row["v"] for row in numbers.read(spark).collect()}
        assert sorted(found) == [0, 1, 2, 3, 4, 5, 6, 7, 9, 77]
        assert (found[1], found[6], found[77]) == ("new", "v6", "in")
        assert independent(numbers) == ids(numbers, spark)

    def test_rows_that_match_and_stay_are_not_inserted(self, spark, numbers):
        source = spark.sql("SELECT 3L AS id, 'v' AS v").alias("s")
        merge = numbers.merge(source, "t.id = s.id", alias="t")
        merge = merge.whenMatchedUpdate("s.id > 5", set={"v": "'new'"})
        assert merge.whenNotMatchedInsertAll().execute().rows == 0
        assert ids(numbers, spark) == list(range(10))

    def test_rows_that_the_source_lacks(self, spark, numbers):
        source = spark.range(8).alias("s")
        merge = numbers.merge(source, "t.id = s.id", alias="t")
        merge = merge.whenNotMatchedBySourceUpdate(set={"v": "'gone'"})
        assert merge.execute().updated == 2
        found = {row["id"]: row["v"] for row in numbers.read(spark).collect()}
        assert {id_ for id_, v in found.items() if v == "gone"} == {8, 9}
        assert sorted(found) == list(range(10))

    def test_its_change_data(self, spark, create):
        table = create("id bigint", **VECTORS, **CHANGES)
        table.append(spark.range(4).coalesce(1))
        source = spark.sql("SELECT * FROM VALUES (1L), (9L) AS s(id)").alias("s")
        merge = table.merge(source, "t.id = s.id", alias="t")
        merge.whenMatchedUpdate(set={"id": "t.id + 10"}).whenNotMatchedInsertAll().execute()
        feed = table.changes(spark, from_version=table.version).select("id", "_change_type")
        assert rows(feed) == [
            (1, "update_preimage"),
            (9, "insert"),
            (11, "update_postimage"),
        ]


def test_nothing_is_left_of_one_that_fails(spark, numbers):
    head, before = numbers.version, written(numbers)
    with pytest.raises(ArithmeticException):
        numbers.update({"id": "id * 9223372036854775807"}, "v = 'v9'", spark=spark)
    assert numbers.version == head
    assert written(numbers) == before
