"""CLONE: a table of another one's files, or of copies of them."""

import itertools
from pathlib import Path

import pytest

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, data_files, folder_of, rows
from tidegate import TableNotFound
from tidegate.spark import InvalidCommand, StorageError
from tidegate.spark.clone import clone as cloning
from tidegate.spark.clone.deep import deep_files
from tidegate.spark.clone.shallow import is_beside
from tidegate.spark.tables import DeltaTable
from tidegate.spark.tables.plans import OwnReads, own_reads
from tidegate.spark.write.files import writable_layout
from tidegate_protocol.log.paths import is_absolute

_MONTHS = [(10, 1), (11, 1), (20, 2), (21, 2)]
_numbers = itertools.count(1)
MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}


@pytest.fixture
def name():
    return f"main.clones.t{next(_numbers)}"


def kinds(table):
    return {is_absolute(file.path) for file in table.scan().files}


@pytest.mark.parametrize(
    ("file", "vector", "expected"),
    [
        ("p=1/f", "deletion_vector_1.bin", True),
        ("s3://b/t/p=1/f", "s3a://b/t/deletion_vector_1.bin", True),
        ("file:/w/t/f", "/w/t/ab/deletion_vector_1.bin", False),
        ("s3://b/t/p=1/f", "s3://b/clone/deletion_vector_1.bin", False),
        ("s3://b/t/f", "s3://b/t2/deletion_vector_1.bin", False),
        ("s3://b/t/f", "deletion_vector_1.bin", False),
        ("f", "s3://b/t/deletion_vector_1.bin", False),
    ],
)
def test_which_vectors_lie_beside_their_files(file, vector, expected):
    """Others are in the folder of another table, whose vacuum asks for names of files alone."""
    assert is_beside(file, vector) is expected


class TestShallow:
    def test_its_files_are_removed_and_rewritten_and_the_sources_stay(self, spark, months, name):
        before = data_files(months)
        clone = months.clone(name, shallow=True, spark=spark).table
        assert kinds(clone) == {True}
        clone.delete("month = 2", spark=spark)
        clone.update({"a": "a + 1"}, "a = 10", spark=spark)
        clone.optimize(spark=spark)
        assert rows(clone.read(spark)) == [(11, 1), (11, 1)]
        assert kinds(clone) == {False}
        clone.restore(version=0, spark=spark)
        assert rows(clone.read(spark)) == _MONTHS
        assert rows(months.read(spark)) == _MONTHS
        assert data_files(months) == before

    def test_deletion_vectors_stay_where_they_are(self, spark, create, name, source):
        table = create("id bigint, p int", "p", **VECTORS)
        table.append(spark.range(6).selectExpr("id", "int(id % 2) AS p").coalesce(1))
        table.delete("id = 2", spark=spark)
        clone = table.clone(name, shallow=True, spark=spark).table
        marks = {v.storage_type for file in clone.scan().files if (v := file.deletion_vector)}
        assert marks == {"p"}
        clone.delete("id = 4", spark=spark)
        found = [(0, 0), (1, 1), (3, 1), (5, 1)]
        assert rows(clone.read(spark)) == rows(source.read(clone)) == found
        # A vector of its own lies elsewhere than the file that it is of.
        second = clone.clone(f"{name}_2", shallow=True, spark=spark).table
        marks = {v.storage_type for file in second.scan().files if (v := file.deletion_vector)}
        assert marks == {"i"}
        assert rows(second.read(spark)) == rows(source.read(second)) == found

    @pytest.mark.parametrize("properties", [MAPPED, TRACKED], ids=["mapped", "tracked"])
    def test_columns_and_row_ids(self, spark, create, name, properties):
        table = create("id bigint, p int", "p", **properties)
        for start in (0, 4):
            table.append(spark.range(start, start + 4).selectExpr("id", "int(id DIV 4) AS p"))
        table.delete("p = 0", spark=spark)
        clone = table.clone(name, shallow=True, spark=spark).table
        clone.append(spark.sql("SELECT 8L AS id, 0 AS p"))
        assert rows(clone.read(spark)) == [(4, 1), (5, 1), (6, 1), (7, 1), (8, 0)]
        own, others = clone.head().metadata, table.head().metadata
        assert own.schema_string == others.schema_string
        materialized = {name for name in own.configuration if "materialized" in name}
        for each in materialized:
            assert own.configuration[each] != others.configuration[each]
        if properties is TRACKED:
            assert len(materialized) == 2
            ids = [file.base_row_id for file in clone.scan().files]
            assert None not in ids
            assert len(set(ids)) == len(ids)
            assert min(ids) == 0

    def test_its_rows_are_its_own_and_not_the_sources(self, spark, months, name):
        clone = months.clone(name, shallow=True, spark=spark).table
        clone.append(spark.sql("SELECT 30 AS a, 3 AS month"))
        found = clone.read(spark)
        layouts = [writable_layout(table.transaction()) for table in (clone, months)]
        reads = OwnReads(version=1, latest=1, predicates=None)
        assert [own_reads(found, layout) for layout in layouts] == [reads, None]


