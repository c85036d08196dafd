"""Reading takes so many steps for each character, whatever the text nests in itself: the parsing
library tries some words in two roles, and all that stands in them again for each."""

from collections.abc import Callable

import pytest

from tests.protocol.judging import matches, schema
from tidegate_protocol.scan.predicate.syntax.dialect import MAX_DEPTH
from tidegate_protocol.scan.predicates import InvalidPredicate, check_expression, parse_predicate

PLACES = (
    "{} = 1",
    "x IN ({})",
    "x IN (VALUES {})",
    "x IN (VALUES {} 1 1)",
    "x IN (SELECT {})",
    "x IN (SELECT {} 1 1)",
    "x IN (SELECT 1 FROM {})",
    "x IN (SELECT 1 FROM t {})",
    "x IN (WITH a AS (SELECT {}) SELECT 1)",
    "rank() OVER ({}) = 1",
    "rank() OVER (PARTITION BY x ORDER BY {}) = 1",
    "{}",
    "overlay('a' PLACING 'b' FROM {})",
)
NESTED = [
    # What is a type's name as well: behind a parenthesis the library reads types first.
    *((f"{name}(", ")") for name in ("struct", "object", "union", "array", "map", "nested")),
    *((f"{name}(", ")") for name in ("decimal", "char", "timestamp", "date", "interval", "time")),
    *((f"{name}(", ")") for name in ("nullable", "enum", "json", "variant", "ref", "vector")),
    ("struct<a: int>(", ")"),
    ("array<int>(", ")"),
    ("CAST(1 AS struct<a: ", ">)"),
    ("CAST(1 AS decimal(", "))"),
    ("x::struct<a: ", ">"),
    ("x::decimal(", ")"),
    ("date(struct(", "))"),
    ("decimal(struct(union(", ")))"),
    ("(", ")"),
    ("(1, ", ")"),
    ("[", "]"),
    ("x[", "]"),
    ("{'a': ", "}"),
    ("f(", ")"),
    ("f(a => ", ")"),
    ("f(a -> ", ")"),
    ("f((a, b) -> ", ")"),
    ("x.f(", ")"),
    ("CAST(", " AS int)"),
    ("CASE WHEN ", " THEN 1 END"),
    ("CASE ", " WHEN 1 THEN 1 END"),
    ("IF(", ", 1, 2)"),
    ("INTERVAL (", ") DAY"),
    ("INTERVAL ", " DAY"),
    ("NOT ", ""),
    ("- ", ""),
    ("x IN (", ")"),
    ("x BETWEEN (", ") AND 1"),
    ("x LIKE ANY (", ")"),
    ("EXTRACT(DAY FROM ", ")"),
    ("TRIM(BOTH FROM ", ")"),
    ("SUBSTRING(", " FROM 1 FOR 1)"),
    ("sum(x) OVER (ORDER BY ", ")"),
    ("sum(x) FILTER (WHERE ", ")"),
    ("unnest(", ")"),
    ("TABLE(", ")"),
    ("EXISTS (SELECT ", ")"),
    ("(SELECT ", ")"),
    ("(VALUES ", ")"),
    ("(SELECT * FROM ", ")"),
    ("(SELECT * FROM (SELECT ", ") a)"),
    ("(WITH a AS (SELECT ", ") SELECT * FROM a)"),
    ("(WITH a AS ", " SELECT * FROM a)"),
    ("((SELECT 1) UNION (SELECT ", "))"),
    ("(a JOIN b JOIN c JOIN ", ")"),
    ("a JOIN b JOIN c JOIN ", ""),
    ("a PIVOT (sum(", ") FOR a IN (1))"),
    ("a LATERAL VIEW explode(", ") b AS c"),
    ("LATERAL (SELECT ", ")"),
]
OF_A_CHARACTER = 12
AT_LEAST = 1_000
COLUMNS = schema({"x": "integer"})


class TooOften(BaseException):
    """Nothing that anybody catches on the way."""


def bounded(text: str) -> Callable[[], None]:
    """To be called at each step of reading the text: raises `TooOften` at one too many."""
    left = AT_LEAST + OF_A_CHARACTER * len(text)

    def step() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise TooOften(text)

    return step


