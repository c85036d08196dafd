"""OPTIMIZE by compaction: which files become others, and what stays."""

import json

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.spark.reading.change_data import FEED
from tests.spark.tables import actions, data_files, folder_of, independent, rows
from tidegate import TransactionActive
from tidegate.spark import InvalidCommand, StorageError, UnsupportedSession
from tidegate.spark.tables import DeltaTable

PREFIX = "spark.databricks.delta.optimize."


@pytest.fixture
def small(spark, create, copied):
    """The rows 0 to 11, in partition 0 or 1 as they are even or odd, each in a file of its own."""

    def make():
        table = create("i int, p int", "p", **FEED)
        rows = spark.range(0, 12, numPartitions=12)
        table.append(rows.selectExpr("int(id) AS i", "int(id % 2) AS p"))
        assert len(table.scan().files) == 12
        return table

    return copied(make)


def last(table):
    return table.history(limit=1)[0]


class TestCompaction:
    def test_its_commit_is_of_delta_s_operation(self, spark, small):
        found = small.optimize("p = 0", spark=spark, user_metadata="nightly")
        (receipt,) = found.receipts
        assert receipt.isolation_level == "SnapshotIsolation"
        commit = last(small)
        assert (commit.operation, commit.user_metadata) == ("OPTIMIZE", "nightly")
        assert commit.is_blind_append is False
        assert commit.operation_parameters == {
            "predicate": """["('p = 0)"]""",
            "zOrderBy": "[]",
            "clusterBy": "[]",
            "auto": False,
        }
        adds = actions(small, receipt.version, "add")
        removes = actions(small, receipt.version, "remove")
        assert not any(file["dataChange"] for file in adds + removes)
        assert (len(adds), len(removes)) == (1, 6)
        assert actions(small, receipt.version, "cdc") == []
        stats = json.loads(adds[0]["stats"])
        bounds = (stats["minValues"]["i"], stats["maxValues"]["i"])
        assert (stats["numRecords"], *bounds) == (6, 0, 10)
        size = adds[0]["size"]
        assert commit.operation_metrics == {
            "numAddedFiles": "1",
            "numAddedBytes": str(size),
            "numRemovedFiles": "6",
            "numRemovedBytes": str(sum(file["size"] for file in removes)),
            **{f"{name}FileSize": str(size) for name in ("min", "p25", "p50", "p75", "max")},
            "numDeletionVectorsRemoved": "0",
        }

    def test_nothing_to_do_is_no_commit(self, spark, small):
        small.optimize(spark=spark)
        before = small.version
        found = small.optimize(spark=spark)
        assert found.receipts == ()
        assert small.version == before
        assert found.metrics["totalFilesSkipped"] == found.metrics["totalConsideredFiles"] == 2

    def test_an_append_only_table_may_be_rearranged(self, spark, create):
        table = create("a int", **{"delta.appendOnly": "true"})
        for _ in range(2):
            table.append(spark.sql("SELECT 1 AS a"))
        table.optimize(spark=spark)
        assert len(table.scan().files) == 1

    def test_rows_are_not_checked_again(self, spark, create):
        """Whatever was in the table before is none of this command's concern."""
        table = create("a int")
        for _ in range(2):
            table.append(spark.sql("SELECT 1 AS a"))
        with table.transaction() as txn:
            # Which is not so.
            txn.read_whole_table()
            txn.update_metadata(set_properties={"delta.constraints.large": "a > 5"})
            txn.commit("ADD CONSTRAINT")
        table.optimize(spark=spark)
        assert rows(table.read(spark)) == [(1,), (1,)]


