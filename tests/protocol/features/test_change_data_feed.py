"""Change data files: what they must be (PROTOCOL.md, "Add CDC File")."""

import pytest

from tests.builders.actions import add, cdc, metadata, protocol, remove
from tests.builders.ledgers import prepared, state
from tests.builders.lines import column
from tests.protocol.racing import refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.table_features import implied_features

FEED = {"delta.enableChangeDataFeed": "true"}
AT = state(metadata(["x", "v"], ["x"], FEED), protocol(1, 4))


def change(**fields):
    return cdc(**{"partitionValues": {"x": "1"}, **fields})


def test_they_come_beside_what_changed():
    mine = prepared(remove("a"), add("b", {"x": "1"}), change(), at=AT, operation="UPDATE")
    assert not mine.is_blind_append


@pytest.mark.parametrize("name", ["delta.enableChangeDataFeed", "delta.enableChangeDataCapture"])
def test_either_name_of_the_switch(name):
    at = state(metadata(["x", "v"], ["x"], {name: "true"}), protocol(1, 4))
    prepared(change(), at=at, operation="UPDATE")
    mine = prepared(metadata(properties={name: "true"}), at=state(), operation="X")
    assert "changeDataFeed" in implied_features(mine.protocol)


@pytest.mark.parametrize(
    ("fields", "code", "why"),
    [
        ({"dataChange": True}, Code.INVALID_ACTION, "dataChange = false"),
        ({"size": -1}, Code.INVALID_ACTION, "size is -1"),
        ({"partitionValues": {}}, Code.PARTITION_MISMATCH, "expected exactly ['x']"),
        ({"path": "/etc/x"}, Code.INVALID_PATH, "/etc/x"),
    ],
)
def test_what_is_wrong_with_one(fields, code, why):
    invalid = refused(change(**fields), at=AT)
    assert (invalid.code, invalid.action_index) == (code, 0)
    assert why in invalid.detail


def test_the_table_must_want_them():
    off = state(metadata(["x", "v"], ["x"]), protocol(1, 4))
    invalid = refused(change(), at=off)
    assert (invalid.code, "enableChangeDataFeed" in invalid.detail) == (Code.INVALID_ACTION, True)
    without = state(metadata(["x", "v"], ["x"], FEED), protocol(1, 3))
    assert refused(change(), at=without).code is Code.UNSUPPORTED_FEATURE


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_names_that_its_readers_use(name):
    invalid = refused(metadata(["v", column(name)], properties=FEED), at=state(), operation="X")
    assert invalid.code is Code.INVALID_SCHEMA
    assert name in invalid.detail
    prepared(metadata(["v", column(name)]), at=state(), operation="X")
