"""RESTORE: the table as an earlier version had it."""

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, data_files, folder_of, independent, overtake, rows
from tidegate import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    InvalidProposal,
    InvalidRequest,
    MetadataChangedException,
    VersionNotFound,
)
from tidegate.spark import InvalidCommand
from tidegate.spark.commands.restore import _with_marks
from tidegate.spark.read.times import milliseconds_of, shown
from tidegate.spark.tables import DeltaTable
from tidegate_protocol.features.computed_columns import identity
from tidegate_protocol.schema.table_schema import parse_schema

_COLUMNS = [
    "table_size_after_restore",
    "num_of_files_after_restore",
    "num_removed_files",
    "num_restored_files",
    "removed_files_size",
    "restored_files_size",
]
_MARKS = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    "delta.identity.allowExplicitInsert": False,
}
_NUMBERED = StructType(
    [StructField("id", LongType(), True, _MARKS), StructField("v", StringType())]
)


@pytest.fixture
def changed(spark, months, copied):
    """The months, of which one lost a row (version 2) and to which another one came (version 3)."""

    def make():
        months.delete("a = 10", spark=spark)
        months.append(spark.sql("SELECT 30 AS a, 3 AS month"))
        return months

    return copied(make)


class TestRows:
    @pytest.mark.parametrize("goes_on", [False, True])
    def test_of_before_row_ids_began_anew_get_others(self, spark, create, goes_on):
        """Ids that were given out once more would be two rows'."""
        table = create("a int", **{"delta.enableRowTracking": "true"})
        for first in (0, 10):
            table.append(spark.range(first, first + 10).selectExpr("int(id) AS a").coalesce(1))
        then = table.version
        table.alter(spark=spark).drop_feature("rowTracking")
        table.delete("a < 10" if goes_on else None, spark=spark)
        if goes_on:
            table.alter(spark=spark).set_properties({"delta.enableRowTracking": "true"})
        table.restore(version=then, spark=spark)
        ids = [file.base_row_id for file in table.scan().files]
        assert len({row for base in ids for row in range(base, base + 10)}) == 20
        assert table.read(spark).count() == 20

    def test_so_do_those_of_a_version_that_showed_no_row_ids(self, spark, create):
        """Nothing says then whether the feature was dropped since."""
        table = create("a int", **{"delta.feature.rowTracking": "supported"})
        for first in (0, 10):
            table.append(spark.range(first, first + 10).selectExpr("int(id) AS a").coalesce(1))
        then = table.version
        table.alter(spark=spark).drop_feature("rowTracking")
        table.delete("a < 10", spark=spark)
        table.alter(spark=spark).set_properties({"delta.enableRowTracking": "true"})
        table.restore(version=then, spark=spark)
        table.alter(spark=spark).set_properties({"delta.enableRowTracking": "true"})
        ids = [file.base_row_id for file in table.scan().files]
        assert len({row for base in ids for row in range(base, base + 10)}) == 20

    def test_by_a_timestamp(self, spark, changed):
        instant = changed.as_of(2).timestamp
        assert changed.restore(timestamp=instant, spark=spark).version == 2
        assert rows(changed.read(spark)) == [(11, 1), (20, 2), (21, 2)]
        parameters = changed.history(limit=1)[0].operation_parameters
        assert parameters["version"] is None
        session_text = parameters["timestamp"]
        changed.append(spark.sql("SELECT 40 AS a, 4 AS month"))
        # What the history shows is what it was restored to.
        assert changed.restore(timestamp=session_text, spark=spark).version == 2

    def test_the_history_and_the_metrics_are_deltas(self, spark, changed):
        restored = changed.restore(version=1, spark=spark, user_metadata="undo")
        assert (restored.version, restored.receipt.version) == (1, 4)
        assert len(independent(changed)) == 4
        before, after = changed.scan(version=1).files, changed.scan().files
        assert {file.path for file in before} == {file.path for file in after}
        size = sum(file.size for file in changed.scan().files)
        assert restored.metrics["tableSizeAfterRestore"] == size
        assert restored.metrics["numOfFilesAfterRestore"] == len(changed.scan().files)
        assert restored.metrics["numRestoredFiles"] == 1
        assert restored.metrics["numRemovedFiles"] == 2
        commit = changed.history(limit=1)[0]
        assert commit.operation == "RESTORE"
        assert commit.operation_parameters == {"version": "1", "timestamp": None}
        assert commit.operation_metrics == {k: str(v) for k, v in restored.metrics.items()}
        assert commit.user_metadata == "undo"
        assert all(add["dataChange"] for add in actions(changed, 4, "add"))

    def test_that_are_marked_again(self, spark, create):
        table = create("id bigint", **VECTORS)
        table.append(spark.range(10).coalesce(1))
        table.delete("id < 3", spark=spark)
        table.delete("id < 6", spark=spark)
        table.restore(version=2, spark=spark)
        (file,) = table.scan().files
        assert file.deletion_vector.cardinality == 3
        assert rows(table.read(spark)) == [(number,) for number in range(3, 10)]
        table.restore(version=1, spark=spark)
        assert table.read(spark).count() == 10


