"""What tables that others made may have, though a new one may not."""

import json
from typing import ClassVar

import pytest

from tests.builders.actions import add, commit_info, decoded, features, metadata, protocol
from tests.builders.ledgers import TABLE, landed, ledger, prepared, state
from tests.builders.lines import column
from tests.protocol.racing import foreign, refused
from tests.repository import ROOT
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.properties import InvalidProperty, TableProperties
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import InvalidActionError, decode
from tidegate_protocol.replay.foreign import refusal

GOLDEN = ROOT.parent / "shared" / "golden"


class TestMetadata:
    def test_one_without_a_schema_has_no_columns(self):
        bare = decoded({"metaData": {"id": "x", "format": {"provider": "parquet", "options": {}}}})
        assert (bare.partition_columns, bare.configuration) == ((), {})
        table = foreign(ledger(), commit_info(), bare)
        assert table.read(TABLE).metadata == bare
        prepared(add("a"), at=state(bare))

    def test_a_new_one_needs_columns(self):
        bare = decoded({"metaData": {"id": "x"}})
        assert refused(bare, at=state(), operation="REPLACE TABLE").code is Code.INVALID_SCHEMA

    def test_columns_that_a_new_table_cannot_have_stay(self):
        odd = metadata([column("v"), column("a b", "void"), column("V")])
        table = landed(foreign(ledger(), commit_info(), odd), add("a"))
        renamed = metadata([column("v"), column("a b", "void"), column("V")], description="d")
        landed(table, renamed, operation="SET TBLPROPERTIES")
        assert refused(odd, at=state(), operation="X").code is Code.INVALID_SCHEMA

    def test_expressions_that_a_new_table_cannot_have_stay(self):
        odd = column("v", **{"delta.generationExpression": 1})
        at = state(metadata([odd]), protocol(1, 4))
        prepared(metadata([odd], description="d"), at=at, operation="X")
        assert refused(metadata([odd, "w"]), at=at, operation="X").code is Code.INVALID_SCHEMA


class TestProperties:
    ODD: ClassVar = {
        "delta.autoOptimize": "maybe",
        "delta.sorcery": "x",
        "delta.enableExpiredLogCleanup": "",
    }

    def test_switches_that_no_rule_goes_by(self):
        assert TableProperties.parse(self.ODD).enabled == frozenset()
        at = state(metadata(properties=self.ODD))
        prepared(add("a"), at=at)
        prepared(metadata(properties={**self.ODD, "owner": "o"}), at=at, operation="X")

    def test_the_others_must_be_clear(self):
        for name in ("delta.appendOnly", "delta.enableRowTracking", "delta.rowTrackingSuspended"):
            with pytest.raises(InvalidProperty, match=name):
                TableProperties.parse({name: "maybe"})

    @pytest.mark.parametrize("value", ["maybe", "perhaps"])
    def test_a_value_that_changes_is_a_new_one(self, value):
        at = state(metadata(properties={"delta.autoOptimize": "maybe"}))
        new = metadata(properties={"delta.autoOptimize": value}, name="n")
        if value == "maybe":
            prepared(new, at=at, operation="X")
        else:
            assert "delta.autoOptimize" in refused(new, at=at, operation="X").detail

    def test_a_switch_without_its_feature_is_none(self):
        on = {
            "delta.enableRowTracking": "true",
            "delta.rowTrackingSuspended": "true",
        }
        mine = prepared(add("a", stats=None), at=state(metadata(properties=on)))
        assert not mine.row_ids_released
        both = state(metadata(properties=on), features("rowTracking", "domainMetadata"))
        assert refused(add("a"), at=both).code is Code.INVALID_ACTION


def test_everything_in_the_golden_tables_can_be_carried():
    if not GOLDEN.exists():
        pytest.skip(f"the golden tables are not beside the checkout, at ../{GOLDEN.parent.name}")
    seen = 0
    for path in sorted(GOLDEN.glob("**/_delta_log/*.json")):
        for text in path.read_bytes().splitlines():
            try:
                action = decode(text)
            except InvalidActionError as error:
                raise AssertionError(f"{path.parent.parent.name}/{path.name}: {error}") from None
            assert refusal(action) is None, f"{path.parent.parent.name}/{path.name}"
            if isinstance(action, Metadata):
                json.loads(action.schema_string)
                seen += 1
    assert seen