class TestDeep:
    def test_has_copies_of_all_files(self, spark, create, name, tmp_path_factory, lake):
        table = create("id bigint, p string", "p", **VECTORS)
        df = spark.range(6).selectExpr("id", "concat('a b%/', id % 2) AS p")
        table.append(df.coalesce(1))
        table.delete("id = 2", spark=spark)
        place = f"{table.location}_deep"
        cloned = table.clone(name, location=place, spark=spark)
        clone = cloned.table
        assert cloned.version == 0
        assert kinds(clone) == {False}
        assert len(data_files(clone)) == cloned.metrics["numCopiedFiles"] == 2
        assert cloned.metrics["copiedFilesSize"] == cloned.metrics["sourceTableSize"] > 0
        for path in folder_of(table).rglob("*.parquet"):
            path.unlink()
        assert [row[0] for row in rows(clone.read(spark))] == [0, 1, 3, 4, 5]
        (info,) = actions(clone, 0, "commitInfo")
        assert info["operation"] == "CLONE"
        assert info["operationParameters"] == {"source": table.name, "sourceVersion": "2"}

    def test_leaves_nothing_where_it_fails(self, spark, months, name, lake):
        (first, *_) = data_files(months)
        (folder_of(months) / first).unlink()
        place = f"{months.location}_deep"
        with pytest.raises(StorageError, match="could not be copied"):
            months.clone(name, location=place, spark=spark)
        with pytest.raises(TableNotFound):
            lake.table(name)
        target = months.clone(name, shallow=True, spark=spark).table
        with pytest.raises(StorageError, match="could not be copied"):
            months.clone(name, replace=True, spark=spark)
        assert target.version == 0
        assert data_files(target) == set()
        assert not list(Path(place.removeprefix("file://")).rglob("*.parquet"))

    def test_is_where_the_service_puts_it(self, spark, months, name, lake):
        clone = months.clone(name, spark=spark).table
        empty = lake.create_table(f"{name}_2", schema=months.head().metadata.schema_string)
        assert clone.location == empty.location.removesuffix("_2")
        for path in folder_of(months).rglob("*.parquet"):
            path.unlink()
        assert rows(clone.read(spark)) == _MONTHS


class TestReplace:
    def test_again_takes_only_what_is_new(self, spark, months, name):
        months.alter(spark=spark).set_comment("months")
        clone = months.clone(name, shallow=True, spark=spark).table
        clone.append(spark.sql("SELECT 30 AS a, 3 AS month"))
        clone.alter(spark=spark).set_comment("a clone")
        months.delete("month = 1", spark=spark)
        again = months.clone(
            name, shallow=True, replace=True, properties={"owner": "me"}, spark=spark
        )
        assert (again.table.id, again.version) == (clone.id, 3)
        assert again.metrics["numRemovedFiles"] == 2
        assert not actions(clone, 3, "add")
        assert rows(clone.read(spark)) == [(20, 2), (21, 2)]
        head = clone.head()
        assert (head.metadata.description, head.properties["owner"]) == ("a clone", "me")
        assert "owner" not in months.head().properties

    def test_another_table_of_a_version(self, spark, create, months, name):
        target = create("x string", **{"delta.enableChangeDataFeed": "true"})
        target.append(spark.sql("SELECT 'x' AS x"))
        months.delete("month = 1", spark=spark)
        months.clone(target.name, replace=True, version=1, spark=spark)
        assert rows(target.read(spark)) == _MONTHS
        assert target.partition_columns == ("month",)
        assert "delta.enableChangeDataFeed" not in target.head().properties
        assert kinds(target) == {False}
        # Back into its source: its own files are its own again.
        target.clone(months.name, shallow=True, replace=True, spark=spark)
        again = months.clone(target.name, shallow=True, replace=True, spark=spark)
        assert kinds(target) == {False}
        assert again.metrics["numRemovedFiles"] == 0

    def test_itself_only_where_that_says_nothing(self, spark, months):
        for options in ({"shallow": False}, {"version": 0}, {"properties": {"a": "b"}}):
            with pytest.raises(InvalidCommand, match="with CLONE of itself"):
                months.clone(months.name, replace=True, spark=spark, **{"shallow": True, **options})


