"""OPTIMIZE and REORG on tables with features that change what is in their files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as DeltaRs
from deltalake import QueryBuilder

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import folder_of, rows
from tidegate_protocol.log.paths import decode

_RATIO = "spark.databricks.delta.optimize.maxDeletedRowsRatio"
_MIN_SIZE = "spark.databricks.delta.optimize.minFileSize"
_TRACKING = {"delta.enableRowTracking": "true"}
_ID = "delta.rowTracking.materializedRowIdColumnName"
_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"


@pytest.fixture
def marked(spark, create, copied):
    """The rows 0 to 9 in two files; 1 and 2 of the first one are deleted by a vector."""

    def make():
        table = create("id bigint", **VECTORS)
        table.append(spark.range(0, 10, numPartitions=2))
        table.delete("id IN (1, 2)", spark=spark)
        return table

    return copied(make)


LEFT = [(n,) for n in range(10) if n not in (1, 2)]


class TestDeletionVectors:
    def test_are_gone_from_what_is_compacted(self, spark, marked):
        found = marked.optimize(spark=spark)
        (file,) = marked.scan().files
        assert file.deletion_vector is None
        assert rows(marked.read(spark)) == LEFT
        read = QueryBuilder().register("t", DeltaRs(marked.location)).execute("SELECT id FROM t")
        assert sorted(pa.table(read.read_all())["id"].to_pylist()) == [n for (n,) in LEFT]
        assert found.metrics["deletionVectorStats"] == {
            "numDeletionVectorsRemoved": 1,
            "numDeletionVectorRowsRemoved": 2,
        }
        metrics = marked.history(limit=1)[0].operation_metrics
        assert metrics["numDeletionVectorsRemoved"] == "1"

    def test_large_files_with_many_deleted_rows_are_compacted(self, session, marked):
        session.conf.set(_MIN_SIZE, "1")
        marked.delete("id = 5", spark=session)
        session.conf.set(_RATIO, "0.9")
        assert marked.optimize(spark=session).receipts == ()
        session.conf.set(_RATIO, "0.1")
        assert len(marked.optimize(spark=session).receipts) == 1
        assert len(marked.scan().files) == 1

    def test_a_reorg_purges_them_and_leaves_other_files(self, spark, marked):
        kept = {file.path for file in marked.scan().files if file.deletion_vector is None}
        found = marked.reorg(spark=spark)
        assert kept < {file.path for file in marked.scan().files}
        assert all(file.deletion_vector is None for file in marked.scan().files)
        assert rows(marked.read(spark)) == LEFT
        commit = marked.history(limit=1)[0]
        assert commit.operation == "REORG"
        assert commit.operation_parameters == {"predicate": "[]", "applyPurge": True}
        assert found.metrics["numFilesRemoved"] == 1
        assert marked.reorg(spark=spark).receipts == ()

    def test_a_file_without_rows_left(self, spark, create):
        table = create("id bigint", **VECTORS)
        table.append(spark.range(4).coalesce(1))
        table.delete("id < 3", spark=spark)
        table.delete("id = 3", spark=spark)
        assert table.scan().files == ()
        assert table.reorg(spark=spark).receipts == ()
        assert table.optimize(spark=spark).receipts == ()


class TestRowIds:
    """As the files have them, in columns that only writers and readers of row ids know."""

    @pytest.fixture
    def tracked(self, spark, create, copied):
        def make():
            table = create("a int, p int", "p", **_TRACKING, **VECTORS)
            for first in (0, 3, 6):
                table.append(
                    spark.range(first, first + 3).selectExpr("int(id) AS a", "1 AS p").coalesce(1)
                )
            return table

        return copied(make)

    def ids(self, table) -> dict[int, tuple[int, int]]:
        """The id and the commit version of each row, by its value."""
        properties = table.head().properties
        found = {}
        for file in table.scan().files:
            vector = file.deletion_vector
            assert vector is None
            read = pq.ParquetFile(folder_of(table) / decode(file.path)).read().to_pylist()
            for position, row in enumerate(read):
                row_id, version = row.get(properties[_ID]), row.get(properties[_VERSION])
                found[row["a"]] = (
                    file.base_row_id + position if row_id is None else row_id,
                    file.default_row_commit_version if version is None else version,
                )
        return found

    def test_stay_however_often_rows_are_rearranged(self, spark, tracked):
        before = self.ids(tracked)
        assert len(set(before.values())) == 9
        tracked.optimize(spark=spark)
        assert tracked.history(limit=1)[0].tags["delta.rowTracking.preserved"] == "true"
        assert self.ids(tracked) == before
        tracked.append(spark.range(9, 11).selectExpr("int(id) AS a", "1 AS p").coalesce(1))
        grown = self.ids(tracked)
        assert before.items() <= grown.items()
        tracked.optimize(z_order_by="a", spark=spark)
        assert self.ids(tracked) == grown
        assert len(tracked.scan().files) == 1
        assert [row[0] for row in rows(tracked.read(spark).select("a"))] == list(range(11))

    def test_stay_where_rows_before_them_are_purged(self, spark, tracked):
        before = self.ids(tracked)
        tracked.delete("a IN (0, 4)", spark=spark)
        tracked.reorg(spark=spark)
        assert self.ids(tracked) == {a: ids for a, ids in before.items() if a not in (0, 4)}


class TestMappedColumns:
    def test_keep_their_names_in_files(self, spark, create):
        table = create(
            "a int, p string, s struct<x: int>", "p", **{"delta.columnMapping.mode": "id"}
        )
        values = "VALUES (1, 'u'), (2, 'u'), (3, 'v')"
        frame = spark.sql(f"SELECT a, p, named_struct('x', a) AS s FROM {values} AS t(a, p)")
        for _ in range(2):
            table.append(frame)
        before = rows(table.read(spark).select("a", "p", "s.x"))
        table.optimize("p = 'u'", spark=spark)
        table.optimize(z_order_by=["a", "s.x"], spark=spark)
        assert rows(table.read(spark).select("a", "p", "s.x")) == before
        assert len(table.scan().files) == 2

    def test_what_was_dropped_is_purged(self, spark, create):
        table = create(
            "a int, b int, s struct<x: int, y: int>", **{"delta.columnMapping.mode": "name"}
        )
        table.append(spark.sql("SELECT 1 AS a, 2 AS b, named_struct('x', 3, 'y', 4) AS s"))
        assert table.reorg(spark=spark).receipts == ()
        drop(table, "b")
        assert len(table.reorg(spark=spark).receipts) == 1
        drop(table, "s", "y")
        assert len(table.reorg(spark=spark).receipts) == 1
        assert table.reorg(spark=spark).receipts == ()
        (file,) = table.scan().files
        columns = pq.read_schema(folder_of(table) / decode(file.path))
        assert len(columns) == 2
        assert columns[1].type.num_fields == 1
        assert rows(table.read(spark).select("a", "s.x")) == [(1, 3)]


def drop(table, column, field=None):
    """Take a column, or a field of a struct, out of the schema."""
    kept = []
    for each in json.loads(table.head().metadata.schema_string)["fields"]:
        if each["name"] == column and field is None:
            continue
        if each["name"] == column:
            inside = each["type"]["fields"]
            each["type"]["fields"] = [f for f in inside if f["name"] != field]
        kept.append(each)
    with table.transaction() as txn:
        txn.update_metadata(schema={"type": "struct", "fields": kept})
        txn.commit("DROP COLUMNS")
