"""Predicate text: what is refused, and with which place."""

import pytest

from tests.protocol.judging import predicate, refusal


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

    @pytest.mark.parametrize("text", ["SELECT 1", "x = 1 UNION SELECT 1", "(SELECT 1"])
    def test_a_query_alone_is_no_predicate(self, text):
        assert "expected a query in parentheses" in str(refusal(text))


class TestQueries:
    """What stands in a query or a window is read, to tell it from text that is none."""

    @pytest.mark.parametrize(
        ("text", "position"),
        [
            ("x IN (SELECT FROM WHERE)", 6),
            ("x IN (SELECT 1; SELECT 2)", 6),
            ("x IN (SELECT 1) AND x IN (SELECT x FROM)", 26),
            ("x = (SELECT 1 2 3)", 5),
            ("x = (SELECT array(map()", 5),
            ("rank() OVER (a b c) = 1", 7),
            ("rank() OVER (ORDER BY x = 1", 7),
            ("rank() OVER", 7),
            ("x.*", 0),
            ("x = *", 4),
        ],
    )
    def test_what_is_none_is_refused(self, text, position):
        assert refusal(text).position == position

    def test_comments_in_them_are_refused_too(self):
        assert "comments" in str(refusal("x IN (SELECT 1 -- )\n)"))
        assert "comments" in str(refusal("rank() OVER (ORDER BY x /* */) = 1"))

    def test_they_may_be_too_deep(self):
        assert "deeper" in str(refusal("x IN (SELECT " + "(" * 2000 + "1" + ")" * 2001))
        assert "deeply" in str(refusal("x IN (SELECT " + "NOT " * 2000 + "1)"))


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
