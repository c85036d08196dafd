"""Iceberg compatibility: what it asks of every commit."""

import pytest

from tests.builders.actions import add, features, metadata, remove
from tests.builders.ledgers import NO_TABLE, prepared, state
from tests.builders.lines import column
from tests.builders.proposals import proposal
from tests.protocol.racing import refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import PreparedTransaction

V1, V2, V3 = (f"delta.enableIcebergCompatV{n}" for n in (1, 2, 3))
ROW_TRACKING = {"delta.enableRowTracking": "true"}
DVS = {"delta.enableDeletionVectors": "true"}
ARRAY = {"type": "array", "elementType": "integer", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": ARRAY, "valueContainsNull": True}
EVERY = ("icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "rowTracking", "domainMetadata")
PROTOCOL = features(*EVERY, readers=["columnMapping"])
WITH_DVS = features(*EVERY, readers=["columnMapping", "deletionVectors"])
WIDENING = features(*EVERY, readers=["columnMapping", "typeWidening"])


def mapped(name, number, type_="integer", **fields):
    marks = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
    return column(name, type_, **marks, **fields)


def table(switch, *columns, partition_by=(), **properties):
    """A table with this version switched on; row tracking where the third asks for it."""
    more = ROW_TRACKING if switch == V3 else {}
    configuration = {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "9",
        **more,
        **properties,
    }
    if switch is not None:
        configuration[switch] = "true"
    return metadata(columns or [mapped("v", 1), mapped("w", 2)], partition_by, configuration)


def nested(*names):
    return {"delta.columnMapping.nested.ids": {name: 3 + n for n, name in enumerate(names)}}


def why_not(*actions, at, **fields):
    invalid = refused(*actions, at=at, **{"operation": "X", **fields})
    assert invalid.code is Code.INVALID_ACTION
    return invalid.detail


@pytest.mark.parametrize("switch", [V1, V2, V3])
class TestEveryVersion:
    def test_ordinary_commits(self, switch):
        at = state(table(switch), PROTOCOL)
        prepared(add("a"), at=at)
        prepared(remove("a"), at=at)
        prepared(table(switch, comment="x"), at=at, operation="X")

    def test_it_is_switched_on_with_its_needs(self, switch):
        before = state(table(None), features(readers=["columnMapping"]))
        prepared(table(switch), at=before, operation="X")
        bare = metadata(properties={switch: "true", **ROW_TRACKING})
        assert "columnMapping.mode" in why_not(bare, at=state(table_protocol=PROTOCOL))

    def test_files_need_their_number_of_rows(self, switch):
        detail = why_not(add("a", stats="{}"), at=state(table(switch), PROTOCOL))
        assert "numRecords" in detail

    def test_one_version_at_a_time(self, switch):
        other = V2 if switch == V1 else V1
        new = table(switch, **{other: "true"})
        assert "exclude each other" in why_not(new, at=state(table(None), PROTOCOL))

    def test_the_partitioning_stays(self, switch):
        at = state(table(switch, partition_by=["v"]), PROTOCOL)
        for columns in ([], ["w"]):
            new = table(switch, partition_by=columns)
            assert "['v']" in why_not(new, at=at, operation="REPLACE TABLE")
        bare = state(table(switch), PROTOCOL)
        prepared(table(switch, partition_by=["v"]), at=bare, operation="REPLACE TABLE")

    def test_types_are_widened_as_iceberg_can(self, switch):
        for new, allowed in (("long", True), ("double", False)):
            told = {"delta.typeChanges": [{"fromType": "integer", "toType": new}]}
            at = state(table(None, mapped("v", 1, new, **told)), WIDENING)
            offer = table(switch, mapped("v", 1, new, **told))
            if allowed:
                prepared(offer, at=at, operation="X")
            else:
                assert "has no way from integer to double" in why_not(offer, at=at)


class TestTypes:
    @pytest.mark.parametrize(
        ("switch", "type_", "marks", "allowed"),
        [
            (V1, ARRAY, {}, False),
            (V1, MAP, {}, False),
            (V1, "variant", {}, True),
            (V2, "variant", {}, False),
            (V3, "variant", {}, True),
            (V2, ARRAY, nested("v.element"), True),
            (V2, MAP, nested("v.key", "v.value", "v.value.element"), True),
        ],
    )
    def test_which_there_are(self, switch, type_, marks, allowed):
        protocol = features(*EVERY, readers=["columnMapping", "variantType"])
        at = state(table(None), protocol)
        new = table(switch, mapped("v", 1, type_, **marks), mapped("w", 2))
        if allowed:
            prepared(new, at=at, operation="REPLACE TABLE")
        else:
            assert "has no type like" in why_not(new, at=at, operation="REPLACE TABLE")

    @pytest.mark.parametrize("marks", [{}, nested("v.key", "v.value")])
    def test_what_is_inside_of_them_needs_ids(self, marks):
        new = table(V2, mapped("v", 1, MAP, **marks))
        refusal = why_not(new, at=state(table(None), PROTOCOL), operation="REPLACE TABLE")
        assert "nested.ids" in refusal


class TestDeletionVectors:
    def test_the_first_version_excludes_the_feature(self):
        assert "deletion vectors" in why_not(add("a"), at=state(table(V1), WITH_DVS))

    def test_the_second_one_its_use(self):
        prepared(add("a"), at=state(table(V2), WITH_DVS))
        assert "deletion vectors" in why_not(add("a"), at=state(table(V2, **DVS), WITH_DVS))
        before = state(table(None, **DVS), WITH_DVS)
        assert "deletion vectors" in why_not(table(V2), at=before)
        prepared(table(V2), at=before, operation="REORG TABLE UPGRADE UNIFORM")

    def test_the_third_one_nothing(self):
        prepared(add("a"), at=state(table(V3, **DVS), WITH_DVS))


class TestThirdVersion:
    AT = state(table(V3), PROTOCOL)

    def test_it_needs_row_ids(self):
        off = table(V3, **{"delta.enableRowTracking": "false"})
        assert "enableRowTracking" in why_not(off, at=self.AT)

    def test_it_is_not_switched_on_over_row_ids(self):
        at = state(table(None, **ROW_TRACKING), PROTOCOL)
        assert "over row ids" in why_not(table(V3), at=at, operation="SET TBLPROPERTIES")
        prepared(table(V3), at=at, operation="REPLACE TABLE")

    def test_it_is_not_switched_off(self):
        assert "cannot be switched off" in why_not(table(None), at=self.AT)

    @pytest.mark.parametrize(
        ("default", "allowed"), [("1", True), ("'x'", True), ("NULL", True), ("now()", False)]
    )
    def test_defaults_are_literals(self, default, allowed):
        new = table(V3, mapped("v", 1, CURRENT_DEFAULT=default), mapped("w", 2))
        if allowed:
            prepared(new, at=self.AT, operation="X")
        else:
            assert "takes literals" in why_not(new, at=self.AT)


def test_a_new_table():
    first = proposal(PROTOCOL, table(V2), read_version=-1, operation="CREATE TABLE")
    assert isinstance(prepare(first, NO_TABLE), PreparedTransaction)
