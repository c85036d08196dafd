"""Predicate text of any size and kind is a predicate or an `InvalidPredicate`."""

import inspect
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.protocol.judging import matches, predicate, refusal
from tidegate_protocol.scan.predicate.syntax.dialect import MAX_BYTES
from tidegate_protocol.scan.predicate.syntax.lexing import MAX_DEPTH
from tidegate_protocol.scan.predicates import InvalidPredicate


def outcome(text: str) -> str:
    """Why the text is refused, or nothing."""
    try:
        predicate(text)
    except InvalidPredicate as error:
        return str(error)
    return ""


class TestLimits:
    def test_length(self):
        longest = "x = 1" + " " * (MAX_BYTES - 5)
        predicate(longest)
        refusal(longest + " ")
        refusal("x = '" + "é" * (MAX_BYTES // 2) + "'")

    @pytest.mark.parametrize(
        ("opening", "closing"),
        [
            ("(", ")"),
            ("NOT (", ")"),
            ("my_udf(", ")"),
            ("decimal(", ")"),
            ("struct(", ")"),
            ("array(map(", "))"),
            ("coalesce(x, ", ")"),
            ("x IN (", ")"),
            ("CASE WHEN ", " THEN true END"),
            ("my_udf(y -> ", ")"),
            ("x[", "]"),
            ("CAST(", " AS INT)"),
            ("x + (", ")"),
        ],
    )
    def test_nesting(self, opening, closing):
        levels = opening.count("(") + opening.count("[") + opening.count("CASE")
        text = opening * (MAX_DEPTH // levels - 1) + "true" + closing * (MAX_DEPTH // levels - 1)
        assert "nested" not in outcome(text)
        for depth in (MAX_DEPTH + 1, 1000):
            assert "nested deeper" in str(refusal(opening * depth + "true" + closing * depth))

    @pytest.mark.parametrize("prefix", ["NOT ", "- ", "~", "!"])
    def test_prefix_operators(self, prefix):
        assert "nested deeper" in str(refusal(prefix * 1000 + "x"))

    @pytest.mark.parametrize(
        "text",
        [
            "x" + " + 1" * 1000 + " = 1",
            "x || " * 1000 + "'a' = 'b'",
            "x" + "::int" * 1000 + " = 1",
            "x" + ".y" * 1000 + " = 1",
            "x" + "[0]" * 1000 + " = 1",
            "x = " * 1000 + "1",
            "x IS DISTINCT FROM " * 1000 + "1",
            "x AND NOT (true OR " * 20 + "true" + ")" * 20,
        ],
    )
    def test_chains(self, text):
        refusal(text)

    def test_a_deep_stack_is_no_other_error(self):
        def deep(levels: int) -> InvalidPredicate:
            return deep(levels - 1) if levels else refusal("(" * 20 + "x" + ")" * 20)

        used = len(inspect.stack())
        assert "deeply" in str(deep(sys.getrecursionlimit() - used - 150))

    def test_long_chains_of_and_and_or_are_no_nesting(self):
        ors = " OR ".join(f"x = {n}" for n in range(4000))
        assert matches(ors, "3999")
        assert not matches(ors, "4000")
        ands = " AND ".join(f"x <> {n}" for n in range(4000))
        assert not matches(ands, "3999")
        assert matches(ands, "4000")


WORDS = """
    x v s y 1 -1 1.5 1e3 5L 'a' 'a%' NULL true false X'61' DATE TIMESTAMP '2024-01-01' INTERVAL DAY
    ( ) ( ) [ ] , . ; : :: = <> < <=> >= + - * / % || ! & | ^ ~ -> => ? @ # $ { } \\ ` " ' --
    AND OR NOT IN IS LIKE ILIKE RLIKE BETWEEN ESCAPE DISTINCT FROM CASE WHEN THEN ELSE END CAST
    TRY_CAST AS int decimal(5,2) array<int> if( coalesce( year( my_udf( max( substring( trim(
    extract( SELECT WITH OVER UNION COLLATE DIV UNKNOWN ANY FOR lateral rand() current_date
"""
SENTENCES = st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join)


class TestAnyText:
    """Whatever the text, it is a predicate or an `InvalidPredicate`."""

    @staticmethod
    def judge(text: str) -> None:
        try:
            parsed = predicate(text)
        except InvalidPredicate as refused:
            error = refused
        else:
            error = None
        if error is not None:
            assert error.position is None or 0 <= error.position <= len(text)
            return
        for value in ("1", "0", None, "?"):
            if parsed.may_match({"x": value}, None):
                assert parsed.matches_partition({"x": value})

    @settings(max_examples=400)
    @given(st.text())
    @example("x in (")
    @example("x::")
    @example("cast(as)")
    @example("case")
    @example("\x00")
    def test_of_any_characters(self, text):
        self.judge(text)

    @settings(max_examples=1500)
    @given(SENTENCES)
    def test_of_words_of_sql(self, text):
        self.judge(text)

    @settings(max_examples=300)
    @given(st.text(alphabet="x1'\"`\\()=<>!-+*/.,:% \n{}#", max_size=30))
    def test_of_symbols(self, text):
        self.judge(text)


def test_a_very_long_partition_value_may_match():
    """Each term may go through all of it."""
    judged = predicate("x = 'a'", "string")
    assert not judged.matches_partition({"x": "b" * 16 * 1024})
    assert judged.matches_partition({"x": "b" * (16 * 1024 + 1)})
    assert judged.may_match({"x": "b" * (16 * 1024 + 1)}, None)
    assert predicate("x IS NULL", "string").may_match({"x": "b" * (16 * 1024 + 1)}, None)
