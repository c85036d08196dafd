"""Type widening: which changes there are, who may make them, and what they leave in the schema."""

import json
from typing import ClassVar

import pytest

from tests.builders.actions import add, features, metadata
from tests.builders.ledgers import NOW, prepared, state, winner
from tests.builders.lines import column
from tests.builders.proposals import reads
from tests.protocol.racing import refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.type_widening import is_widening, is_widening_in_iceberg, moved
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction
from tidegate_protocol.schema.table_schema import parse_schema, parse_type

ENABLE = {"delta.enableTypeWidening": "true"}
WIDENING = features(readers=["typeWidening"])
PREVIEW = features(readers=["typeWidening-preview"])
AT = state(metadata(["v"], properties=ENABLE), WIDENING)


def changes(*steps, **fields):
    """The entry of a field's metadata: steps are pairs of types."""
    return {"delta.typeChanges": [{"fromType": old, "toType": new, **fields} for old, new in steps]}


def table(*columns, **properties):
    return metadata(columns, properties={**ENABLE, **properties})


def widened(new="long", **fields):
    return table(column("v", new, **changes(("integer", new), **fields)))


def why_not(new, at=AT, operation="CHANGE COLUMN"):
    invalid = refused(new, at=at, operation=operation)
    assert invalid.code is Code.INVALID_SCHEMA
    return invalid.detail


class TestKinds:
    WIDER = (
        ("byte", "short"),
        ("byte", "long"),
        ("short", "integer"),
        ("integer", "long"),
        ("float", "double"),
        ("byte", "double"),
        ("short", "double"),
        ("integer", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(6,2)"),
        ("decimal(5,2)", "decimal(6,3)"),
        ("byte", "decimal(10,0)"),
        ("integer", "decimal(12,2)"),
        ("long", "decimal(20,0)"),
        ("string", "string"),
    )
    OTHER = (
        ("long", "integer"),
        ("long", "double"),
        ("double", "float"),
        ("date", "timestamp"),
        ("timestamp", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(5,3)"),
        ("decimal(5,2)", "decimal(6,4)"),
        ("decimal(5,2)", "decimal(6,1)"),
        ("decimal(5,0)", "long"),
        ("integer", "decimal(9,0)"),
        ("integer", "decimal(11,2)"),
        ("long", "decimal(19,0)"),
        ("integer", "string"),
        ("string", "binary"),
    )
    ICEBERG = (
        ("integer", "long"),
        ("float", "double"),
        ("decimal(5,2)", "decimal(9,2)"),
        ("date", "date"),
    )

    @pytest.mark.parametrize(("old", "new"), WIDER)
    def test_wider(self, old, new):
        assert is_widening(parse_type(old), parse_type(new))

    @pytest.mark.parametrize(("old", "new"), OTHER)
    def test_other(self, old, new):
        assert not is_widening(parse_type(old), parse_type(new))

    @pytest.mark.parametrize(("old", "new"), ICEBERG)
    def test_iceberg_knows(self, old, new):
        assert is_widening_in_iceberg(parse_type(old), parse_type(new))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("integer", "double"),
            ("date", "timestamp_ntz"),
            ("decimal(5,2)", "decimal(6,3)"),
            ("integer", "decimal(10,0)"),
            ("long", "integer"),
        ],
    )
    def test_iceberg_does_not_know(self, old, new):
        assert not is_widening_in_iceberg(parse_type(old), parse_type(new))


