"""Predicate text: what is refused, and with which place."""

import pytest

from tests.protocol.judging import matches, predicate, refusal


class TestSyntaxErrors:
    @pytest.mark.parametrize(
        ("text", "position"),
        [
            ("x =", 2),
            ("x = 1 y", 6),
            ("x = 1 AND", 6),
            ("x = 1 AND AND x = 2", 10),
            ("(x = 1", 5),
            ("x = 1)", 5),
            ("x = 'a", 4),
            ("x = `a", 4),
            ('x = "a', 4),
            ("x IN (1, )", 7),
            ("x = 1, x = 2", 5),
            ("x = 1 AS y", 6),
            ("x NOT NULL", 2),
            ("x\n= 1\nAND )", 10),
            ("x = 1.5.2", 4),
            ("x = 1e", 4),
            ("x = 5q", 4),
            ("x = X'0g'", None),
            ("x = X '0g'", 4),
            ("x IS 5", 0),
            ("x IN ()", 0),
            ("x IN x", 0),
            ("x BETWEEN 1 2", None),
            ("CASE WHEN true x END", None),
            ("CASE WHEN true THEN x", 20),
            ("x LIKE 'a' ESCAPE 'ab'", 0),
            ("x = NOT true", 0),
            ("1 + NOT x", 8),
            ("CAST(x) = 1", 0),
            ("CAST(x AS INT AND x = 1)", 10),
            ("CAST(x AS INT", 10),
            ("CAST(x AS ) = 1", 7),
            ("x:: = 1", 4),
            ("x::", 1),
            ("x = DATE '2024-13-01'", 4),
            ("x = TIMESTAMP '2024-02-30 00:00:00'", 4),
            ("x = 300Y", 4),
            ("x = 99999S", 4),
            ("x = 9223372036854775808L", 4),
            ("x = 1e999", 4),
            (f"x = {'9' * 39}", 4),
            ("x = ?", 4),
            ("x = :p", 4),
            ("x = @p", 4),
            ("x = ${p}", 4),
            ("{{ x }} = 1", 0),
            ("x = N'a'", 4),
            ("x -> 1", 2),
            ("x \\ 1", 2),
            ("#", 0),
        ],
    )
    def test_are_refused_with_their_place(self, text, position):
        error = refusal(text)
        assert error.position == position, str(error)
        assert position is None or f"(at character {position + 1})" in str(error)

    @pytest.mark.parametrize("text", ["", " ", "\n\t", "()", "*", "x.*", "=", "NOT", "'", ";"])
    def test_of_texts_without_an_expression(self, text):
        refusal(text)

    def test_surrogates_are_refused(self):
        assert refusal("x = '\ud800'").position == 5

    def test_the_message_does_not_repeat_a_long_text(self):
        assert len(str(refusal(f"x = '{'a' * 10_000}"))) < 400


class TestTricks:
    """What could make the text mean another thing to one reader than to the next."""

    @pytest.mark.parametrize(
        ("text", "position"),
        [
            ("x = 1 -- AND x = 2", 4),
            ("x = 1 /* AND x = 2 */", 4),
            ("/* */ x = 1", 6),
            ("x = 1 /*+ hint */", 4),
            ("x = /* /* nested */ */ 1", 23),
            ("x = 1--1", 4),
            ("{# comment #} x = 1", 14),
        ],
    )
    def test_comments(self, text, position):
        assert "comments" in str(refusal(text))

    @pytest.mark.parametrize("text", ["x = 1;", "x = 1; DROP TABLE t", ";x = 1"])
    def test_statements(self, text):
        assert "';'" in str(refusal(text))

    @pytest.mark.parametrize(
        "text",
        [
            "x = (SELECT 1)",
            "x IN (SELECT x FROM t)",
            "EXISTS (SELECT 1)",
            "SELECT 1",
            "x = 1 UNION SELECT 1",
            "(select max(x) from t) = x",
        ],
    )
    def test_subqueries(self, text):
        refusal(text)

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("max(x) = 1", "aggregate"),
            ("count(*) > 1", "aggregate"),
            ("COUNT(DISTINCT x) > 1", "aggregate"),
            ("`sum`(x) = 1", "aggregate"),
            ("my_udf(sum(x)) = 1", "aggregate"),
            ("x + avg(x) > 1", "aggregate"),
            ("first(x) IGNORE NULLS = 1", "aggregate"),
            ("row_number() = 1", "window"),
            ("sum(x) OVER (PARTITION BY x) = 1", "window"),
            ("rank() over () = 1", "window"),
            ("explode(x) = 1", "generator"),
        ],
    )
    def test_functions_of_many_rows(self, text, kind):
        assert kind in str(refusal(text))

    def test_quantifiers_of_like_are_no_aggregates(self):
        assert matches("x LIKE ANY ('a', 'b')", "c", "string")
        assert matches("x NOT LIKE ALL ('a', 'b')", "c", "string")
        refusal("any(x) = 1")


class TestConditions:
    @pytest.mark.parametrize(
        "text",
        [
            "x",
            "1",
            "x + 1",
            "'true'",
            "NULL",
            "NOT x",
            "x AND true",
            "true OR x",
            "s",
            "x = 1 AND v",
        ],
    )
    def test_other_values_are_refused(self, text):
        assert "expected a condition" in str(refusal(text))

    @pytest.mark.parametrize("text", ["true", "FALSE", "NOT NULL", "my_udf(x)", "x = 1"])
    def test_are_accepted(self, text):
        predicate(text)
