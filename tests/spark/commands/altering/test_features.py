"""Commands on tables with features that change what is in their files."""

from itertools import count

import pytest

from tests.spark.reading.vectors import VECTORS, vector_of
from tests.spark.reading.vectors import delete as put_vector
from tests.spark.tables import actions, folder_of, rows
from tidegate.spark import InvalidCommand, UnsupportedTable

_numbers = count(1)


class TestDeletionVectors:
    @pytest.fixture
    def marked(self, spark, create, copied):
        """Of the rows 0 to 9 in one file, 0 and 7 are deleted by a vector."""

        def make():
            table = create("id bigint", **VECTORS)
            table.append(spark.range(10).coalesce(1))
            (file,) = table.scan().files
            put_vector(table, file, vector_of(table, [0, 7]))
            return table

        return copied(make)

    def test_they_match_nothing(self, spark, marked):
        source = spark.sql("SELECT * FROM VALUES (7L), (8L) AS s(id)").alias("s")
        merged = marked.merge(source, "t.id = s.id", alias="t").whenMatchedDelete()
        changed = merged.whenNotMatchedInsertAll().execute()
        assert (changed.deleted, changed.inserted) == (1, 1)
        assert rows(marked.read(spark)) == [(n,) for n in (1, 2, 3, 4, 5, 6, 7, 9)]

    def test_they_are_not_counted(self, spark, marked):
        assert marked.delete(spark=spark).deleted == 8
        assert marked.delete(spark=spark).receipt is None


def test_mapped_columns(spark, create):
    properties = {"delta.columnMapping.mode": "id", "delta.enableChangeDataFeed": "true"}
    table = create("a int, p string, s struct<x: int>", "p", **properties)
    values = "VALUES (1, 'u'), (2, 'u'), (3, 'v')"
    table.append(spark.sql(f"SELECT a, p, named_struct('x', a) AS s FROM {values} AS t(a, p)"))
    assert table.delete("p = 'v'", spark=spark).deleted == 1
    table.update({"s.x": "s.x + 10"}, "a = 1", spark=spark)
    kinds = [
        spark.read.parquet(str(folder_of(table) / cdc["path"])).columns
        for cdc in actions(table, table.version, "cdc")
    ]
    assert all("_change_type" in columns and "a" not in columns for columns in kinds)
    source = spark.sql("SELECT 2 AS a, 'w' AS p, named_struct('x', 0) AS s, 5 AS more").alias("s")
    merged = table.merge(source, "t.a = s.a", alias="t").withSchemaEvolution()
    assert merged.whenMatchedUpdateAll().execute().updated == 1
    found = table.read(spark).select("a", "p", "s.x", "more")
    assert rows(found) == [(1, "u", 11, None), (2, "w", 0, 5)]


class TestNumbers:
    @pytest.fixture
    def create_numbered(self, lake):
        def create(*, explicit):
            number = {
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": explicit,
            }
            fields = [
                {"name": "id", "type": "long", "nullable": True, "metadata": number},
                {"name": "v", "type": "integer", "nullable": True, "metadata": {}},
            ]
            schema = {"type": "struct", "fields": fields}
            return lake.create_table(f"main.numbers.t{next(_numbers)}", schema=schema)

        return create

    @pytest.fixture
    def numbered(self, spark, create_numbered):
        table = create_numbered(explicit=False)
        table.append(spark.sql("SELECT * FROM VALUES (10), (20) AS t(v)").coalesce(1))
        return table

    def test_stay_where_rows_change(self, spark, numbered):
        before = {row["v"]: row["id"] for row in numbered.read(spark).collect()}
        numbered.update({"v": "v + 1"}, "v = 10", spark=spark)
        after = {row["v"]: row["id"] for row in numbered.read(spark).collect()}
        assert after == {11: before[10], 20: before[20]}

    def test_are_not_set(self, spark, numbered):
        with pytest.raises(InvalidCommand) as refusal:
            numbered.update({"id": "1"}, spark=spark)
        assert refusal.value.getCondition() == "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"

    def test_that_are_null_stay_so_in_rows_that_a_merge_copies(self, spark, create_numbered):
        table = create_numbered(explicit=True)
        table.append(spark.sql("SELECT * FROM VALUES (NULL, 10), (7L, 20) AS t(id, v)").coalesce(1))
        source = spark.sql("SELECT * FROM VALUES (20), (30) AS s(v)").alias("s")
        merged = table.merge(source, "t.v = s.v", alias="t").whenMatchedUpdate(set={"v": "21"})
        merged.whenNotMatchedInsert(values={"v": "s.v"}).execute()
        found = {row["v"]: row["id"] for row in table.read(spark).collect()}
        assert found.pop(30) is not None
        assert found == {10: None, 21: 7}

    def test_are_given_to_what_a_merge_inserts(self, spark, numbered):
        before = {row["v"]: row["id"] for row in numbered.read(spark).collect()}
        source = spark.sql("SELECT * FROM VALUES (10), (5), (6) AS s(v)").alias("s")
        merged = numbered.merge(source, "t.v = s.v", alias="t")
        merged = merged.whenMatchedUpdate(set={"v": "t.v + 1"})
        merged.whenNotMatchedInsert(values={"v": "s.v"}).execute()
        after = {row["v"]: row["id"] for row in numbered.read(spark).collect()}
        assert (after[11], after[20]) == (before[10], before[20])
        new = {after[5], after[6]}
        assert len(new) == 2
        assert min(new) > max(before.values())
        numbered.append(spark.sql("SELECT 7 AS v"))
        (last,) = numbered.read(spark).where("v = 7").collect()
        assert last["id"] > max(new)

    def test_are_not_given_twice_to_rows_and_change_data(self, spark, numbered):
        with numbered.transaction() as txn:
            txn.update_metadata(set_properties={"delta.enableChangeDataFeed": "true"})
            txn.commit("SET TBLPROPERTIES")
        source = spark.sql("SELECT 5 AS v").alias("s")
        merged = numbered.merge(source, "t.v = s.v", alias="t")
        with pytest.raises(UnsupportedTable, match="identity"):
            merged.whenNotMatchedInsert(values={"v": "s.v"}).execute()
