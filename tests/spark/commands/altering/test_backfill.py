"""ALTER TABLE: row tracking switched on where there are files without row ids."""

import json

import pytest

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, overtake, rows
from tidegate.spark import InvalidCommand, UnsupportedTable
from tidegate_protocol.features.properties import STATISTICS_DISJOINTNESS
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.codec import with_fields

ON = {"delta.enableRowTracking": "true"}
BACKFILL, SET, UPGRADE = "ROW TRACKING BACKFILL", "SET TBLPROPERTIES", "UPGRADE PROTOCOL"


class Died(Exception):
    """A client that ends between two steps."""


@pytest.fixture
def filled(spark, create, copied):
    """A plain table of the rows 0 to 9 in five files; 1 is deleted by a vector."""

    def make():
        table = create("id bigint", **VECTORS, **{STATISTICS_DISJOINTNESS: "true"})
        for first in range(0, 10, 2):
            table.append(spark.range(first, first + 2).coalesce(1))
        table.delete("id = 1", spark=spark)
        return table

    return copied(make)


@pytest.fixture
def by_two(session):
    """A session whose commits of a backfill have two files."""
    session.conf.set("spark.databricks.delta.rowTracking.backfill.maxNumFiles", "2")
    return session


def operations(table, first: int) -> list[str]:
    return [commit.operation for commit in table.history() if commit.version >= first][::-1]


def check_tracked(table) -> None:
    """Every row has an id of its own, and writers know where ids are kept."""
    taken = []
    for file in table.scan().files:
        assert file.default_row_commit_version is not None
        count = json.loads(file.stats)["numRecords"]
        taken += range(file.base_row_id, file.base_row_id + count)
    assert len(set(taken)) == len(taken)
    properties = table.head().properties
    assert properties["delta.enableRowTracking"] == "true"
    assert properties["delta.rowTracking.materializedRowIdColumnName"]


def test_takes_the_steps_that_delta_takes(by_two, filled):
    before = {file.path: file for file in filled.scan().files}
    filled.alter(spark=by_two).set_properties(ON)
    assert operations(filled, 7) == [UPGRADE, BACKFILL, BACKFILL, BACKFILL, SET]
    check_tracked(filled)
    for file in filled.scan().files:
        own = {"dataChange": False, "baseRowId": None, "defaultRowCommitVersion": None}
        assert with_fields(file, own) == with_fields(before[file.path], {"dataChange": False})
    history = filled.history(limit=4)
    assert [each.operation_parameters for each in history[1:]] == [
        {"batchId": number} for number in ("2", "1", "0")
    ]
    assert not actions(filled, 9, "remove")
    assert history[0].tags["rowTrackingEnablementOnly"] == "true"
    assert rows(filled.read(by_two)) == [(n,) for n in (0, *range(2, 10))]


@pytest.mark.parametrize("steps", range(1, 6))
def test_goes_on_where_a_client_died(by_two, lake, filled, steps):
    dying, begun = lake.table(filled.id), 0

    def count() -> None:
        nonlocal begun
        begun += 1
        if begun > steps:
            raise Died

    overtake(dying, count)
    with pytest.raises(Died):
        dying.alter(spark=by_two).set_properties(ON)
    filled.append(by_two.range(20, 21))
    filled.alter(spark=by_two).set_properties(ON)
    check_tracked(filled)
    found = operations(filled, 7)
    assert (found.count(UPGRADE), found.count(BACKFILL), found.count(SET)) == (1, 3, 1)


def test_lets_others_write_meanwhile(by_two, lake, filled):
    mine, other = lake.table(filled.id), lake.table(filled.id)
    early = lake.table(filled.id).transaction()
    early.remove(early.filter_files("id BETWEEN 8 AND 9"))
    numbers = iter(range(100, 200))

    def rival() -> None:
        number = next(numbers)
        other.append(by_two.range(number, number + 1))
        other.delete(f"id = {min(number - 98, 7)}", spark=by_two)

    overtake(mine, rival)
    mine.alter(spark=by_two).set_properties(ON)
    check_tracked(filled)
    assert operations(filled, 7).count(SET) == 1
    assert early.commit("DELETE").rebased_over > 10
    kept = {row[0] for row in rows(filled.read(by_two))}
    assert 100 in kept
    assert not kept & {1, 2, 3, 8, 9}


def test_is_for_tables_that_allow_it(session, filled):
    with pytest.raises(InvalidCommand) as refusal:
        filled.alter(spark=session).set_properties(ON | {"delta.rowTrackingSuspended": "true"})
    assert refusal.value.getCondition() == "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"
    with pytest.raises(InvalidCommand, match=r"\[DELTA_UNKNOWN_CONFIGURATION\]"):
        filled.alter(spark=session).set_properties(ON | {"delta.nothing": "1"})
    session.conf.set("spark.databricks.delta.rowTracking.backfill.enabled", "false")
    with pytest.raises(UnsupportedTable, match=r"backfill\.enabled = false"):
        filled.alter(spark=session).set_properties(ON)
    assert filled.version == 6


def test_needs_to_know_how_many_rows_files_have(spark, filled):
    (file, *_) = filled.scan().files
    with filled.transaction() as txn:
        txn.add([with_fields(file, {"stats": None, "deletionVector": None})])
        txn.commit("WRITE")
    with pytest.raises(InvalidCommand) as refusal:
        filled.alter(spark=spark).set_properties(ON)
    assert refusal.value.getCondition() == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"
    assert not supports(filled.head().protocol, "rowTracking")
