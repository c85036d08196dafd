"""OPTIMIZE of a clustered table: which rows share files, and which files are written again."""

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import actions, data_files, independent, overtake, rows
from tidegate.spark import InvalidCommand, UnsupportedSession
from tidegate.spark.tables import DeltaTable
from tidegate_protocol.log.codec import with_fields

MAX_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
CUBES = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize."
SIDE = 32


def numbers(spark, add=0, side=SIDE):
    """Each pair of x and y once, in no order."""
    frame = spark.range(side * side).selectExpr(
        f"int(id % {side}) + {add} AS x", f"int(id / {side}) + {add} AS y"
    )
    return frame.withColumn("z", F.xxhash64("x", "y")).orderBy("z")


@pytest.fixture
def square(session, clustered, copied):
    """A table by x and y in 4 files, each with rows from everywhere, which OPTIMIZE makes about as
    many files of."""

    def make():
        table = clustered("x int, y int, z bigint", "x", "y")
        table.append(numbers(session).repartition(4, "z"))
        return table

    return in_files(session, copied(make), 4)


@pytest.fixture
def large(session, clustered, copied):
    """The like of it with four times the rows, in 16 files."""

    def make():
        table = clustered("x int, y int, z bigint", "x", "y")
        table.append(numbers(session, side=2 * SIDE).repartition(16, "z"))
        return table

    return in_files(session, copied(make), 16)