class TestBadInput:
    @pytest.mark.parametrize("target", ["/tmp/t", "t", "main.t", "a.b.c.d", "delta.`/a.b`"])
    def test_a_target_that_is_no_name(self, spark, months, target):
        with pytest.raises(InvalidCommand, match=r"expected the target .* catalog.schema.table"):
            DeltaTable.over(spark, months).clone(target, isShallow=True)

    def test_arguments_of_other_types(self, spark, months, name):
        table = DeltaTable.over(spark, months)
        with pytest.raises(ValueError, match="isShallow needs to be a boolean"):
            table.clone(name, "yes")
        with pytest.raises(ValueError, match="All keys and values of properties"):
            table.clone(name, True, properties={"a": 1})
        with pytest.raises(ValueError, match="version needs to be an int"):
            table.cloneAtVersion("1", name)
        with pytest.raises(InvalidCommand, match="cannot be specified by the user"):
            table.clone(name, True, properties={"delta.columnMapping.maxColumnId": "9"})
        with pytest.raises(InvalidCommand, match="'none' to 'name'"):
            table.clone(name, True, properties=MAPPED)

    def test_times_outside_of_the_history(self, spark, months, name):
        table = DeltaTable.over(spark, months)
        for time, error_class in (
            ("2199-01-01", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
            ("1999-01-01", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        ):
            with pytest.raises(InvalidCommand) as refused:
                table.cloneAtTimestamp(time, name, isShallow=True)
            assert refused.value.getCondition() == error_class


class TestSql:
    def test_who_is_too_late_for_a_name_leaves_no_files(
        self, spark, months, name, sql, monkeypatch
    ):
        def beaten(*args, **options):
            copied = deep_files(*args, **options)
            months.clone(name, shallow=True, spark=spark)
            return copied

        monkeypatch.setattr(cloning, "deep_files", beaten)
        place = folder_of(months).with_name(f"{folder_of(months).name}_late")
        text = f"CREATE TABLE IF NOT EXISTS {name} DEEP CLONE {months.name} LOCATION '{place}'"
        assert sql(text).count() == 0
        assert [each for each in place.rglob("*") if each.is_file()] == []

    def test_statements(self, spark, months, name, sql):
        months.delete("month = 1", spark=spark)
        (first,) = sql(
            f"CREATE TABLE {name} SHALLOW CLONE {months.name} VERSION AS OF 1 "
            "TBLPROPERTIES ('owner' = 'me')"
        ).collect()
        assert (first.source_num_of_files, first.num_copied_files) == (2, 0)
        assert sql(f"CREATE TABLE IF NOT EXISTS {name} DEEP CLONE {months.name}").count() == 0
        place = f"{months.location}_of_sql"
        (deep,) = sql(
            f"CREATE OR REPLACE TABLE {name}_deep DEEP CLONE delta.`{months.location}` "
            f"LOCATION '{place}'",
            user_metadata="why",
        ).collect()
        assert deep.num_copied_files == 1
        (last,) = sql(f"REPLACE TABLE {name} DEEP CLONE {name}_deep").collect()
        assert (last.num_removed_files, last.num_copied_files) == (2, 1)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("CREATE TABLE a.b.c CLONE d.e.f", "SHALLOW CLONE or DEEP CLONE"),
            ("CREATE TABLE a.b.c SHALLOW CLONE", "a name"),
            ("CREATE TABLE a.b.c DEEP CLONE d.e.f VERSION AS OF x", "a whole number"),
            ("REPLACE TABLE a.b.c SHALLOW CLONE d.e.f g", "the end of the statement"),
        ],
    )
    def test_others_are_refused(self, sql, text, words):
        with pytest.raises(InvalidCommand, match=f"expected {words}"):
            sql(text)
