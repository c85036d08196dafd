"""Identity, generated and default columns: what their schema must say."""

import pytest

from tests.builders.actions import add, features, metadata, protocol
from tests.builders.ledgers import prepared, state
from tests.builders.lines import column
from tests.protocol.racing import refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.table_features import implied_features

START, STEP = "delta.identity.start", "delta.identity.step"
MARK = "delta.identity.highWaterMark"
EXPLICIT = "delta.identity.allowExplicitInsert"
GENERATED = "delta.generationExpression"


def identity(mark=None, *, start=1, step=1, type_="long", name="v", **fields):
    marks = {START: start, STEP: step, EXPLICIT: False, **fields}
    if mark is not None:
        marks[MARK] = mark
    return metadata([column(name, type_, **marks), "w"])


def why_not(new, at=None, operation="X"):
    invalid = refused(new, at=at or state(), operation=operation)
    assert invalid.code is Code.INVALID_SCHEMA
    return invalid.detail


class TestIdentity:
    AT = state(identity(10), features("identityColumns"))

    def test_the_feature_comes_with_the_column(self):
        at = state(metadata(["w"]), protocol(1, 5))
        mine = prepared(identity(), at=at, operation="X")
        assert "identityColumns" in implied_features(mine.protocol)

    @pytest.mark.parametrize(
        "new",
        [
            identity(start="1"),
            identity(step=0),
            identity(step=True),
            identity(mark="x"),
            identity(mark=2**63),
            identity(type_="integer"),
            identity(**{EXPLICIT: "yes"}),
            metadata([column("v", "long", **{START: 1})]),
            metadata([column("v", "long", **{MARK: 1})]),
        ],
    )
    def test_what_it_needs(self, new):
        assert "an identity column has the type long" in why_not(new)

    def test_it_cannot_be_computed_twice_over_nor_be_nested(self):
        both = identity(**{GENERATED: "w"})
        assert "cannot be generated and an identity column" in why_not(both)
        field = column("f", "long", **{START: 1, STEP: 1})
        nested = metadata([column("s", {"type": "struct", "fields": [field]})])
        assert "'s.f': a nested field" in why_not(nested)

    @pytest.mark.parametrize("mark", [10, 11])
    def test_numbers_go_on(self, mark):
        prepared(identity(mark), add("a"), at=self.AT)

    @pytest.mark.parametrize("mark", [9, None])
    def test_numbers_do_not_go_back(self, mark):
        assert "goes back from 10" in why_not(identity(mark), self.AT, "WRITE")

    def test_downwards_back_is_up(self):
        at = state(identity(-10, step=-1), features("identityColumns"))
        prepared(identity(-11, step=-1), at=at, operation="WRITE")
        assert "goes back" in why_not(identity(-9, step=-1), at, "WRITE")

    def test_a_command_may_set_them_by_what_it_finds(self):
        prepared(identity(3), at=self.AT, operation="CHANGE COLUMN")

    @pytest.mark.parametrize("new", [identity(10, start=2), identity(10, step=2)])
    def test_the_row_of_numbers_stays(self, new):
        assert "start or step" in why_not(new, self.AT)
        prepared(new, at=self.AT, operation="REPLACE TABLE")

    def test_a_column_that_becomes_an_ordinary_one(self):
        prepared(metadata([column("v", "long"), "w"]), at=self.AT, operation="X")
        prepared(identity(1), at=state(metadata([column("v", "long"), "w"])), operation="X")


class TestGenerated:
    def test_an_expression(self):
        new = metadata(["a", column("v", **{GENERATED: "a + 1"})])
        mine = prepared(new, at=state(), operation="X")
        assert "generatedColumns" in implied_features(mine.protocol)

    @pytest.mark.parametrize("expression", ["", "  ", 1, None])
    def test_what_is_none(self, expression):
        new = metadata(["a", column("v", **{GENERATED: expression})])
        assert "is not the text of an expression" in why_not(new)

    def test_not_of_variants_nor_nested(self):
        assert "variant" in why_not(metadata(["a", column("v", "variant", **{GENERATED: "a"})]))
        field = column("f", **{GENERATED: "1"})
        nested = metadata([column("s", {"type": "struct", "fields": [field]})])
        assert "nested field" in why_not(nested)


class TestDefaults:
    @pytest.mark.parametrize(
        ("type_", "default"), [("integer", "1 + 1"), ("variant", "null"), ("string", "'x'")]
    )
    def test_an_expression(self, type_, default):
        new = metadata(["v", column("w", type_, CURRENT_DEFAULT=default)])
        mine = prepared(new, at=state(), operation="X")
        assert "allowColumnDefaults" in implied_features(mine.protocol)

    @pytest.mark.parametrize(("type_", "default"), [("integer", ""), ("variant", "1")])
    def test_what_is_none(self, type_, default):
        why_not(metadata(["a", column("v", type_, CURRENT_DEFAULT=default)]))
