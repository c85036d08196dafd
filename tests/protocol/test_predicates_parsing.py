"""Predicate text: what is read, and what is refused with its place."""

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.protocol.judging import matches, predicate
from tidegate_protocol.predicate.dialect import MAX_BYTES
from tidegate_protocol.predicate.lexing import MAX_DEPTH
from tidegate_protocol.predicates import InvalidPredicate, Predicate


def refusal(text: str, columns: object = "integer") -> InvalidPredicate:
    with pytest.raises(InvalidPredicate) as caught:
        predicate(text, columns)
    return caught.value


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
        ["x", "1", "x + 1", "'true'", "NULL", "NOT x", "x AND true", "true OR x", "s", "x = 1 AND v"],
    )
    def test_other_values_are_refused(self, text):
        assert "expected a condition" in str(refusal(text))

    @pytest.mark.parametrize("text", ["true", "FALSE", "NOT NULL", "my_udf(x)", "x = 1"])
    def test_are_accepted(self, text):
        predicate(text)


class TestColumns:
    STRUCT = {  # noqa: RUF012
        "type": "struct",
        "fields": [
            {"name": "b.c", "type": "integer", "nullable": True, "metadata": {}},
            {
                "name": "d",
                "type": {
                    "type": "struct",
                    "fields": [{"name": "E", "type": "long", "nullable": True, "metadata": {}}],
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }
    COLUMNS = {  # noqa: RUF012
        "x": "integer",
        "a": STRUCT,
        "with space": "integer",
        "tick`s": "integer",
        "dotted.name": "integer",
        "m": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        "l": {"type": "array", "elementType": STRUCT, "containsNull": True},
    }

    @pytest.mark.parametrize(
        "text",
        [
            "x = 1",
            "`x` = 1",
            "X = 1",
            "a.`b.c` = 1",
            "A.D.e = 1",
            "`a`.`d`.`e` = 1",
            "`with space` = 1",
            "`WITH SPACE` = 1",
            "`tick``s` = 1",
            "`dotted.name` = 1",
            "m.anything = 1",
            "m['key'] = 1",
            "l.d.e IS NULL",
            "l[0].d.e = 1",
            "element_at(m, 'k') = 1",
            "exists(l, e -> e.d.e > x)",
            "transform(l, (e, i) -> i)[0] = 1",
            "struct(x AS y).y = 1",
            "date_add(DAY, 1, DATE '2024-01-01') = DATE '2024-01-02'",
            "current_date = DATE '2024-01-01'",
            "current_user() = 'me'",
        ],
    )
    def test_known_ones(self, text):
        predicate(text, self.COLUMNS)

    @pytest.mark.parametrize(
        ("text", "name", "position"),
        [
            ("y = 1", "y", 0),
            ("x = y", "y", 4),
            ("x = 1 AND Y > 2", "Y", 10),
            ("t.x = 1", "t.x", 0),
            ("x.y = 1", "x.y", 0),
            ("a.b = 1", "a.b", 0),
            ("a.d.f = 1", "a.d.f", 0),
            ("a.b.c = 1", "a.b.c", 0),
            ("dotted.name = 1", "dotted.name", 0),
            ("my_udf(x, y) = 1", "y", 10),
            ("rand() < y", "y", 9),
            ("exists(l, e -> e = y)", "y", 19),
            ("x IN (1, y)", "y", 9),
            ("0x1F = x", None, None),
            ("a.d.E.f.g.h = 1", "a.d.E.f.g.h", 0),
        ],
    )
    def test_unknown_ones_are_refused(self, text, name, position):
        error = refusal(text, self.COLUMNS)
        if name is not None:
            assert f"no column '{name}'" in str(error)
            assert error.position == position

    @pytest.mark.parametrize(
        "word",
        """
        date timestamp day year month interval end start order group user value values key type
        left right select from to table row rows index current_date div escape then when else if
        first last filter over all any some distinct unknown string int array map struct show
        comment add set desc default union join limit where with window default cluster match
        """.split(),  # noqa: SIM905
    )
    def test_may_be_called_like_words_of_sql(self, word):
        parsed = predicate(f"{word} = 1 AND 2 > {word} OR {word} IN (5)", {word: "integer"}, [word])
        assert parsed.matches_partition({word: "1"})
        assert not parsed.matches_partition({word: "2"})

    def test_a_column_comes_before_a_function_of_its_name(self):
        parsed = predicate("current_date = 1", {"current_date": "integer"}, ["current_date"])
        assert not parsed.matches_partition({"current_date": "2"})


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
        try:
            predicate(text)
        except InvalidPredicate as error:
            assert "nested" not in str(error)
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

        used = len(__import__("inspect").stack())
        assert "deeply" in str(deep(sys.getrecursionlimit() - used - 150))

    def test_long_chains_of_and_and_or_are_no_nesting(self):
        ors = " OR ".join(f"x = {n}" for n in range(4000))
        assert matches(ors, "3999")
        assert not matches(ors, "4000")
        ands = " AND ".join(f"x <> {n}" for n in range(4000))
        assert not matches(ands, "3999")
        assert matches(ands, "4000")


WORDS = st.sampled_from(
    """
    x v s y 1 -1 1.5 1e3 5L 'a' 'a%' NULL true false X'61' DATE TIMESTAMP '2024-01-01' INTERVAL DAY
    ( ) ( ) [ ] , . ; : :: = <> < <=> >= + - * / % || ! & | ^ ~ -> => ? @ # $ { } \\ ` " ' --
    AND OR NOT IN IS LIKE ILIKE RLIKE BETWEEN ESCAPE DISTINCT FROM CASE WHEN THEN ELSE END CAST
    TRY_CAST AS int decimal(5,2) array<int> if( coalesce( year( my_udf( max( substring( trim(
    extract( SELECT WITH OVER UNION COLLATE DIV UNKNOWN ANY FOR lateral rand() current_date
    """.split()
)
SENTENCES = st.lists(WORDS, max_size=14).map(" ".join)


class TestAnyText:
    """Whatever the text, it is a predicate or an `InvalidPredicate`."""

    @staticmethod
    def judged(text: str) -> Predicate | None:
        try:
            parsed = predicate(text)
        except InvalidPredicate as error:
            assert error.position is None or 0 <= error.position <= len(text)
            return None
        for value in ("1", "0", None, "?"):
            if parsed.may_match({"x": value}, None):
                assert parsed.matches_partition({"x": value})
            parsed.matches_partition({"x": value})
        return parsed

    @settings(max_examples=400)
    @given(st.text())
    @example("x in (")
    @example("x::")
    @example("cast(as)")
    @example("case")
    @example("\x00")
    def test_of_any_characters(self, text):
        self.judged(text)

    @settings(max_examples=1500)
    @given(SENTENCES)
    def test_of_words_of_sql(self, text):
        self.judged(text)

    @settings(max_examples=300)
    @given(st.text(alphabet="x1'\"`\\()=<>!-+*/.,:% \n{}#", max_size=30))
    def test_of_symbols(self, text):
        self.judged(text)