def outcome(text: str) -> str:
    """Why the predicate is refused, or nothing; in so many steps."""
    try:
        parse_predicate(text, COLUMNS, (), pause=bounded(text))
    except InvalidPredicate as error:
        return str(error)
    return ""


def expression_outcome(text: str) -> str:
    """The same of an expression of a table's definition."""
    try:
        check_expression(text, COLUMNS, is_condition=False, pause=bounded(text))
    except InvalidPredicate as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("opening", "closing"), NESTED)
def test_whatever_is_nested(opening, closing):
    deep = [(MAX_DEPTH // 2, "a b"), (MAX_DEPTH - 2, "1")]
    for place in PLACES:
        for depth, within in deep:
            text = place.format(f"{opening * depth}{within}{closing * depth}")
            outcome(text)
            expression_outcome(text)


class TestQueries:
    DEEP = "struct(" * 20 + "1" + ")" * 20

    @pytest.mark.parametrize(
        "text", ["x IN (VALUES {})", "x = (SELECT {})", "f() OVER (ORDER BY {}) = x"]
    )
    def test_that_take_too_many_are_what_they_look_like(self, text):
        deep = text.format(self.DEEP)
        assert not outcome(deep)
        assert not outcome(f"{deep} OR x IN (SELECT FROM WHERE)")
        assert "column" in outcome(f"{deep} OR nowhere = 1")
        assert matches(deep, "1")
        assert not matches(f"{deep} AND x = 2", "1")

    def test_none_is_believed_that_takes_fewer(self):
        for text in ("x IN (VALUES struct(struct(1)) 1 1)", "x IN (SELECT FROM WHERE)"):
            assert outcome(text)

    def test_one_of_a_definition_has_to_be_read(self):
        assert "too complex" in expression_outcome(f"x = (SELECT {self.DEEP})")
        assert "too complex" in expression_outcome(f"overlay('a' PLACING 'b' FROM {self.DEEP})")
        assert not expression_outcome("overlay('a' PLACING 'b' FROM struct(struct(struct(1))))")

    def test_they_are_not_nested_deeper_than_all_else(self):
        for text in (
            "x IN (SELECT {})",
            "rank() OVER (ORDER BY {}) = 1",
            "x IN ((VALUES 1) UNION VALUES {})",
        ):
            assert not outcome(text.format("f(" * 21 + "1" + ")" * 21))
            for opening, closing in ("()", "[]"):
                deep = text.format(opening * 25 + "1" + closing * 25)
                assert "nested deeper than 24" in outcome(deep)

    @pytest.mark.parametrize(
        ("text", "is_query"),
        [
            ("((SELECT 1))", True),
            ("(((SELECT 1) UNION VALUES 2))", True),
            ("(((SELECT 1) MINUS (SELECT 2)) ORDER BY 1 LIMIT 1)", True),
            ("((WITH a AS (SELECT 1) SELECT * FROM a) OFFSET 1)", True),
            ("((VALUES 1) CLUSTER BY 1)", True),
            ("((VALUES 1) UNION 1)", False),
            ("((SELECT 1) UNION 2)", False),
            ("((SELECT 1) WHERE x = 1)", False),
            ("((SELECT 1 2 3))", False),
        ],
    )
    def test_in_parentheses_in_parentheses(self, text, is_query):
        assert bool(outcome(f"x IN {text}")) is not is_query
        assert bool(outcome(f"x = {text}")) is not is_query

    def test_in_parentheses_of_something_else(self):
        for text in ("((VALUES 1) = x)", "(((SELECT 1)) = ((SELECT 2)))", "(((VALUES 1)) + 1 = x)"):
            assert not outcome(text)
            assert not outcome(f"(((((({text}))))))")

    def test_a_text_in_many_parentheses_is_read_once(self):
        query = "VALUES " + ", ".join("1" * 50)
        steps = []
        for depth in (1, 20):
            found = 0

            def step() -> None:
                nonlocal found
                found += 1

            parse_predicate(f"{'(' * depth}({query}) = x{')' * depth}", COLUMNS, (), pause=step)
            steps.append(found)
        assert steps[1] < 2 * steps[0]