@pytest.mark.parametrize(
    ("instant", "zone", "text"),
    [
        (1_774_746_000_000, "UTC", "2026-03-29 01:00:00.0"),
        (1_774_745_999_990, "Europe/Berlin", "2026-03-29 01:59:59.99"),
        (1_774_746_000_001, "Europe/Berlin", "2026-03-29 03:00:00.001"),
        (-1, "UTC", "1969-12-31 23:59:59.999"),
    ],
)
def test_instants_are_shown_in_the_zone_of_the_session(session, instant, zone, text):
    session.conf.set("spark.sql.session.timeZone", zone)
    assert shown(instant, session) == text
    assert milliseconds_of(text, session) == instant


class TestTheTable:
    def test_has_the_columns_properties_and_partitions_of_then(self, spark, create):
        table = create("a int", owner="ann")
        table.append(spark.sql("SELECT 1 AS a"))
        table.replace(spark.sql("SELECT 2 AS b, 'x' AS p"), partition_by=["p"], comment="other")
        table.restore(version=1, spark=spark)
        head = table.head()
        assert [field.name for field in head.schema.fields] == ["a"]
        assert head.partition_columns == ()
        assert head.properties == {"owner": "ann"}
        assert head.metadata.description is None
        assert rows(table.read(spark)) == [(1,)]
        table.restore(version=2, spark=spark)
        assert table.partition_columns == ("p",)
        assert rows(table.read(spark)) == [(2, "x")]

    def test_does_not_give_numbers_of_a_column_that_was_renamed_out_again(self, spark, lake):
        table = lake.create_table(
            "main.test.restored_renamed",
            schema=_NUMBERED,
            properties={"delta.columnMapping.mode": "name"},
        )
        table.append(spark.sql("SELECT 'a' AS v"))
        table.alter(spark=spark).rename_column("id", "number")
        table.append(spark.sql("SELECT 'b' AS v"))
        table.restore(version=1, spark=spark)
        table.append(spark.sql("SELECT 'c' AS v"))
        assert table.read(spark).columns == ["id", "v"]
        assert rows(table.read(spark)) == [(1, "a"), (3, "c")]

    @pytest.mark.parametrize(
        ("mark", "step", "since", "mark_since", "restored"),
        [
            (100, 1, -1, -50, 100),
            (100, 1, 1, 150, 150),
            (91, 10, 1, 102, 111),
            (None, 5, 1, 2, 6),
            (None, 1, -1, -3, None),
            (-9, -5, -1, -10, -14),
        ],
    )
    def test_goes_on_with_numbers_by_its_own_steps(self, mark, step, since, mark_since, restored):
        then, now = numbered(step, mark), numbered(since, mark_since)
        (field,) = parse_schema(_with_marks(then, now)).fields
        assert identity(field).mark == restored

    def test_has_new_numbers_behind_a_column_that_counted_down(self, session, lake):
        session.conf.set("spark.tidegate.url", lake.url)
        spark = session
        table = lake.create_table("main.test.restored_down", schema=_NUMBERED)
        table.append(spark.sql("SELECT 'a' AS v UNION ALL SELECT 'b'").coalesce(1))
        down = {**_MARKS, "delta.identity.step": -1}
        fields = StructType([StructField("id", LongType(), True, down), _NUMBERED["v"]])
        DeltaTable.replace(spark).tableName(table.name).addColumns(fields).execute()
        table.append(spark.sql("SELECT 'c' AS v UNION ALL SELECT 'd'").coalesce(1))
        assert sorted(number for number, _ in rows(table.read(spark))) == [0, 1]
        table.restore(version=1, spark=spark)
        table.append(spark.sql("SELECT 'e' AS v"))
        assert sorted(number for number, _ in rows(table.read(spark))) == [1, 2, 3]


def numbered(step, mark):
    """The schema of an identity column from 1."""
    marks = {**_MARKS, "delta.identity.step": step}
    if mark is not None:
        marks["delta.identity.highWaterMark"] = mark
    return StructType([StructField("id", LongType(), True, marks)]).json()


