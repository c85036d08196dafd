"""Commands that mark rows by deletion vectors, where a table has them on."""

from pathlib import Path
from random import random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import ArithmeticException
from pyspark.sql import functions as F

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, folder_of, rows

CHANGES = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def numbers(spark, create, copied):
    """The rows 0 to 9, five in each of two files."""

    def make():
        table = create("id bigint, v string", **VECTORS)
        frame = spark.range(10).selectExpr("id", "concat('v', id) AS v")
        table.append(frame.repartitionByRange(2, "id"))
        assert len(table.scan().files) == 2
        return table

    return copied(make)


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
        table.append(spark.range(70_000).coalesce(1))
        assert table.delete("id % 32768 = 7", spark=spark).deleted == 3
        left = [n for n in range(70_000) if n % 32768 != 7]
        found = table.read(spark).selectExpr("count(id)", "sum(id)")
        assert rows(found) == [(len(left), sum(left))]

    def test_the_session_may_switch_them_off(self, spark, numbers):
        setting = "spark.databricks.delta.delete.deletionVectors.persistent"
        spark.conf.set(setting, "false")
        try:
            numbers.delete("id = 1", spark=spark)
        finally:
            spark.conf.unset(setting)
        assert vectors_in(numbers) == [0, 0]


class TestUpdate:
    def test_exactly_the_rows_that_were_marked(self, spark, numbers):
        """Whatever the condition says the second time."""
        drawn = F.udf(lambda _: random() < 0.5, "boolean")
        for _ in range(2):
            numbers.update({"v": "'new'"}, drawn("id"), spark=spark)
            assert ids(numbers, spark) == list(range(10))


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