class TestChange:
    @pytest.mark.parametrize("protocol", [WIDENING, PREVIEW])
    def test_a_type_gets_wider_and_the_schema_tells(self, protocol):
        at = state(table("v"), protocol)
        mine = prepared(widened(), at=at, operation="CHANGE COLUMN")
        assert mine.metadata_changed

    def test_one_that_no_reader_allows(self):
        assert "from integer to string" in why_not(table(column("v", "string")))
        told = table(column("v", "string", **changes(("integer", "string"))))
        assert "no widening" in why_not(told)

    def test_one_that_is_not_told(self):
        assert "does not tell" in why_not(table(column("v", "long")))
        other = table(column("v", "long", **changes(("short", "long"))))
        assert "does not tell" in why_not(other)

    def test_one_without_the_property(self):
        off = metadata([column("v", "long", **changes(("integer", "long")))])
        assert "delta.enableTypeWidening is not true" in why_not(off)

    def test_history_is_kept_or_gone(self):
        before = table(column("v", "long", **changes(("short", "integer"), ("integer", "long"))))
        at = state(before, WIDENING)
        prepared(table(column("v", "long")), at=at, operation="REORG")
        further = changes(("short", "integer"), ("integer", "long"), ("long", "decimal(20,0)"))
        prepared(table(column("v", "decimal(20,0)", **further)), at=at, operation="X")
        partly = table(column("v", "long", **changes(("integer", "long"))))
        assert "must keep" in why_not(partly, at=at)

    def test_columns_come_and_go(self):
        prepared(table("w"), at=AT, operation="REPLACE TABLE")
        prepared(table("v", column("w", "string")), at=AT, operation="X")

    def test_a_column_of_nothing_becomes_any(self):
        at = state(table("w", column("v", "void")), WIDENING)
        prepared(table("w", column("v", "string")), at=at, operation="X")

    def test_inside_of_nested_types(self):
        def nested(type_, **marks):
            array = {"type": "array", "elementType": type_, "containsNull": True}
            map_ = {
                "type": "map",
                "keyType": "string",
                "valueType": array,
                "valueContainsNull": True,
            }
            inner = column("m", map_, **marks)
            return table(column("s", {"type": "struct", "fields": [inner]}))

        at = state(nested("float"), WIDENING)
        told = changes(("float", "double"), fieldPath="value.element")
        prepared(nested("double", **told), at=at, operation="X")
        assert "s.m" in why_not(nested("double", **changes(("float", "double"))), at=at)
        assert "s.m" in why_not(nested({"type": "struct", "fields": [column("f")]}), at=at)

    def test_data_that_is_written_anew_may_have_any_type(self):
        for operation in ("REPLACE TABLE", "RESTORE"):
            prepared(table(column("v", "string")), at=AT, operation=operation)
        overwrite = {"mode": "Overwrite", "canOverwriteSchema": True}
        prepared(
            table(column("v", "string")),
            at=AT,
            operation="WRITE",
            operation_parameters=overwrite,
        )

    @pytest.mark.parametrize(
        "marks", [{}, "x", [1], [{"fromType": "integer"}], [{"fromType": "i", "toType": "long"}]]
    )
    def test_what_no_reader_understands(self, marks):
        why_not(table(column("v", "long", **{"delta.typeChanges": marks})))


class TestVersions:
    """In the preview, a change names the version that made it."""

    AT = state(
        table(column("u", "long", **changes(("integer", "long"), tableVersion=0)), "v"), PREVIEW
    )

    def mine(self):
        return table(
            column("u", "long", **changes(("integer", "long"), tableVersion=0)),
            column("v", "long", **changes(("integer", "long"), tableVersion=1)),
        )

    @pytest.mark.parametrize("version", [1, 3])
    def test_it_is_the_one_that_it_lands_as(self, version):
        txn = prepared(self.mine(), at=self.AT, operation="CHANGE COLUMN")
        winners = [winner(add(f"w{v}"), version=v) for v in range(1, version)]
        txn = check_conflicts(txn, winners)
        assert isinstance(txn, PreparedTransaction)
        ready = complete(txn, now_ms=NOW, previous_timestamp=0, version=version)
        schema = json.loads(ready.transaction.metadata.schema_string)
        found = [f["metadata"]["delta.typeChanges"][0]["tableVersion"] for f in schema["fields"]]
        assert found == [0, version]

    def test_without_any_the_bytes_stay(self):
        new = widened()
        assert moved(new, read_version=0, version=5) is new


class TestWinners:
    @pytest.mark.parametrize("theirs", [widened(), table("v", "w"), metadata(["v"])])
    def test_a_type_that_changed_is_a_conflict(self, theirs):
        outcome = check_conflicts(
            prepared(add("a"), at=AT), [winner(theirs, operation="CHANGE COLUMN")]
        )
        assert isinstance(outcome, Conflict)
        assert outcome.code is Code.METADATA_CHANGED


class TestStatistics:
    """The shortest text of a `float` is another number as a `double`."""

    SCAN: ClassVar = {"tidegate.statisticsDisjointness": "true"}

    @pytest.mark.parametrize(("old", "conflicts"), [("float", True), ("integer", False)])
    def test_bounds_of_floats_prove_nothing_of_doubles(self, old, conflicts):
        at = state(table(column("v", "double", **changes((old, "double"))), **self.SCAN), WIDENING)
        # 0.7 as a float is 0.699999988...
        stats = {"numRecords": 1, "minValues": {"v": 0.7}, "nullCount": {"v": 0}}
        mine = prepared(add("a"), at=at, reads=reads("v < 0.7"))
        outcome = check_conflicts(mine, [winner(add("w", stats=json.dumps(stats)))])
        assert isinstance(outcome, Conflict) is conflicts


def test_the_names_of_types_that_older_versions_wrote():
    assert parse_type("decimal") == parse_type("decimal(10,0)")
    assert parse_type("timestamp_ltz") == parse_type("timestamp")
    assert parse_type("null") == parse_type("void")
    fields = [column("v", "decimal")]
    assert parse_schema(json.dumps({"type": "struct", "fields": fields})).leaf(["v"])
