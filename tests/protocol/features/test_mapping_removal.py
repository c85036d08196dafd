"""A table that loses its column mapping (Delta: RemoveColumnMappingCommand)."""

import pytest

from tests.builders.actions import add, metadata, remove
from tests.builders.ledgers import state, winner
from tests.builders.lines import column
from tests.protocol.features.test_column_mapping import (
    MAPPING,
    MODE,
    becomes,
    mapped,
    named,
    struct,
    why_not,
)
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import Conflict


class TestRemoval:
    @pytest.mark.parametrize("operation", ["REMOVE COLUMN MAPPING", "SET TBLPROPERTIES"])
    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_mapping_is_removed_with_its_marks(self, operation, mode):
        """As Delta does it: the schema without marks, the highest id gone, every file again."""
        at = state(named(mapped("a", 1), mapped("b", 2), highest=2, mode=mode), MAPPING)
        new = metadata(["a", "b"], properties={MODE: "none"})
        files = (remove("old", dataChange=False), add("new", dataChange=False))
        mine = becomes(new, *files, at=at, operation=operation)
        assert mine.metadata == new
        assert check_live_files(mine, [add("old")]) is None
        violation = check_live_files(mine, [add("left")])
        assert violation is not None
        assert violation.path == "left"
        lost = check_conflicts(mine, [winner(add("w"))])
        assert isinstance(lost, Conflict)
        assert lost.path == "w"

    def test_files_stay_where_they_call_columns_as_the_schema_does(self):
        at = state(named(mapped("a", 1, "a"), mapped("b", 2, "b"), highest=2), MAPPING)
        assert becomes(metadata(["a", "b"]), at=at).demands == ()
        once_more = named(mapped("a", 1, "a"), mapped("b", 2, "b"), highest=3)
        mine = becomes(metadata(["a", "b"]), at=state(once_more, MAPPING))
        # A third column was dropped, and files may have it yet.
        assert mine.demands == (FileDemand.REWRITTEN,)

    def test_columns_are_told_by_their_names_then(self):
        swapped = named(mapped("a", 1, "b", "long"), mapped("b", 2, "a"), highest=2)
        at = state(swapped, MAPPING)
        becomes(metadata([column("a", "long"), "b"]), at=at)
        for new in (["a", "b"], [column("a", "long")], [column("a", "long"), "c"]):
            why_not(metadata(new), at=at)
        inner = struct(mapped("f", 2, "g"))
        array = {"type": "array", "elementType": inner, "containsNull": True}
        map_ = {"type": "map", "keyType": "long", "valueType": array, "valueContainsNull": True}
        bare = {"type": "map", "keyType": "long", "valueContainsNull": True}
        bare["valueType"] = {**array, "elementType": struct(column("f"))}
        nested = state(named(mapped("a", 1, type_=map_), highest=2), MAPPING)
        becomes(metadata([column("a", bare)]), at=nested)

    def test_marks_may_be_left_under_its_own_name_only(self):
        left = named(mapped("a", 1), mapped("b", 2), highest=2, mode="none")
        assert becomes(left, operation="REMOVE COLUMN MAPPING").demands == ()
        assert "cannot change from 'name' to 'none'" in why_not(left)

    def test_restoring_does_not_remove_it(self):
        """Delta refuses it, too: files of later versions would be read by other names."""
        new = metadata(["a", "b"])
        assert "cannot change from 'name' to 'none'" in why_not(new, operation="RESTORE")
