"""Mutants of the rules of table features, each with the test that kills it."""

import pytest

from tests.builders.actions import add, commit_info, features, metadata, protocol, remove
from tests.builders.ledgers import TABLE, landed, ledger
from tests.builders.lines import column
from tests.protocol.racing import answer, code, foreign
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.proposal.transaction import Invalid

MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "v"}
MAPPING = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
WIDENING = {"delta.enableTypeWidening": "true"}


@pytest.mark.parametrize(
    ("protocol_", "theirs"),
    [
        # The protocol does not support column mapping, so the allow-list does not apply.
        (protocol(), metadata([column("v", **MAPPED)], properties=MAPPING)),
        (features(readers=["columnMapping"]), metadata([column("v", "long")])),
        (
            features(readers=["columnMapping"]),
            metadata([column("v", **MAPPED), column("z")], properties=MAPPING),
        ),
        (
            features(readers=["columnMapping"]),
            metadata([column("v", **MAPPED)], properties={**MAPPING, "other": "x"}),
        ),
    ],
)
def test_kills_column_mapping_metadata_merged_blindly(protocol_, theirs):
    before = foreign(ledger(table_protocol=protocol_), commit_info(timestamp=1), theirs)
    assert code(before, add("b")) is Code.METADATA_CHANGED


def test_kills_type_widening_metadata_merged_blindly():
    change = {"fromType": "integer", "toType": "long"}
    theirs = metadata([column("v", "long", **{"delta.typeChanges": [change]})], properties=WIDENING)
    before = ledger(metadata(properties=WIDENING), features(readers=["typeWidening"]))
    before = landed(before, theirs, operation="CHANGE COLUMN")
    assert code(before, add("b")) is Code.METADATA_CHANGED


ROW_TRACKING = features("rowTracking", "domainMetadata")


def row_ids(table):
    return {file.path: file.base_row_id for file in table.read(TABLE).files.values()}


def test_kills_row_ids_not_moved():
    before = ledger(table_protocol=ROW_TRACKING)
    before = landed(before, add("w", stats='{"numRecords":10}'))
    after = landed(before, add("a", baseRowId=0, defaultRowCommitVersion=1), read_version=0)
    assert row_ids(after) == {"w": 0, "a": 10}
    (moved,) = [f for f in after.read(TABLE).files.values() if f.path == "a"]
    assert moved.default_row_commit_version == 2


def test_kills_row_ids_of_older_files_moved():
    before = landed(ledger(table_protocol=ROW_TRACKING), add("a"))
    again = add("a", baseRowId=0, defaultRowCommitVersion=1, dataChange=False)
    after = landed(landed(before, add("w")), again, read_version=1, operation="COMPUTE STATS")
    assert row_ids(after) == {"a": 0, "w": 1}


def test_kills_row_id_mark_not_raised():
    before = landed(ledger(table_protocol=ROW_TRACKING), add("a"), add("b"))
    before = landed(before, remove("a"), remove("b"))
    assert row_ids(landed(before, add("c"))) == {"c": 2}


def test_kills_row_ids_given_out_while_suspended():
    suspended = metadata(properties={"delta.rowTrackingSuspended": "true"})
    after = landed(ledger(suspended, ROW_TRACKING), add("a"))
    assert row_ids(after) == {"a": None}


def test_kills_backfill_that_brings_files_back():
    before = landed(landed(ledger(table_protocol=ROW_TRACKING), add("a")), remove("a"))
    again = add("a", baseRowId=0, defaultRowCommitVersion=1, dataChange=False)
    after = landed(before, again, read_version=1, operation="ROW TRACKING BACKFILL")
    assert row_ids(after) == {}


def test_kills_feature_dropped_under_any_name():
    before = ledger(table_protocol=features(readers=["v2Checkpoint"]))
    outcome = answer(before, features(), operation="SET TBLPROPERTIES")
    assert isinstance(outcome, Invalid)
    assert outcome.code is Code.PROTOCOL_DOWNGRADE


def test_kills_not_null_past_a_winners_nulls():
    strict = metadata([column("v", nullable=False)])
    stats = '{"numRecords":1,"nullCount":{"v":%d}}'
    before = landed(ledger(), add("w", stats=stats % 1))
    assert code(before, strict, operation="CHANGE COLUMN") is Code.PROTOCOL_CHANGED
    before = landed(ledger(), add("w", stats=stats % 0))
    assert isinstance(answer(before, strict, operation="CHANGE COLUMN"), Ratified)


def test_kills_mapping_removed_past_a_winners_file():
    mapped = column("v", **{**MAPPED, "delta.columnMapping.physicalName": "c1"})
    before = ledger(metadata([mapped], properties=MAPPING), features(readers=["columnMapping"]))
    before = landed(before, add("w"))
    assert code(before, metadata(["v"]), operation="SET TBLPROPERTIES") is Code.PROTOCOL_CHANGED
