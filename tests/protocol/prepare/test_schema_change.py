"""What Delta's commands would not make of a table's columns, nobody may."""

import json

import pytest

from tests.builders.actions import add, features, metadata, remove
from tests.builders.ledgers import landed, ledger, prepared, state, winner
from tests.builders.lines import column
from tests.protocol.racing import answer, refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.proposal.transaction import Conflict, Invalid, PreparedTransaction

MAPPING = features(readers=["columnMapping"])
OVERWRITES = (
    ("REPLACE TABLE", {}),
    ("CREATE OR REPLACE TABLE AS SELECT", {}),
    ("CLONE", {}),
    ("RESTORE", {}),
    ("WRITE", {"mode": "Overwrite", "canOverwriteSchema": "true"}),
    ("STREAMING UPDATE", {"outputMode": "Complete", "queryId": "q", "epochId": "1"}),
)


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def array(element, contains_null=True):
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def map_(key, value, contains_null=True):
    of = {"keyType": key, "valueType": value, "valueContainsNull": contains_null}
    return {"type": "map", **of}


def mapped(name, number, **fields):
    marks = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
    return column(name, **{**marks, **fields})


def named(*columns, highest):
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(highest)}
    return metadata(columns, properties=mode)


def why_not(new, at, operation="SET TBLPROPERTIES", **fields):
    invalid = refused(new, at=at, operation=operation, **fields)
    assert invalid.code is Code.INVALID_SCHEMA
    return invalid.detail


class TestColumnsThatGo:
    NESTED = struct(column("f"), column("g"))
    AT = state(metadata(["a", "b", column("s", NESTED), column("l", array(NESTED))]))

    @pytest.mark.parametrize(
        ("columns", "gone"),
        [
            (["a", column("s", NESTED), column("l", array(NESTED))], "'b'"),
            (["a", "z", column("s", NESTED), column("l", array(NESTED))], "'b'"),
            (["a", "B", column("s", NESTED), column("l", array(NESTED))], "'b'"),
            (["a", "b", column("s", struct(column("f"))), column("l", array(NESTED))], "'s.g'"),
            (["a", "b", column("s", NESTED), column("l", array(struct(column("g"))))], "element.f"),
        ],
    )
    def test_are_refused_without_column_mapping(self, columns, gone):
        for operation in ("DROP COLUMNS", "RENAME COLUMN", "REPLACE COLUMNS", "MERGE", "X"):
            detail = why_not(metadata(columns), self.AT, operation)
            assert "cannot be dropped or renamed" in detail
            assert gone in detail

    def test_are_refused_where_mapping_only_begins(self):
        at = state(metadata(["a", "b"]), MAPPING)
        new = named(mapped("a", 1, **{"delta.columnMapping.physicalName": "a"}), highest=1)
        assert "'b' cannot be dropped" in why_not(new, at)

    @pytest.mark.parametrize(("operation", "parameters"), OVERWRITES)
    def test_may_go_with_their_data(self, operation, parameters):
        new = metadata(["z"])
        mine = prepared(new, at=self.AT, operation=operation, operation_parameters=parameters)
        assert mine.metadata == new

    @pytest.mark.parametrize(
        ("operation", "parameters"),
        [
            ("WRITE", {"mode": "Overwrite"}),
            ("WRITE", {"mode": "Append", "canOverwriteSchema": "true"}),
            ("STREAMING UPDATE", {"outputMode": "Append"}),
        ],
    )
    def test_may_not_with_other_writes(self, operation, parameters):
        detail = why_not(metadata(["z"]), self.AT, operation, operation_parameters=parameters)
        assert "cannot be dropped or renamed" in detail

    def test_may_under_column_mapping(self):
        at = state(named(mapped("a", 1), mapped("b", 2), highest=2), MAPPING)
        prepared(named(mapped("z", 1), highest=2), at=at, operation="DROP COLUMNS")

    def test_columns_may_come_and_move(self):
        at = state(metadata(["a", "b"]))
        prepared(metadata(["b", column("n", self.NESTED), "a"]), at=at, operation="CHANGE COLUMN")