def in_files(session, table, count):
    files = table.scan().files
    assert len(files) == count
    session.conf.set(MAX_FILE_SIZE, str(sum(file.size for file in files) // count))
    return table


def stable_from(session, size):
    session.conf.set(CUBES + "threshold", str(size))
    session.conf.set(CUBES + "targetCubeSize", str(size))


def cubes(table):
    """The paths of files by the cube that they are of, None for none."""
    found = {}
    for file in table.scan().files:
        found.setdefault((file.tags or {}).get("ZCUBE_ID"), set()).add(file.path)
    return found


def last(table):
    return table.history(limit=1)[0]


class TestRows:
    def test_fewer_files_are_read_for_a_narrow_predicate(self, session, large):
        predicates = ["x = 7", "y BETWEEN 40 AND 44", "x > 50 AND y < 10"]
        before = rows(large.read(session))
        assert [len(large.scan(where).files) for where in predicates] == [16, 16, 16]
        large.optimize(spark=session)
        assert 14 <= len(large.scan().files) <= 16
        read = [len(large.scan(where).files) for where in predicates]
        assert max(read) <= 9, read
        assert rows(large.read(session)) == before
        assert len(independent(large)) == len(before)

    def test_columns_of_any_type_and_nulls(self, session, clustered):
        columns = "s string, d decimal(10, 2), t timestamp, n struct<f: date>"
        table = clustered(columns, "s", "d", "t", "n.f")
        frame = session.range(400).selectExpr(
            "IF(id % 5 = 0, NULL, format_string('%04d', id)) AS s",
            "CAST(id / 7 AS DECIMAL(10, 2)) AS d",
            "timestamp_millis(id * 1000) AS t",
            "IF(id % 3 = 0, NULL, named_struct('f', date_add(DATE'2020-01-01', int(id)))) AS n",
        )
        table.append(frame.coalesce(1))
        session.conf.set(MAX_FILE_SIZE, str(table.scan().files[0].size // 3))
        table.optimize(spark=session)
        assert len(table.scan().files) == 3
        assert rows(table.read(session).select("s", "d")) == rows(frame.select("s", "d"))


class TestLog:
    def test_its_commit_and_its_metrics_are_delta_s(self, session, square):
        size = sum(file.size for file in square.scan().files)
        (row,) = DeltaTable.over(session, square).optimize().executeCompaction().collect()
        commit = last(square)
        assert (commit.operation, commit.isolation_level) == ("OPTIMIZE", "SnapshotIsolation")
        assert commit.operation_parameters == {
            "predicate": "[]",
            "zOrderBy": "[]",
            "clusterBy": '["x","y"]',
            "auto": False,
            "isFull": False,
        }
        adds = actions(square, commit.version, "add")
        assert {add["clusteringProvider"] for add in adds} == {"liquid"}
        assert not any(a["dataChange"] for a in adds + actions(square, commit.version, "remove"))
        ids = {add["tags"]["ZCUBE_ID"] for add in adds}
        tags = {"ZCUBE_ID": ids.pop(), "ZCUBE_ZORDER_BY": '["x","y"]'}
        assert not ids
        assert all(add["tags"] == {**tags, "ZCUBE_ZORDER_CURVE": "hilbert"} for add in adds)
        metrics = row["metrics"].asDict(recursive=True)
        merged = {"numFiles": 4, "size": size}
        assert metrics["clusteringStats"] == {
            "inputZCubeFiles": {"numFiles": 0, "size": 0},
            "inputOtherFiles": merged,
            "inputNumZCubes": 0,
            "mergedFiles": merged,
            "numOutputZCubes": 1,
        }
        assert metrics["zOrderStats"] is None
        again = square.optimize(spark=session)
        assert again.receipts == square.optimize(full=True, spark=session).receipts == ()
        assert square.version == commit.version
        found = again.metrics["clusteringStats"]
        assert found["inputZCubeFiles"]["numFiles"] == len(square.scan().files)
        assert (found["inputNumZCubes"], found["numOutputZCubes"]) == (1, 0)
        assert found["mergedFiles"] == {"numFiles": 0, "size": 0}


class TestCubes:
    def test_of_a_stable_cube_and_new_files_the_new_ones_alone_are_clustered(self, session, square):
        stable_from(session, 1)
        session.conf.set(CUBES + "targetCubeSize", str(1 << 30))
        square.optimize(spark=session)
        (first,) = cubes(square).values()
        for add in (100, 200):
            square.append(numbers(session, add).coalesce(1))
        square.optimize(spark=session)
        after = cubes(square)
        assert first in after.values()
        assert len(after) == 2
        assert None not in after
        assert {file["path"] for file in actions(square, square.version, "remove")}.isdisjoint(
            first
        )

    def test_a_small_cube_is_merged_with_what_is_new(self, session, square):
        square.optimize(spark=session)
        square.append(numbers(session, 100).coalesce(1))
        found = square.optimize(spark=session)
        assert len(cubes(square)) == 1
        assert found.metrics["numFilesRemoved"] == found.metrics["totalConsideredFiles"]
        assert square.read(session).count() == 2 * SIDE * SIDE

    def test_cubes_are_of_about_the_target_size(self, session, square):
        total = sum(file.size for file in square.scan().files)
        stable_from(session, total * 3 // 5)
        found = square.optimize(spark=session)
        assert len(cubes(square)) == found.metrics["clusteringStats"]["numOutputZCubes"] == 2

    def test_full_takes_what_was_clustered_by_others(self, session, large):
        large.optimize(spark=session)
        large.alter(spark=session).cluster_by("y")
        assert large.optimize(spark=session).receipts == ()
        found = large.optimize(full=True, spark=session)
        assert found.metrics["clusteringStats"]["inputNumZCubes"] == 1
        assert last(large).operation_parameters["isFull"] is True
        assert {file.tags["ZCUBE_ZORDER_BY"] for file in large.scan().files} == {'["y"]'}
        assert len(large.scan("y = 9").files) <= 2

    def test_what_another_implementation_clustered_stays(self, session, square):
        with square.transaction() as txn:
            (file,) = txn.write_files(numbers(session, 100).coalesce(1))
            txn.add([with_fields(file, {"clusteringProvider": "another"})])
            txn.commit("WRITE")
        square.optimize(spark=session)
        assert cubes(square)[None] == {file.path}
        square.optimize(full=True, spark=session)
        assert None not in cubes(square)

    def test_without_columns_it_is_compaction(self, session, square):
        square.alter(spark=session).cluster_by()
        session.conf.unset(MAX_FILE_SIZE)
        square.optimize(spark=session)
        assert list(map(len, cubes(square).values())) == [1]
        assert last(square).operation_parameters["clusterBy"] == "[]"
        assert "isFull" not in last(square).operation_parameters
        assert None in cubes(square)


class TestConflicts:
    def test_it_yields_to_a_delete_and_goes_on(self, session, square):
        rival = DeltaTable.over(session, square)
        raced = []

        def delete():
            if not raced:
                raced.append(True)
                rival.delete("x < 8")

        overtaken = square.for_application("overtaken")
        overtake(overtaken, delete)
        overtaken.optimize(spark=session)
        assert raced
        assert None not in cubes(square)
        assert square.read(session).where("x < 8").count() == 0
        assert square.read(session).count() == SIDE * SIDE - 8 * SIDE


def test_purged_files_are_clustered_again(session, clustered):
    table = clustered("x int", "x", **{"delta.enableDeletionVectors": "true"})
    table.append(session.range(100).selectExpr("int(id) AS x").coalesce(1))
    table.optimize(spark=session)
    (before,) = table.scan().files
    table.delete("x < 10", spark=session)
    table.reorg(spark=session)
    (after,) = table.scan().files
    assert after.deletion_vector is None
    assert after.clustering_provider == "liquid"
    assert after.tags["ZCUBE_ID"] != before.tags["ZCUBE_ID"]
    assert last(table).operation == "REORG"
    assert rows(table.read(session)) == [(x,) for x in range(10, 100)]


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "error_class", "words"),
        [
            ({"where": "x = 1"}, "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE", "x = 1"),
            ({"z_order_by": ["x"]}, "DELTA_CLUSTERING_WITH_ZORDER_BY", "(x)"),
        ],
    )
    def test_of_clustered_tables(self, session, square, options, error_class, words):
        before = data_files(square)
        with pytest.raises(InvalidCommand) as refusal:
            square.optimize(**options, spark=session)
        assert refusal.value.getCondition() == error_class
        assert words in str(refusal.value)
        assert data_files(square) == before

    def test_full_of_others(self, session, create, clustered):
        for table in (create("a int"), clustered("a int")):
            with pytest.raises(InvalidCommand, match="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"):
                table.optimize(full=True, spark=session)

    def test_more_columns_than_four(self, session, clustered):
        """Which another engine may have given the table."""
        table = clustered("a int, b int, c int, d int, e int", "a")
        text = '{"clusteringColumns":[["a"],["b"],["c"],["d"],["e"]]}'
        domain = {"domain": "delta.clustering", "configuration": text, "removed": False}
        with table.transaction() as txn:
            txn.action({"domainMetadata": domain})
            txn.commit("CLUSTER BY")
        with pytest.raises(InvalidCommand, match="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"):
            table.optimize(spark=session)

    @pytest.mark.parametrize("name", ["threshold", "targetCubeSize"])
    def test_settings_that_are_none(self, session, square, name):
        session.conf.set(CUBES + name, "-1")
        with pytest.raises(UnsupportedSession, match=name):
            square.optimize(spark=session)
