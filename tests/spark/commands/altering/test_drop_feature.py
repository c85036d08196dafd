"""ALTER TABLE DROP FEATURE, where files use the feature."""

import pyarrow.parquet as pq
import pytest

from tests.spark.commands.changing.test_row_ids import ids
from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, data_files, folder_of, independent, overtake, rows
from tidegate import ConflictError, MetadataChangedException
from tidegate.spark import InvalidCommand
from tidegate.wire.exchange import Request
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.log.paths import decode

TRACKED = {"delta.enableRowTracking": "true"}
WIDENED = {"delta.enableTypeWidening": "true"}
SET, UNSET, DROP = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "DROP FEATURE"
UNBACKFILL = "ROW TRACKING UNBACKFILL"
OFF = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}


class Died(Exception):
    """A client that ends between two steps."""


def features(table) -> frozenset[str]:
    return implied_features(table.head().protocol)


def operations(table, first: int) -> list[str]:
    return [commit.operation for commit in table.history() if commit.version >= first][::-1]


@pytest.fixture
def marked(spark, create, copied):
    """The rows 0 to 8 but 1 in three files; 1 is deleted by a vector."""

    def make():
        table = create("a int", **VECTORS)
        for first in (0, 3, 6):
            table.append(spark.range(first, first + 3).selectExpr("int(id) AS a").coalesce(1))
        table.delete("a = 1", spark=spark)
        return table

    return copied(make)


@pytest.fixture
def tracked(session, create, copied):
    """The same rows with ids, of which an UPDATE has put some into columns of files. A commit of a
    session takes ids of two files."""
    session.conf.set("spark.databricks.delta.backfill.maxNumFiles", "2")

    def make():
        table = create("a int, b int", **TRACKED)
        for first in (0, 3, 6):
            table.append(session.range(first, first + 3).selectExpr("int(id) AS a", "0 AS b"))
        table.delete("a = 1", spark=session)
        table.update({"b": "1"}, "a = 4", spark=session)
        return table

    return copied(make)


@pytest.fixture
def widened(spark, create, copied):
    """Three rows in two files, the older of which has narrower types."""

    def make():
        table = create("a int, s struct<l: array<tinyint>, f: float>, p int", "p", **WIDENED)
        row = "SELECT {0} AS a, named_struct('l', array(1), 'f', 1.5f) AS s, 1 AS p"
        table.append(spark.sql(f"{row.format(1)} UNION ALL {row.format(2)}").coalesce(1))
        alter = table.alter(spark=spark)
        for name in ("a", "p"):
            alter.change_column(name, type="BIGINT")
        alter.change_column("s.l.element", type="INT")
        alter.change_column("s.f", type="DOUBLE")
        table.append(spark.sql(row.format(3)))
        return table

    return copied(make)


class TestDeletionVectors:
    def test_are_purged_first(self, spark, marked):
        marked.alter(spark=spark).drop_feature("deletionVectors")
        assert operations(marked, 5) == [UNSET, "REORG", DROP]
        assert not any(file.deletion_vector for file in marked.scan().files)
        assert "deletionVectors" not in features(marked)
        assert "checkpointProtection" in features(marked)
        left = [{"a": a} for a in (0, *range(2, 9))]
        assert sorted(independent(marked), key=lambda row: row["a"]) == left

    @pytest.mark.parametrize("steps", range(1, 4))
    def test_goes_on_where_a_client_died(self, spark, lake, marked, steps):
        die_after(steps, lake.table(marked.id), spark, "deletionVectors")
        marked.delete("a = 2", spark=spark)
        marked.alter(spark=spark).drop_feature("deletionVectors")
        assert rows(marked.read(spark)) == [(a,) for a in (0, *range(3, 9))]
        found = operations(marked, 5)
        assert (found.count(UNSET), found.count(DROP)) == (1, 1)


def die_after(steps: int, table, spark, feature: str) -> None:
    """Begin to drop the feature, and end before so many transactions and one more are begun."""
    begun = 0

    def count() -> None:
        nonlocal begun
        begun += 1
        if begun > steps:
            raise Died

    overtake(table, count)
    with pytest.raises(Died):
        table.alter(spark=spark).drop_feature(feature)