class TestTypes:
    """Of a table without the feature typeWidening; `test_type_widening.py` has the others."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("integer", "long"),
            ("integer", "string"),
            ("short", "byte"),
            ("integer", "short"),
            ("string", "integer"),
            ("float", "double"),
            ("date", "timestamp_ntz"),
            ("decimal(9,2)", "decimal(18,2)"),
            ("integer", struct(column("f"))),
            (array("integer"), array("long")),
            (map_("string", "integer"), map_("string", "string")),
            (struct(column("f")), struct(column("f", "string"))),
            (array("integer"), "integer"),
        ],
    )
    def test_changes_are_refused(self, old, new):
        at = state(metadata([column("v", old)]))
        detail = why_not(metadata([column("v", new)]), at, "CHANGE COLUMN")
        assert "cannot change" in detail or "cannot be dropped" in detail
        prepared(metadata([column("v", new)]), at=at, operation="REPLACE TABLE")

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("byte", "short"),
            ("byte", "integer"),
            ("short", "integer"),
            (array("short"), array("integer")),
            ("void", "string"),
        ],
    )
    def test_what_schema_evolution_widens_is_taken(self, old, new):
        at = state(metadata([column("v", old), "w"]))
        prepared(metadata([column("v", new), "w"]), at=at, operation="WRITE")


class TestNotNull:
    AT = state(metadata(["v", "p", column("s", struct(column("f")))], ["p"]))

    def becomes(self, *columns, at=AT, **fields):
        new = metadata(columns, at.metadata.partition_columns)
        return prepared(new, at=at, operation="CHANGE COLUMN", **fields)

    def file(self, path="a", partition="1", **nulls):
        stats = json.dumps({"numRecords": 3, "nullCount": nulls})
        return add(path, {"p": partition}, stats=stats)

    def strict(self):
        inner = struct(column("f", nullable=False))
        return (column("v", nullable=False), column("p", nullable=False), column("s", inner))

    def test_asks_for_a_proof_of_every_file(self):
        mine = self.becomes(*self.strict())
        proven = self.file(v=0, s={"f": 0})
        assert check_live_files(mine, []) is None
        assert check_live_files(mine, [proven, self.file("b", v=0, s={"f": 0})]) is None
        for file, name in (
            (self.file(v=1, s={"f": 0}), "v"),
            (self.file(s={"f": 0}), "v"),
            (self.file(v=0, s={"f": 2}), "s.f"),
            (self.file(v=0, s={"f": 0}, partition=None), "p"),
            (add("a", {"p": "1"}), "v"),
        ):
            invalid = check_live_files(mine, [proven, file])
            assert isinstance(invalid, Invalid)
            assert f"no null in the column {name!r}" in invalid.detail
            assert invalid.path == "a"

    def test_files_that_go_with_it_need_none(self):
        mine = prepared(
            metadata(self.strict(), ["p"]),
            remove("a", partitionValues={"p": "1"}),
            at=self.AT,
            operation="WRITE",
        )
        assert check_live_files(mine, [add("a", {"p": "1"})]) is None

    def test_files_that_are_added_again_need_one(self):
        for nulls, refused_ in ((0, False), (1, True)):
            again = self.file(v=nulls, s={"f": 0})
            mine = self.becomes(*self.strict(), at=self.AT)
            mine = prepared(mine.metadata, again, at=self.AT, operation="CHANGE COLUMN")
            assert (check_live_files(mine, [add("a", {"p": "1"})]) is not None) is refused_

    @pytest.mark.parametrize(("operation", "parameters"), OVERWRITES)
    def test_so_does_one_that_a_commit_should_have_taken_away(self, operation, parameters):
        """Whatever it is called; but that RESTORE and CLONE bring rows along, is believed."""
        kind = {"operation": operation, "operation_parameters": parameters}
        new = metadata(self.strict(), ["p"])
        found = check_live_files(prepared(new, at=self.AT, **kind), [add("a", {"p": "1"})])
        assert (found is None) is (operation in ("RESTORE", "CLONE"))
        gone = remove("a", partitionValues={"p": "1"})
        assert check_live_files(prepared(new, gone, at=self.AT, **kind), [add("a")]) is None

    @pytest.mark.parametrize(("nulls", "conflicts"), [(0, False), (1, True)])
    def test_a_file_that_was_added_meanwhile_needs_one(self, nulls, conflicts):
        mine = self.becomes(*self.strict())
        outcome = check_conflicts(mine, [winner(self.file("w", v=nulls, s={"f": 0}))])
        assert isinstance(outcome, Conflict if conflicts else PreparedTransaction)

    @pytest.mark.parametrize(
        ("old", "new", "name"),
        [
            (array("integer"), array("integer", contains_null=False), "v.element"),
            (
                map_("string", array("long")),
                map_("string", array("long", contains_null=False)),
                "v.value.element",
            ),
            (
                map_("string", "integer"),
                map_("string", "integer", contains_null=False),
                "v.value",
            ),
        ],
    )
    def test_what_is_inside_cannot_be_proven(self, old, new, name):
        mine = self.becomes(column("v", new), at=state(metadata([column("v", old)])))
        assert check_live_files(mine, []) is None
        invalid = check_live_files(mine, [add("a", stats='{"numRecords":1}')])
        assert isinstance(invalid, Invalid)
        assert repr(name) in invalid.detail

    @pytest.mark.parametrize(
        ("new", "asked"),
        [
            ([column("n", nullable=False)], {"n"}),
            ([column("n", struct(column("f", nullable=False)))], set()),
            ([column("n", struct(column("f", nullable=False)), nullable=False)], {"n"}),
            ([column("n", array(struct(column("f", nullable=False))))], set()),
        ],
    )
    def test_a_new_column_is_null_in_the_rows_that_there_are(self, new, asked):
        at = state(metadata(["v"]))
        mine = self.becomes("v", *new, at=at)
        assert {demand.name for demand in mine.demands} == asked
        invalid = check_live_files(mine, [add("a", stats='{"numRecords":1,"nullCount":{"v":0}}')])
        assert (invalid is not None) == bool(asked)
        assert check_live_files(mine, []) is None

    @pytest.mark.parametrize("within", [struct, lambda f: array(struct(f))])
    def test_so_is_a_new_field(self, within):
        old = within(column("f"))
        fields = old if old["type"] == "struct" else old["elementType"]
        new = json.loads(json.dumps(old))
        inside = new if new["type"] == "struct" else new["elementType"]
        inside["fields"] = [*fields["fields"], column("g", nullable=False)]
        mine = self.becomes(column("s", new), at=state(metadata([column("s", old)])))
        assert check_live_files(mine, [add("a", stats='{"numRecords":1}')]) is not None

    def test_it_may_be_dropped(self):
        strict = metadata(self.strict(), ["p"])
        loose = metadata(["v", "p", column("s", struct(column("f")))], ["p"])
        mine = prepared(loose, at=state(strict), operation="CHANGE COLUMN")
        assert mine.demands == ()

    def test_over_the_ledger(self):
        table = landed(ledger(), add("a", stats='{"numRecords":1,"nullCount":{"v":0}}'))
        strict = metadata([column("v", nullable=False)])
        assert isinstance(answer(table, strict, read_version=1, operation="X"), Ratified)
        table = landed(table, add("b", stats='{"numRecords":1,"nullCount":{"v":1}}'))
        outcome = answer(table, strict, read_version=2, operation="X")
        assert isinstance(outcome, Invalid)
        assert isinstance(answer(table, strict, read_version=1, operation="X"), Conflict)
