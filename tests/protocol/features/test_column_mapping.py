"""Column mapping: what a schema under it must be, and may become."""

import json
from typing import ClassVar

import pytest

from tests.builders.actions import add, cdc, features, metadata, protocol, remove
from tests.builders.ledgers import TABLE, landed, ledger, prepared, state, winner
from tests.builders.lines import column
from tests.builders.proposals import proposal, reads
from tests.protocol.racing import code, refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.column_mapping import assign, mapped_columns
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction
from tidegate_protocol.schema.table_schema import InvalidSchema, parse_schema, physical_name

MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
ID = "delta.columnMapping.id"
PHYSICAL = "delta.columnMapping.physicalName"
MAPPING = features(readers=["columnMapping"])


def mapped(name, number, physical=None, type_="integer", **fields):
    marks = {ID: number, PHYSICAL: physical or f"c{number}"}
    return column(name, type_, **{**marks, **fields})


def named(*columns, highest, mode="name", partition_by=(), **properties):
    configuration = {MODE: mode, MAX_ID: str(highest), **properties}
    return metadata(columns, partition_by, configuration)


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


TWO = named(mapped("a", 1), mapped("b", 2), highest=2)
AT = state(TWO, MAPPING)


def becomes(new, *files, at=AT, operation="X", **fields):
    return prepared(new, *files, at=at, operation=operation, **fields)


def why_not(new, at=AT, operation="X", **fields):
    invalid = refused(new, at=at, operation=operation, **fields)
    assert invalid.code is Code.INVALID_SCHEMA
    return invalid.detail


class TestNewTable:
    def created(self, new):
        return ledger(new, MAPPING).read(TABLE).metadata

    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_either_mode(self, mode):
        new = named(mapped("a b", 1), mapped("x", 2), highest=2, mode=mode)
        assert self.created(new) == new

    @pytest.mark.parametrize(
        ("columns", "highest", "why"),
        [
            (["a"], 1, "needs delta.columnMapping.id"),
            ([mapped("a", 0)], 1, "needs delta.columnMapping.id"),
            ([mapped("a", True)], 1, "needs delta.columnMapping.id"),
            ([mapped("a", 2**31)], 2**31, "needs delta.columnMapping.id"),
            ([column("a", **{ID: 1})], 1, "needs delta.columnMapping.id"),
            ([column("a", **{ID: 1, PHYSICAL: ""})], 1, "needs delta.columnMapping.id"),
            ([mapped("a", 1), mapped("b", 1, "x")], 1, "have the column mapping id 1"),
            ([mapped("a", 1, "x"), mapped("b", 2, "x")], 2, "have the physical name 'x'"),
            ([mapped("a", 1), mapped("b", 3)], 2, "column ids up to 3"),
            (
                [mapped("a", 1, type_=struct(column("f")))],
                1,
                "column 'a.f' needs delta.columnMapping.id",
            ),
            (
                [mapped("a", 1, **{"delta.columnMapping.nested.ids": {"c1.element": 9}})],
                2,
                "column ids up to 9",
            ),
            ([mapped("a", 1, **{"delta.columnMapping.nested.ids": {"x": "9"}})], 2, "map to ids"),
        ],
    )
    def test_what_is_wrong_with_a_schema(self, columns, highest, why):
        at = state()
        new = named(*columns, highest=highest)
        assert why in why_not(new, at=at)

    def test_the_highest_id_must_be_told(self):
        new = metadata([mapped("a", 1)], properties={MODE: "name"})
        assert "maxColumnId is None" in why_not(new, at=state())

    def test_nested_fields_share_names_but_not_ids(self):
        inner = struct(mapped("f", 3, "f"))
        array = {"type": "array", "elementType": inner, "containsNull": True}
        map_ = {
            "type": "map",
            "keyType": struct(mapped("f", 5, "f")),
            "valueType": struct(mapped("f", 6, "f")),
            "valueContainsNull": True,
        }
        new = named(
            mapped("a", 1, type_=array), mapped("b", 2, type_=map_), mapped("c", 4), highest=6
        )
        self.created(new)
        schema = parse_schema(new.schema_string)
        assert {column.physical_path for column in mapped_columns(schema)} == {
            ("c1",),
            ("c1", "element", "f"),
            ("c2",),
            ("c2", "key", "f"),
            ("c2", "value", "f"),
            ("c4",),
        }

    def test_marks_without_a_mode(self):
        assert "is 'none'" in why_not(metadata([mapped("v", 1)]), at=state())


