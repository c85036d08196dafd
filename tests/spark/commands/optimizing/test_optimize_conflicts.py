"""OPTIMIZE beside other commands: it yields, and all of them land."""

import shutil
from itertools import count

import pytest
from pyspark.sql.types import StructType

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, data_files, folder_of, independent, overtake, rows
from tidegate import ConflictError
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.log.paths import decode

_numbers = count(1)
ROWS = [(10, 1), (11, 1), (20, 2), (21, 2)]


@pytest.fixture(params=["plain"])
def small(request, spark, lake):
    """The rows (a, month) = (10, 1), (11, 1), (20, 2), (21, 2), each in a file of its own."""
    table = lake.create_table(
        f"main.beside.t{next(_numbers)}",
        schema=StructType.fromDDL("a int, month int"),
        partition_by=["month"],
        catalog_managed=request.param == "catalog-managed",
    )
    ids = spark.range(4, numPartitions=4)
    table.append(
        ids.selectExpr("int(id div 2 * 10 + id % 2) + 10 AS a", "int(id div 2) + 1 AS month")
    )
    assert len(table.scan().files) == 4
    return table


def beside(lake, table, rival):
    """The table in other hands, where a rival commits once after a transaction has begun."""
    mine = lake.table(table.id)
    waiting = iter([rival])
    overtake(mine, lambda: [each() for each in waiting])
    return mine


def copied(table, file):
    """The same rows in another file, which no commit names yet."""
    path = f"{file.path.removesuffix('.parquet')}-{next(_numbers)}.parquet"
    shutil.copyfile(folder_of(table) / decode(file.path), folder_of(table) / decode(path))
    return with_fields(file, {"path": path})


def operations(table) -> list[str]:
    return [commit.operation for commit in table.history()]


def named(table) -> set[str]:
    return {add["path"] for v in range(table.version + 1) for add in actions(table, v, "add")}


def update(table, spark):
    return table.update({"a": "a + 1"}, "a = 11", spark=spark)


def delete(table, spark):
    return table.delete("a = 11", spark=spark)


def merge(table, spark):
    source = spark.sql("SELECT 11 AS a, 1 AS month").alias("s")
    merged = table.merge(source, "t.a = s.a AND t.month = s.month", alias="t")
    return merged.whenMatchedDelete().execute()


def kinds(*cases):
    """A kind of table by turns: the client does the same for both."""
    return pytest.mark.parametrize(("small", "command"), cases, indirect=["small"])


CATALOG_MANAGED = pytest.mark.parametrize("small", ["catalog-managed"], indirect=True)