class TestRefusals:
    def test_of_vectors_in_a_version_that_has_them_switched_off(self, spark, create):
        table = create("id bigint", **VECTORS)
        table.append(spark.range(10).coalesce(1))
        table.delete("id < 3", spark=spark)
        table.alter(spark=spark).set_properties({"delta.enableDeletionVectors": "false"})
        then = table.version
        table.delete("id < 5", spark=spark)
        with pytest.raises(InvalidProposal, match="deletion vector"):
            table.restore(version=then, spark=spark)

    def test_of_columns_that_were_renamed_under_the_change_data_feed(self, spark, create):
        mapped = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
        table = create("id bigint", **mapped)
        table.append(spark.range(10).coalesce(1))
        table.alter(spark=spark).rename_column("id", "number")
        table.append(spark.range(3).toDF("number"))
        with pytest.raises(InvalidProposal, match="change data"):
            table.restore(version=1, spark=spark)

    def test_of_row_ids_that_a_live_file_has_lost(self, spark, create):
        table = create("id bigint", **{"delta.enableRowTracking": "true"})
        table.append(spark.range(10).coalesce(1))
        table.alter(spark=spark).drop_feature("rowTracking")
        with pytest.raises(InvalidProposal, match="baseRowId"):
            table.restore(version=1, spark=spark)
        table.alter(spark=spark).set_properties({"delta.enableRowTracking": "true"})
        table.restore(version=1, spark=spark)

    def test_of_files_that_were_deleted(self, session, changed):
        (gone,) = [
            file
            for file in changed.scan(version=1).files
            if file.path not in {other.path for other in changed.scan().files}
        ]
        (folder_of(changed) / gone.path).unlink()
        with pytest.raises(InvalidRequest, match="not all files of version 1") as refusal:
            changed.restore(version=1, spark=session)
        assert gone.path in str(refusal.value)
        assert changed.version == 3
        session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        changed.restore(version=1, spark=session)
        assert gone.path in {file.path for file in changed.scan().files}

    def test_of_versions_and_times_that_are_not_there(self, spark, changed):
        with pytest.raises(VersionNotFound):
            changed.restore(version=7, spark=spark)
        for timestamp, error_class in [
            ("2199-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
            ("+12345-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
            ("1999-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
            ("1969-07-20", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
            ("yesterday-ish", "DELTA_TIMESTAMP_INVALID"),
        ]:
            with pytest.raises(InvalidCommand) as refusal:
                changed.restore(timestamp=timestamp, spark=spark)
            assert refusal.value.getCondition() == error_class
        assert changed.version == 3

    @pytest.mark.parametrize("given", [{}, {"version": 1, "timestamp": "2024-01-01"}])
    def test_of_both_or_none(self, spark, changed, given):
        with pytest.raises(ValueError, match="a version or a timestamp"):
            changed.restore(spark=spark, **given)

    def test_of_append_only_tables(self, spark, create):
        table = create("id bigint", **{"delta.appendOnly": "true"})
        table.append(spark.range(3))
        with pytest.raises(InvalidProposal, match="append-only"):
            table.restore(version=0, spark=spark)


class TestConflicts:
    @pytest.mark.parametrize(
        ("rival", "error"),
        [
            (lambda t, s: t.append(s.sql("SELECT 7 AS a, 7 AS month")), ConcurrentAppendException),
            (lambda t, s: t.delete("month = 3", spark=s), ConcurrentDeleteReadException),
            (lambda t, s: t.replace(s.sql("SELECT 1 AS x")), MetadataChangedException),
        ],
    )
    def test_with_everything_that_others_change(self, spark, lake, changed, rival, error):
        same, mine = lake.table(changed.id), lake.table(changed.id)
        overtake(mine, lambda: rival(same, spark))
        with pytest.raises(error):
            mine.restore(version=1, spark=spark)
        assert changed.version == 4

    def test_again_where_that_is_asked_for(self, spark, lake, changed):
        same, mine = lake.table(changed.id), lake.table(changed.id)
        rivals = iter([1])

        def rival():
            for _ in rivals:
                same.append(spark.sql("SELECT 7 AS a, 7 AS month"))

        overtake(mine, rival)
        assert mine.restore(version=1, spark=spark, retries=1).receipt.version == 5
        assert rows(changed.read(spark)) == [(10, 1), (11, 1), (20, 2), (21, 2)]


class TestDeltaTable:
    def test_shows_the_metrics_as_delta_does(self, spark, changed):
        files = data_files(changed)
        found = DeltaTable.over(spark, changed).restoreToVersion(1)
        assert found.columns == _COLUMNS
        assert found.collect()[0]["num_restored_files"] == 1
        assert data_files(changed) == files
        timestamp = "2999-01-01 00:00:00"
        with pytest.raises(InvalidCommand, match="DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"):
            DeltaTable.over(spark, changed).restoreToTimestamp(timestamp)

    def test_checks_types_as_delta_does(self, spark, changed):
        table = DeltaTable.over(spark, changed)
        with pytest.raises(ValueError, match="version needs to be an int"):
            table.restoreToVersion("1")
        with pytest.raises(ValueError, match="timestamp needs to be a string"):
            table.restoreToTimestamp(1)