class TestModes:
    PLAIN = state(metadata(["a", "b"]), MAPPING)

    def test_names_stay_what_files_call_them(self):
        becomes(named(mapped("a", 1, "a"), mapped("b", 2, "b"), highest=2), at=self.PLAIN)
        other = named(mapped("a", 1, "b"), mapped("b", 2, "a"), highest=2)
        assert "the table's files have its name" in why_not(other, at=self.PLAIN)

    def test_a_column_may_come_with_it(self):
        new = named(mapped("a", 1, "a"), mapped("b", 2, "b"), mapped("z", 3), highest=3)
        becomes(new, at=self.PLAIN)

    @pytest.mark.parametrize(("old", "new"), [("none", "id"), ("name", "id"), ("id", "name")])
    def test_other_ways_are_closed(self, old, new):
        columns = (mapped("a", 1, "a"), mapped("b", 2, "b"))
        tables = {mode: named(*columns, highest=2, mode=mode) for mode in ("name", "id")}
        tables["none"] = metadata(["a", "b"])
        at = state(tables[old], MAPPING)
        assert f"cannot change from {old!r} to {new!r}" in why_not(tables[new], at=at)
        becomes(tables[new], at=at, operation="REPLACE TABLE")

    def test_the_feature_comes_with_the_property(self):
        new = named(mapped("v", 1, "v"), highest=1)
        mine = becomes(new, at=state(table_protocol=protocol(1, 4)))
        assert (mine.protocol.min_reader_version, mine.protocol.min_writer_version) == (2, 5)


class TestChanges:
    def test_columns_are_renamed_dropped_and_added(self):
        becomes(named(mapped("renamed", 1), mapped("b", 2), highest=2))
        becomes(named(mapped("b", 2), highest=2))
        becomes(named(mapped("a", 1), mapped("b", 2), mapped("z", 3), highest=3))
        becomes(named(mapped("b", 1), mapped("a", 2), highest=2))

    @pytest.mark.parametrize(
        ("columns", "highest", "why"),
        [
            ([mapped("a", 1), mapped("b", 3, "c2")], 3, "cannot change its id from 2 to 3"),
            ([mapped("a", 1), mapped("z", 2, "new")], 2, "may have been another's"),
            ([mapped("a", 1)], 1, "cannot sink from 2 to 1"),
        ],
    )
    def test_names_and_ids_belong_to_a_column_for_ever(self, columns, highest, why):
        assert why in why_not(named(*columns, highest=highest))

    @pytest.mark.parametrize("operation", ["RESTORE", "CLONE"])
    def test_columns_of_older_versions_come_back(self, operation):
        at = state(named(mapped("b", 2), highest=2), MAPPING)
        becomes(TWO, at=at, operation=operation)
        assert "may have been another's" in why_not(TWO, at=at)

    def test_even_where_the_table_is_replaced(self):
        new = named(mapped("x", 1, "other"), highest=2)
        assert "may have been another's" in why_not(new, operation="REPLACE TABLE")
        becomes(named(mapped("x", 3), highest=3), operation="REPLACE TABLE")


class TestPhysicalNames:
    """Partition values, statistics and predicates are about what files call a column."""

    BY_DAY = named(mapped("day", 1, type_="date"), mapped("v", 2), highest=2, partition_by=["day"])
    AT = state(BY_DAY, MAPPING)
    MINE = "2026-11-20"

    def test_partition_values(self):
        prepared(add("a", {"c1": self.MINE}), at=self.AT)
        invalid = refused(add("a", {"day": self.MINE}), at=self.AT)
        assert invalid.code is Code.PARTITION_MISMATCH
        assert refused(add("a", {"c1": "soon"}), at=self.AT).code is Code.PARTITION_MISMATCH
        prepared(remove("a", partitionValues={"c1": self.MINE}), at=self.AT)
        wrong = remove("a", partitionValues={"day": self.MINE})
        assert refused(wrong, at=self.AT).code is Code.PARTITION_MISMATCH

    def test_not_null(self):
        day = mapped("day", 1, type_="date")
        new = named({**day, "nullable": False}, mapped("v", 2), highest=2, partition_by=["day"])
        invalid = refused(add("a", {"c1": None}), at=state(new, MAPPING))
        assert "'day' is NOT NULL" in invalid.detail

    def test_removals_when_the_partitioning_changes(self):
        new = named(mapped("day", 1, type_="date"), mapped("v", 2), highest=2)
        gone = remove("a", partitionValues={"c1": self.MINE})
        prepared(new, gone, at=self.AT, operation="REPLACE TABLE")

    @pytest.mark.parametrize(("theirs", "conflicts"), [(MINE, True), ("2026-11-21", False)])
    def test_predicates(self, theirs, conflicts):
        mine = prepared(
            add("a", {"c1": self.MINE}), at=self.AT, reads=reads(f"day = '{self.MINE}'")
        )
        outcome = check_conflicts(mine, [winner(add("w", {"c1": theirs}))])
        assert isinstance(outcome, Conflict) is conflicts
        if conflicts:
            assert outcome.partition == {"day": self.MINE}

    def test_statistics(self):
        table = named(mapped("v", 1), highest=1, **{"tidegate.statisticsDisjointness": "true"})
        mine = prepared(add("a"), at=state(table, MAPPING), reads=reads("v > 5"))
        for low, high, conflicts in ((1, 5, False), (1, 6, True)):
            stats = {"numRecords": 2, "minValues": {"c1": low}, "maxValues": {"c1": high}}
            outcome = check_conflicts(mine, [winner(add("w", stats=json.dumps(stats)))])
            assert isinstance(outcome, Conflict) is conflicts

    def test_a_renamed_partition_column_is_the_same_one(self):
        renamed = named(
            mapped("tag", 1, type_="date"), mapped("v", 2), highest=2, partition_by=["tag"]
        )
        table = landed(ledger(self.BY_DAY, MAPPING), add("a", {"c1": self.MINE}))
        table = landed(table, renamed, operation="RENAME COLUMN")
        landed(table, add("b", {"c1": self.MINE}))
        assert code(table, add("c", {"c1": self.MINE}), read_version=1) is Code.METADATA_CHANGED