class TestRowTracking:
    def test_takes_the_ids_away(self, session, tracked):
        first = tracked.version + 1
        tracked.alter(spark=session).drop_feature("rowTracking")
        found = operations(tracked, first)
        assert (found[0], set(found[1:-1]), found[-1]) == (SET, {UNBACKFILL}, DROP)
        assert {(f.base_row_id, f.default_row_commit_version) for f in tracked.scan().files} == {
            (None, None)
        }
        assert dict(tracked.head().properties) == {}
        assert not features(tracked) & {"rowTracking", "checkpointProtection"}
        (domain,) = actions(tracked, tracked.version, "domainMetadata")
        assert (domain["domain"], domain["removed"]) == ("delta.rowTracking", True)

    @pytest.mark.parametrize("steps", range(2, 5))
    def test_goes_on_where_a_client_died(self, session, lake, tracked, steps):
        first = tracked.version + 1
        die_after(steps, lake.table(tracked.id), session, "rowTracking")
        tracked.append(session.sql("SELECT 20 AS a, 0 AS b"))
        tracked.alter(spark=session).drop_feature("rowTracking")
        found = operations(tracked, first)
        assert (found.count(SET), found.count(DROP)) == (1, 1)
        assert {file.base_row_id for file in tracked.scan().files} == {None}

    def test_ids_begin_anew_after_it(self, session, tracked):
        before = dict(tracked.head().properties)
        tracked.alter(spark=session).drop_feature("rowTracking")
        tracked.alter(spark=session).set_properties(TRACKED)
        after = dict(tracked.head().properties)
        assert before.keys() == after.keys()
        assert not {value for key, value in after.items() if "Column" in key} & {*before.values()}
        found = [row_id for row_id, _ in ids(tracked, session).values()]
        assert len(set(found)) == len(found) == 8
        assert {version for _, version in ids(tracked, session).values()} <= {
            commit.version
            for commit in tracked.history()
            if commit.operation == "ROW TRACKING BACKFILL"
        }

    def test_lets_others_write_meanwhile(self, session, lake, tracked):
        mine, other = lake.table(tracked.id), lake.table(tracked.id)
        numbers = iter(range(100, 200))

        def rival() -> None:
            number = next(numbers)
            other.append(session.sql(f"SELECT {number} AS a, 0 AS b"))

        overtake(mine, rival)
        mine.alter(spark=session).drop_feature("rowTracking")
        assert {file.base_row_id for file in tracked.scan().files} == {None}
        assert rows(tracked.read(session).where("a >= 100"))[0] == (100, 0)


class TestTypeWidening:
    def test_writes_files_of_older_types_again(self, spark, widened):
        first = widened.version + 1
        before = rows(widened.read(spark))
        (kept,) = [file.path for file in widened.scan("a = 3").files]
        widened.alter(spark=spark).drop_feature("typeWidening")
        assert operations(widened, first) == [UNSET, "REORG", DROP]
        assert "typeWidening" not in features(widened)
        head = widened.head()
        assert "delta.typeChanges" not in head.metadata.schema_string
        files = widened.scan().files
        assert len(files) == 2
        assert kept in [file.path for file in files]
        for file in files:
            found = pq.read_schema(folder_of(widened) / decode(file.path))
            assert [str(field.type).replace(" not null", "") for field in found] == [
                "int64",
                "struct<l: list<element: int32>, f: double>",
            ]
        assert rows(widened.read(spark)) == before

    def test_does_not_forget_what_became_wider_meanwhile(self, spark, lake, widened):
        mine, begun = lake.table(widened.id), 0

        def rival() -> None:
            nonlocal begun
            begun += 1
            if begun == 3:
                other = widened.alter(spark=spark)
                other.set_properties(WIDENED)
                other.change_column("s.l.element", type="BIGINT")

        overtake(mine, rival)
        with pytest.raises(MetadataChangedException) as changed:
            mine.alter(spark=spark).drop_feature("typeWidening")
        assert changed.value.error_class == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
        widened.alter(spark=spark).drop_feature("typeWidening")
        for file in widened.scan().files:
            found = pq.read_schema(folder_of(widened) / decode(file.path)).field("s").type
            assert str(found.field("l").type.value_type) == "int64"