class TestSizes:
    def test_large_files_stay(self, session, small):
        session.conf.set(PREFIX + "minFileSize", "1")
        assert small.optimize(spark=session).receipts == ()

    def test_bins_are_no_larger_than_asked_for(self, session, small):
        size = max(file.size for file in small.scan().files)
        session.conf.set(PREFIX + "maxFileSize", str(2 * size))
        found = small.optimize(spark=session)
        assert len(small.scan().files) == 6
        assert found.metrics["numBins"] == 6

    def test_batches_are_commits_of_their_own(self, session, small):
        size = max(file.size for file in small.scan().files)
        session.conf.set(PREFIX + "batchSize", f"{6 * size}b")
        before = small.version
        found = small.optimize(spark=session)
        assert [receipt.version for receipt in found.receipts] == [before + 1, before + 2]
        assert found.metrics["numBatches"] == 2
        assert len(small.scan().files) == 2
        assert len(independent(small)) == 12

    def test_bins_may_be_shuffled(self, session, small):
        session.conf.set(PREFIX + "repartition.enabled", "true")
        small.optimize(spark=session)
        assert len(small.scan().files) == 2

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("minFileSize", "-1"),
            ("maxFileSize", "0"),
            ("maxDeletedRowsRatio", "2"),
            ("batchSize", "much"),
            ("batchSize", "0"),
            ("maxThreads", "0"),
            ("repartition.enabled", "yes"),
        ],
    )
    def test_settings_that_are_none(self, session, small, name, value):
        session.conf.set(PREFIX + name, value)
        with pytest.raises(UnsupportedSession, match=name):
            small.optimize(spark=session)


class TestRefusals:
    @pytest.mark.parametrize(
        ("where", "error_class", "words"),
        [
            ("i = 1", "DELTA_NON_PARTITION_COLUMN_REFERENCE", "non-partition column 'i'"),
            ("p = 1 AND nope = 2", "DELTA_NON_PARTITION_COLUMN_REFERENCE", "[p]"),
            ("p = = 1", "DELTA_FAILED_RECOGNIZE_PREDICATE", "p = = 1"),
            (
                "p IN (SELECT 1)",
                "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES",
                "Subquery",
            ),
            ("p", "FILTER_NOT_BOOLEAN", "p"),
        ],
    )
    def test_predicates(self, spark, small, where, error_class, words):
        before = data_files(small)
        for command in (small.optimize, small.reorg):
            with pytest.raises(InvalidCommand) as refusal:
                command(where, spark=spark)
            assert error_class in refusal.value.getCondition()
            assert words in str(refusal.value)
        assert data_files(small) == before

    def test_a_predicate_that_is_no_text(self, spark, small):
        with pytest.raises(TypeError, match="must be str"):
            DeltaTable.over(spark, small).optimize().where(spark.range(1).id > 1)

    def test_in_a_transaction_of_the_table(self, spark, small):
        with small.transaction(), pytest.raises(TransactionActive):
            small.optimize(spark=spark)


class TestDeltaTable:
    def test_returns_path_and_metrics(self, spark, small):
        builder = DeltaTable.over(spark, small).optimize().where("p >= 0").where("p < 1")
        (row,) = builder.executeCompaction().collect()
        assert row["path"].rstrip("/").endswith(small.location.rpartition("/")[2])
        metrics = row["metrics"]
        assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (1, 6)
        assert metrics["filesRemoved"]["totalFiles"] == 6
        assert metrics["filesAdded"]["min"] == metrics["filesAdded"]["max"]
        assert metrics["zOrderStats"] is None
        assert (metrics["numTableColumns"], metrics["numTableColumnsWithStats"]) == (2, 2)
        assert last(small).operation_parameters["predicate"] == """["('p >= 0)","('p < 1)"]"""


@pytest.mark.parametrize("content", [b"", b"no Parquet"])
def test_what_fails_leaves_nothing(spark, small, content):
    (folder_of(small) / min(data_files(small))).write_bytes(content)
    before, version = data_files(small), small.version
    with pytest.raises((StorageError, PySparkException, Py4JJavaError)):
        small.optimize(spark=spark)
    assert data_files(small) == before
    assert small.version == version