class TestOvertaken:
    @kinds(("plain", delete), ("catalog-managed", update), ("plain", merge))
    def test_the_rival_stands_and_the_rest_is_done_again(self, spark, lake, small, command):
        mine = beside(lake, small, lambda: command(small, spark))
        found = mine.optimize(spark=spark)
        after = {delete: ROWS[:1], merge: ROWS[:1], update: [(10, 1), (12, 1)]}[command]
        assert rows(small.read(spark)) == after + ROWS[2:]
        assert operations(small).count(command.__name__.upper()) == 1
        assert found.metrics["numFilesAdded"] in (1, 2), "what was alone is left alone"
        assert len(small.scan("month = 2").files) == 1
        assert len(small.scan("month = 1").files) == 1
        if not small.head().catalog_managed:
            found = sorted((row["a"], row["month"]) for row in independent(small))
            assert found == after + ROWS[2:]
        assert data_files(small) <= named(small), "a file that nobody names"

    def test_by_what_touches_none_of_its_files(self, spark, lake, small):
        more = spark.sql("SELECT 12 AS a, 1 AS month")
        mine = beside(lake, small, lambda: small.append(more))
        (receipt,) = mine.optimize(spark=spark).receipts
        assert receipt.rebased_over == 1
        assert rows(small.read(spark)) == sorted([*ROWS, (12, 1)])
        assert len(small.scan().files) == 3

    @CATALOG_MANAGED
    def test_by_new_columns(self, spark, lake, small):
        def widen():
            with small.transaction() as txn:
                schema = StructType.fromDDL("a int, month int, more int")
                txn.update_metadata(schema=schema)
                txn.commit("ADD COLUMNS")

        mine = beside(lake, small, widen)
        mine.optimize(spark=spark)
        assert [row[:2] for row in rows(small.read(spark))] == ROWS
        assert len(small.scan().files) == 2

    def test_by_another_of_itself(self, spark, lake, small):
        mine = beside(lake, small, lambda: small.optimize("month = 1", spark=spark))
        mine.optimize(spark=spark)
        assert rows(small.read(spark)) == ROWS
        assert len(small.scan().files) == 2
        assert data_files(small) <= named(small)

    def test_by_deletion_vectors(self, spark, lake, create):
        table = create("id bigint", **VECTORS)
        for first in (0, 5):
            table.append(spark.range(first, first + 5).coalesce(1))
        mine = beside(lake, table, lambda: table.delete("id = 3", spark=spark))
        mine.optimize(spark=spark)
        (file,) = table.scan().files
        assert file.deletion_vector is None
        assert rows(table.read(spark)) == [(n,) for n in range(10) if n != 3]

    def test_batches_that_wait_are_planned_anew_too(self, session, lake, create):
        """Their files may have been marked, or removed, by the rival that took one of the first."""
        session.conf.set("spark.databricks.delta.optimize.batchSize", "1b")
        table = create("id bigint, part int", "part", **VECTORS)
        for first in (0, 5, 10, 15):
            part = session.range(first, first + 5).selectExpr("id", f"{first // 10} AS part")
            table.append(part.coalesce(1))

        def rival():
            table.delete("id IN (1, 11)", spark=session)
            table.delete("id BETWEEN 5 AND 9 OR id BETWEEN 15 AND 19", spark=session)
            for first in (20, 30):
                part = session.range(first, first + 2).selectExpr(
                    "id", f"{first // 10 - 2} AS part"
                )
                table.append(part.coalesce(1))

        mine = beside(lake, table, rival)
        found = mine.optimize(spark=session)
        assert len(found.receipts) == 2
        left = {0, 2, 3, 4, 10, 12, 13, 14, 20, 21, 30, 31}
        assert {row[0] for row in rows(table.read(session))} == left
        assert len(table.scan().files) == 2

    def test_again_and_again(self, spark, lake, small):
        def rival():
            with small.transaction() as txn:
                for file in small.scan("month = 1").files:
                    txn.remove([file])
                    txn.add([copied(small, file)])
                txn.commit("UPDATE")

        mine = lake.table(small.id)
        overtake(mine, rival)
        with pytest.raises(ConflictError) as lost:
            mine.optimize("month = 1", spark=spark, retries=2)
        assert "Given up" in lost.value.__notes__[-1]
        assert rows(small.read(spark)) == ROWS
        assert "OPTIMIZE" not in operations(small)
        assert data_files(small) == named(small)


class TestOvertakes:
    """The other command is the one that has to begin anew, which it does by itself."""

    @kinds(("catalog-managed", delete), ("plain", update), ("catalog-managed", merge))
    def test_the_other_lands_on_top(self, spark, lake, small, command):
        mine = beside(lake, small, lambda: small.optimize(spark=spark))
        changed = command(mine, spark)
        assert changed.receipt is not None
        after = {delete: ROWS[:1], merge: ROWS[:1], update: [(10, 1), (12, 1)]}[command]
        assert rows(small.read(spark)) == after + ROWS[2:]
        assert operations(small)[:2] == [command.__name__.upper(), "OPTIMIZE"]
        assert data_files(small) == named(small)

    @CATALOG_MANAGED
    def test_what_changed_rows_is_a_conflict_still(self, spark, lake, small):
        def both():
            small.optimize(spark=spark)
            small.delete("a = 10", spark=spark)

        mine = beside(lake, small, both)
        changed = mine.delete("a = 11", spark=spark)
        assert changed.deleted == 1
        waiting = iter([lambda: small.delete("a = 20", spark=spark)])
        overtake(mine, lambda: [each() for each in waiting])
        with pytest.raises(ConflictError) as lost:
            mine.delete("a = 21", spark=spark)
        assert lost.value.conflict.operation == "DELETE"

    def test_one_that_reads_its_own_rows_says_which_commit_was_first(self, spark, lake, small):
        mine = lake.table(small.id)
        source = small.read(spark).where("a = 11").alias("s")
        small.optimize(spark=spark)
        merged = mine.merge(source, "t.a = s.a", alias="t").whenMatchedDelete()
        with pytest.raises(ConflictError) as lost:
            merged.execute()
        assert lost.value.conflict.operation == "OPTIMIZE"
