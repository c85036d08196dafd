"""What commands leave: rows, files, change data, and nothing where they fail."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql.types import (
    DateType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.spark.tables import actions, data_files, folder_of, rows
from tidegate import InvalidProposal
from tidegate.spark import InvalidCommand, InvalidRows

_FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def fed(spark, create, copied):
    """(id, name) = (1, a), (2, b), (3, c) in one file, with change data."""

    def make():
        table = create("id int, name string", **_FEED)
        query = "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c') AS t(id, name)"
        table.append(spark.sql(query).coalesce(1))
        return table

    return copied(make)


def changes(spark, table, version):
    """What the change data files of a commit say, as Spark reads them."""
    files = [str(folder_of(table) / cdc["path"]) for cdc in actions(table, version, "cdc")]
    assert all("/_change_data/" in path for path in files)
    found = spark.read.parquet(*files).select("id", "name", "_change_type")
    return sorted(tuple(row) for row in found.collect())


def test_legacy_stores_what_a_cast_gives(session, months):
    session.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    months.update({"a": "a + 4294967296L"}, "a = 10", spark=session)
    months.update({"a": "'ten'"}, "a = 11", spark=session)
    assert rows(months.read(session, "month = 1")) == [(10, 1), (None, 1)]


def test_a_struct_by_chance_is_set_as_a_whole(spark, create):
    """What is said of its fields makes no other type of it."""
    table = create("id bigint, s struct<a: int COMMENT 'one', b: int>")
    df = spark.range(200).selectExpr("id", "named_struct('a', 1, 'b', 2) s")
    table.append(df.coalesce(1))
    table.update({"s": "CASE WHEN rand(7) < 0.5 THEN s END"}, spark=spark)
    assert set(rows(table.read(spark).select("s"))) == {((1, 2),), (None,)}


def test_any_thread_has_the_session(spark, months):
    """Spark knows of none in a thread that did not make it."""
    with ThreadPoolExecutor(1) as pool:
        changed = pool.submit(lambda: months.update({"a": "a + 100"}, "a = 10")).result()
        assert changed.updated == 1
        assert pool.submit(lambda: months.delete("a = 110")).result().deleted == 1
    assert rows(months.read(spark, "month = 1")) == [(11, 1)]


class TestFiles:
    def test_a_partition_goes_by_the_log_alone(self, spark, months):
        before = data_files(months)
        changed = months.delete("month = 1", spark=spark)
        assert changed.deleted == 2
        assert not actions(months, 2, "add")
        assert data_files(months) == before
        assert rows(months.read(spark)) == [(20, 2), (21, 2)]

    def test_a_file_goes_by_its_statistics(self, spark, months):
        for file in data_files(months):
            if "month=1" in file:
                # Whoever reads it fails.
                (folder_of(months) / file).write_bytes(b"")
        assert months.delete("a < 15", spark=spark).deleted == 2
        assert rows(months.read(spark)) == [(20, 2), (21, 2)]

    def test_nothing_to_change_is_no_commit(self, spark, months):
        assert months.delete("a = 99", spark=spark).receipt is None
        assert months.update({"a": "0"}, "a = 99", spark=spark).receipt is None
        source = spark.sql("SELECT 99 AS a").alias("s")
        merged = months.merge(source, "t.a = s.a", alias="t").whenMatchedDelete().execute()
        assert merged.receipt is None
        assert months.version == 1


class TestChangeData:
    @pytest.mark.parametrize("command", ["update", "merge"])
    def test_a_value_that_does_not_fit_leaves_nothing(self, spark, fed, command):
        source = spark.sql("SELECT 1 AS id").alias("s")
        merged = fed.merge(source, "t.id = s.id", alias="t")
        run = {
            "update": lambda: fed.update({"id": "name"}, spark=spark),
            "merge": merged.whenMatchedUpdate(set={"id": "t.name"}).execute,
        }
        before = data_files(fed)
        with pytest.raises(InvalidRows, match="CAST_INVALID_INPUT"):
            run[command]()
        assert data_files(fed) == before

    @pytest.mark.parametrize("command", ["update", "merge"])
    def test_chance_and_time_are_those_of_the_rows(self, spark, fed, command):
        value = "concat(uuid(), cast(current_timestamp() AS string))"
        if command == "update":
            fed.update({"name": value}, "id < 3", spark=spark)
        else:
            source = spark.sql("SELECT * FROM VALUES (1), (2), (9) AS s(id)")
            merged = fed.merge(source.alias("s"), "t.id = s.id", alias="t")
            merged = merged.whenMatchedUpdate(condition="t.id = 1", set={"name": value})
            merged = merged.whenMatchedUpdate(set={"name": f"concat('x', {value})"})
            merged.whenNotMatchedInsert(values={"id": "s.id", "name": value}).execute()
        made = {row for row in rows(fed.read(spark)) if row != (3, "c")}
        told = {row[:2] for row in changes(spark, fed, 2) if row[2] != "update_preimage"}
        assert told == made
        assert len(made) == (2 if command == "update" else 3)

    def test_of_a_row_that_several_of_the_source_delete_is_told_once(self, spark, fed):
        source = spark.sql("SELECT * FROM VALUES (1), (1) AS s(id)").alias("s")
        changed = fed.merge(source, "t.id = s.id", alias="t").whenMatchedDelete().execute()
        assert changed.deleted == 1
        assert changes(spark, fed, 2) == [(1, "a", "delete")]

    def test_of_a_merge_that_only_copies_rows_is_none(self, spark, fed):
        source = spark.sql("SELECT 1 AS id, 'x' AS name").alias("s")
        merged = fed.merge(source, "t.id = s.id", alias="t").whenMatchedUpdateAll("t.name = 'b'")
        changed = merged.whenNotMatchedInsertAll().execute()
        assert changed.rows == 0
        found = fed.changes(spark, from_version=1).select("_commit_version", "_change_type")
        assert rows(found) == [(1, "insert")] * 3


class TestRules:
    def test_a_row_that_breaks_a_constraint_leaves_nothing(self, spark, create):
        table = create("a int", **{"delta.constraints.small": "a < 10"})
        table.append(spark.range(3).selectExpr("cast(id as int) AS a"))
        before = data_files(table)
        with pytest.raises(InvalidRows, match="small"):
            table.update({"a": "a + 8"}, spark=spark)
        assert table.version == 1
        assert data_files(table) == before

    def test_generated_columns_of_other_rows_stay(self, spark, lake):
        fields = [
            StructField("a", IntegerType()),
            StructField("ts", TimestampType()),
            StructField("day", DateType(), True, {"delta.generationExpression": "DATE(ts)"}),
        ]
        table = lake.create_table("main.test.days", schema=StructType(fields))
        two = "SELECT a, timestamp_seconds(a * 36000) AS ts FROM VALUES (1), (2) AS t(a)"
        table.append(spark.sql(two).coalesce(1))
        source = spark.sql("SELECT 1 AS a").alias("s")
        merge = table.merge(source, "t.a = s.a", alias="t").whenMatchedUpdate(set={"a": "5"})
        before = rows(table.read(spark))
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
        try:
            # As in Delta: in this zone the second row's is the day after.
            with pytest.raises(InvalidRows, match="Generated Column"):
                table.update({"a": "5"}, "a = 1", spark=spark)
            with pytest.raises(InvalidRows, match="Generated Column"):
                merge.execute()
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
        assert rows(table.read(spark)) == before

    def test_an_empty_text_of_a_generated_partition_column_is_null(self, spark, lake):
        fields = [
            StructField("a", IntegerType()),
            StructField("text", StringType()),
            StructField("p", StringType(), True, {"delta.generationExpression": "lower(text)"}),
        ]
        table = lake.create_table("main.test.texts", schema=StructType(fields), partition_by=["p"])
        table.append(spark.sql("SELECT a, '' AS text FROM VALUES (1), (2) AS t(a)").coalesce(1))
        table.delete("a = 2", spark=spark)
        table.update({"a": "5"}, spark=spark)
        assert rows(table.read(spark)) == [(5, "", None)]

    def test_an_append_only_table_keeps_its_rows(self, spark, create):
        table = create("a int", **{"delta.appendOnly": "true"})
        table.append(spark.sql("SELECT 1 AS a"))
        with pytest.raises(InvalidProposal, match="append-only"):
            table.delete(spark=spark)
        source = spark.sql("SELECT 2 AS a").alias("s")
        table.merge(source, "t.a = s.a", alias="t").whenNotMatchedInsertAll().execute()
        assert rows(table.read(spark)) == [(1,), (2,)]


class TestRefusals:
    """Before any job: none of Spark's runs."""

    @pytest.fixture(autouse=True)
    def _no_job(self, spark, months):
        spark.sparkContext.setJobGroup("refusal", "")
        yield
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("refusal")
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)

    @pytest.mark.parametrize(
        ("where", "error_class"),
        [
            ("b = 1", "UNRESOLVED_COLUMN"),
            ("a", "FILTER_NOT_BOOLEAN"),
            ("max(a) = 1", "INVALID_WHERE_CONDITION"),
            ("a = = 1", "PARSE_SYNTAX_ERROR"),
            ("a = 10 AND -- month = 1", "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_conditions(self, spark, months, where, error_class):
        for command in (
            lambda: months.delete(where, spark=spark),
            lambda: months.update({"a": "1"}, where, spark=spark),
        ):
            with pytest.raises(InvalidCommand) as refusal:
                command()
            assert error_class in refusal.value.getCondition()

    def test_a_merge_without_clauses(self, spark, months):
        source = spark.range(1).alias("s")
        with pytest.raises(InvalidCommand) as refusal:
            months.merge(source, "t.a = s.id", alias="t").execute()
        assert refusal.value.getCondition() == "DELTA_MERGE_MISSING_WHEN"

    @pytest.mark.parametrize("kind", ["Matched", "NotMatchedBySource"])
    def test_a_clause_after_one_without_a_condition(self, spark, months, kind):
        builder = months.merge(spark.range(1).alias("s"), "t.a = s.id", alias="t")
        for _ in range(2):
            builder = getattr(builder, f"when{kind}Delete")()
        with pytest.raises(InvalidCommand, match="NON_LAST"):
            builder.execute()