class TestColumnMapping:
    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_writes_all_files_again(self, spark, create, mode):
        mapped = {"delta.columnMapping.mode": mode}
        table = create("a int, s struct<x: int>, p int", "p", **mapped, **TRACKED, **VECTORS)
        for first in (0, 3):
            table.append(
                spark.range(first, first + 3).selectExpr(
                    "int(id) AS a", "named_struct('x', int(id)) AS s", "int(id % 2) AS p"
                )
            )
        table.update({"s.x": "9"}, "a = 2", spark=spark)
        table.alter(spark=spark).rename_column("a", "b")
        table.alter(spark=spark).rename_column("p", "q")
        before, first = rows(table.read(spark)), table.version + 1
        kept = found_ids(table, spark)
        table.alter(spark=spark).drop_feature("columnMapping")
        assert operations(table, first) == ["REMOVE COLUMN MAPPING", DROP]
        assert "columnMapping" not in features(table)
        head = table.head()
        assert "delta.columnMapping" not in head.metadata.schema_string
        assert not [name for name in head.properties if name.startswith("delta.columnMapping")]
        assert rows(table.read(spark)) == before
        assert found_ids(table, spark) == kept
        assert {tuple(file.partition_values) for file in table.scan().files} == {("q",)}
        assert not any(file.deletion_vector for file in table.scan().files)
        for file in table.scan().files:
            columns = pq.read_schema(folder_of(table) / decode(file.path))
            assert columns.names[:2] == ["b", "s"]
            assert columns.field("s").type.field(0).name == "x"

    def test_conflicts_with_files_that_come_meanwhile(self, spark, lake, create):
        table = create("a int", **{"delta.columnMapping.mode": "name"})
        table.append(spark.sql("SELECT 1 AS a"))
        mine, other = lake.table(table.id), lake.table(table.id)
        rivals = iter([None, spark.sql("SELECT 2 AS a")])

        def rival() -> None:
            if (df := next(rivals, None)) is not None:
                other.append(df)

        overtake(mine, rival)
        with pytest.raises(ConflictError, match="version 2"):
            mine.alter(spark=spark).drop_feature("columnMapping")
        assert len(data_files(table)) == 2
        mine.alter(spark=spark, retries=1).drop_feature("columnMapping")
        assert rows(table.read(spark)) == [(1,), (2,)]

    def test_needs_names_that_files_can_have(self, spark, create):
        table = create("`a b` int, s struct<`x,y`: int>", **{"delta.columnMapping.mode": "name"})
        with pytest.raises(InvalidCommand, match=r"names: a b, s\.x,y\.") as refusal:
            table.alter(spark=spark).drop_feature("columnMapping")
        assert refusal.value.getCondition() == (
            "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
        )
        assert table.version == 0


def found_ids(table, spark) -> list[tuple[int, int]]:
    """The ids and commit versions of all rows, in the order of the rows' first column."""
    txn = table.transaction()
    found = rows(txn.rows_of(spark, txn.filter_files(), with_ids=True))
    return [row[-2:] for row in found]


class TestCheckpointProtection:
    def test_takes_a_history_that_is_gone(self, spark, lake, marked):
        alter = marked.alter(spark=spark)
        alter.drop_feature("deletionVectors")
        dropped = marked.version
        with pytest.raises(InvalidCommand) as kept:
            alter.drop_feature("checkpointProtection")
        assert kept.value.getCondition() == (
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
        )
        with pytest.raises(InvalidCommand) as waiting:
            alter.drop_feature("checkpointProtection", truncate_history=True)
        assert waiting.value.getCondition() == (
            "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
        )
        assert marked.version == dropped
        marked.append(spark.sql("SELECT 9 AS a"))
        clean_up(marked, below=dropped)
        alter.drop_feature("checkpointProtection", truncate_history=True)
        assert "checkpointProtection" not in features(marked)
        assert dict(marked.head().properties) == {}
        assert marked.history(limit=1)[0].operation_parameters["truncateHistory"] is True


def clean_up(table, *, below: int) -> None:
    """What a log clean-up leaves: a checkpoint, and no version before."""
    path = f"/tables/{table.id}/checkpoint"
    request = Request(method="POST", path=path, body=b"{}", content_type="application/json")
    table.connection.call(request, lambda response: None)
    log = folder_of(table) / "_delta_log"
    for version in range(below):
        (log / f"{version:020}.json").unlink()