class TestWinners:
    PLAIN = state(metadata(["v"]), MAPPING)

    def test_switching_it_on_under_the_same_columns_is_tolerated(self):
        theirs = named(mapped("v", 1, "v"), highest=1)
        outcome = check_conflicts(prepared(add("a"), at=self.PLAIN), [winner(theirs)])
        assert isinstance(outcome, PreparedTransaction)
        assert outcome.metadata == theirs

    def test_anything_else_is_not(self):
        mine = prepared(add("a"), at=AT)
        for theirs in (
            named(mapped("renamed", 1), mapped("b", 2), highest=2),
            named(mapped("b", 2), highest=2),
            named(mapped("a", 1), mapped("b", 2), mapped("z", 3), highest=3),
        ):
            outcome = check_conflicts(mine, [winner(theirs)])
            assert isinstance(outcome, Conflict)
            assert outcome.code is Code.METADATA_CHANGED


class TestChangeDataFeed:
    """Delta keeps changes of columns apart from changes of files where both are fed."""

    FEED: ClassVar = {"delta.enableChangeDataFeed": "true"}
    PROTOCOL = features("changeDataFeed", readers=["columnMapping"])

    @pytest.mark.parametrize("file", [add("a"), remove("a"), cdc()])
    def test_renaming_and_files_do_not_go_together(self, file):
        at = state(named(mapped("a", 1), mapped("b", 2), highest=2, **self.FEED), self.PROTOCOL)
        for columns in ([mapped("z", 1), mapped("b", 2)], [mapped("a", 1)]):
            new = named(*columns, highest=2, **self.FEED)
            becomes(new, at=at)
            invalid = refused(new, file, at=at, operation="X")
            assert "change data feed" in invalid.detail
        more = named(mapped("a", 1), mapped("b", 2), mapped("z", 3), highest=3, **self.FEED)
        becomes(more, at=at)

    def test_nor_switching_it_on(self):
        at = state(metadata(["a"], properties=self.FEED), self.PROTOCOL)
        new = named(mapped("a", 1, "a"), highest=1, **self.FEED)
        assert "change data feed" in refused(new, add("f"), at=at, operation="X").detail


class TestAssign:
    def test_what_has_none_gets_ids_and_names_of_its_own(self):
        inner = struct(column("f"), mapped("g", 7))
        array = {"type": "array", "elementType": inner, "containsNull": True}
        map_ = {
            "type": "map",
            "keyType": "string",
            "valueType": struct(column("h")),
            "valueContainsNull": True,
        }
        fields = [column("a", array), column("b", map_), mapped("c", 2, "kept")]
        names = iter(f"col-{n}" for n in range(9))
        schema, last = assign(
            parse_schema(json.dumps(struct(*fields))), max_id=3, new_name=lambda: next(names)
        )
        columns = mapped_columns(schema)
        assert len(columns) == 6
        assert last == max(column.id for column in columns) == 11
        assert physical_name(schema.fields[2]) == "kept"

    def test_two_of_one_id_are_found_later(self):
        doubled = struct(mapped("a", 1, "x"), mapped("b", 1, "y"))
        with pytest.raises(InvalidSchema, match="id 1"):
            mapped_columns(parse_schema(json.dumps(doubled)))


def test_a_proposal_cannot_leave_the_assignment_to_the_service():
    offer = proposal(metadata(["a"], properties={MODE: "name"}), operation="X", read_version=0)
    assert offer.read_version == 0
    assert "needs delta.columnMapping.id" in why_not(offer.actions[0], at=state())
