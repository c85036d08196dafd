"""Predicates over partition values: every operator, in three-valued logic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.judging import UNDECIDED, matches, predicate, truth

ONE, NULL = "1", None


class TestMatch:
    """Only what is true matches; false and null do not."""

    @pytest.mark.parametrize(
        ("value", "expected"), [("1", True), ("2", False), (None, False), ("", False)]
    )
    def test_a_comparison(self, value, expected):
        assert matches("x = 1", value) is expected

    def test_columns_are_found_whatever_their_case(self):
        assert matches("X = 1 AND `x` = 1", "1")

    def test_a_value_that_is_not_of_the_type_may_be_anything(self):
        assert matches("x = 1", "one")
        assert matches("x <> 1", "one")
        assert matches("x IS NULL", "one")

    def test_a_missing_value_may_be_anything(self):
        assert predicate("x = 1").matches_partition({})
        assert predicate("x = 1").may_match({}, None)

    def test_partition_values_are_found_by_physical_name(self):
        columns = {"x": "integer"}
        field = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
        mapped = mapped_predicate("x = 1", columns, field)
        assert mapped.matches_partition({"col-1": "1"})
        assert not mapped.matches_partition({"col-1": "2"})

    def test_repeated_questions_have_the_same_answer(self):
        parsed = predicate("x > 5")
        answers = [parsed.matches_partition({"x": str(n)}) for n in [1, 9, 1, 9]]
        assert answers == [False, True, False, True]

    def test_the_text_is_kept(self):
        assert predicate("x > 5").text == "x > 5"


def mapped_predicate(text, columns, metadata):
    import json

    from tidegate_protocol.predicates import parse_predicate
    from tidegate_protocol.schema import parse_schema

    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": metadata}
        for name, type_ in columns.items()
    ]
    schema = parse_schema(json.dumps({"type": "struct", "fields": fields}))
    return parse_predicate(text, schema, tuple(columns))
