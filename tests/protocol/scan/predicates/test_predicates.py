"""Predicates over partition values: every operator, in three-valued logic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.judging import UNDECIDED, matches, predicate, truth

VALUES = st.none() | st.integers(-3, 3).map(str)


class TestMatch:
    """Only what is true matches; false and null do not."""

    @pytest.mark.parametrize(
        ("value", "expected"), [("1", True), ("2", False), (None, False), ("", False)]
    )
    def test_a_comparison(self, value, expected):
        assert matches("x = 1", value) is expected

    def test_columns_are_found_whatever_their_case(self):
        assert predicate("X = 1 AND `Part` = 2", {"x": "integer", "PART": "long"}, ["X", "part"])
        assert matches("X = 1")
        assert not matches("X = 2")

    def test_a_value_that_is_not_of_the_type_may_be_anything(self):
        assert truth("x = 1", "one") == UNDECIDED
        assert truth("x IS NULL", "one") == UNDECIDED

    def test_a_missing_value_may_be_anything(self):
        assert predicate("x = 1").matches_partition({})
        assert predicate("x = 1").may_match({}, None)

    def test_partition_values_are_found_by_physical_name(self):
        mapped = predicate("x = 1", **{"delta.columnMapping.physicalName": "col-1"})
        assert mapped.matches_partition({"col-1": "1"})
        assert not mapped.matches_partition({"col-1": "2"})

    def test_repeated_questions_have_the_same_answer(self):
        parsed = predicate("x > 5")
        answers = [parsed.matches_partition({"x": str(n)}) for n in (1, 9, 1, 9)]
        assert answers == [False, True, False, True]

    def test_the_text_is_kept(self):
        assert predicate("x > 5").text == "x > 5"

    def test_one_text_over_the_same_columns_is_one_predicate(self):
        assert predicate("x > 5") == predicate("x > 5")
        assert hash(predicate("x > 5")) == hash(predicate("x > 5"))
        assert predicate("x > 5") != predicate("x > 6")
        assert predicate("x > 5") != predicate("x > 5", "long")
        assert predicate("x > 5") != predicate("x > 5", partition_by=["v"])

    def test_several_partition_columns(self):
        parsed = predicate("a = 1 OR b = 1", {"a": "integer", "b": "integer"}, ["a", "b"])
        assert parsed.matches_partition({"a": None, "b": "1"})
        assert not parsed.matches_partition({"a": None, "b": "2"})

    def test_a_partition_column_in_a_struct_of_the_same_name_is_data(self):
        columns = {"s": {"type": "struct", "fields": [field("x", "integer")]}, "x": "integer"}
        assert predicate("s.x = 1", columns).matches_partition({"x": "2"})

    def test_padded_text_is_not_compared(self):
        # Spark pads what it reads of CHAR columns, and collations have their own order.
        padded = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
        collated = {"__COLLATIONS": {"x": "spark.UTF8_LCASE"}}
        for metadata in (padded, collated):
            parsed = predicate("x = 'a'", "string", **metadata)
            assert parsed.matches_partition({"x": "b"})
            assert not parsed.matches_partition({"x": None})
        limited = predicate("x = 'a'", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)")
        assert not limited.matches_partition({"x": "b"})


def field(name, type_):
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}


LITERALS = {True: "true", False: "false", None: "(NULL = 1)"}


class TestLogic:
    """NOT, AND and OR of true, false and null."""

    @pytest.mark.parametrize("operand", LITERALS)
    def test_not(self, operand):
        expected = None if operand is None else not operand
        assert truth(f"NOT {LITERALS[operand]}") is expected
        assert truth(f"! {LITERALS[operand]}") is expected

    @pytest.mark.parametrize("left", LITERALS)
    @pytest.mark.parametrize("right", LITERALS)
    def test_and_or(self, left, right):
        both = False if False in (left, right) else None if None in (left, right) else True
        some = True if True in (left, right) else None if None in (left, right) else False
        assert truth(f"{LITERALS[left]} AND {LITERALS[right]}") is both
        assert truth(f"{LITERALS[left]} OR {LITERALS[right]}") is some

    @pytest.mark.parametrize("operand", LITERALS)
    def test_is(self, operand):
        text = LITERALS[operand]
        for word, wanted in (("TRUE", True), ("FALSE", False), ("UNKNOWN", None), ("NULL", None)):
            assert truth(f"{text} IS {word}") is (operand is wanted)
            assert truth(f"{text} IS NOT {word}") is (operand is not wanted)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # AND binds tighter than OR, NOT tighter than AND.
            ("true OR false AND false", True),
            ("(true OR false) AND false", False),
            ("NOT false AND false", False),
            ("NOT (false AND false)", True),
            ("NOT x = 2", True),
            ("NOT x IS NULL", True),
            # Comparisons are read from the left, IS and the like apply to all before them.
            ("x = 1 = true", True),
            ("x = 2 IS NULL", False),
            ("NULL = x IS NULL", True),
            ("1 + 2 * 3 = 7", True),
            ("(1 + 2) * 3 = 9", True),
            ("7 - 2 - 1 = 4", True),
            ("- x = -1", True),
            ("2 - -1 = 3", True),
            ("x BETWEEN 0 AND 2 AND x = 1", True),
            ("x BETWEEN 0 AND 2 OR x = 9", True),
        ],
    )
    def test_precedence(self, text, expected):
        assert truth(text) is expected

    @given(VALUES)
    def test_not_not(self, value):
        assert truth("NOT NOT (x > 0)", value) is truth("x > 0", value)

    @given(VALUES, st.sampled_from(["x > 0", "x IS NULL", "x IN (1, NULL)"]))
    def test_de_morgan(self, value, other):
        conjunction, disjunction = f"x = 1 AND {other}", f"x = 1 OR {other}"
        assert truth(f"NOT ({conjunction})", value) is truth(f"NOT (x = 1) OR NOT ({other})", value)
        assert truth(f"NOT ({disjunction})", value) is truth(
            f"NOT (x = 1) AND NOT ({other})", value
        )


class TestComparison:
    @pytest.mark.parametrize(
        ("operator", "below", "same", "above"),
        [
            ("=", False, True, False),
            ("==", False, True, False),
            ("<>", True, False, True),
            ("!=", True, False, True),
            ("<", True, False, False),
            ("<=", True, True, False),
            ("!>", True, True, False),
            (">", False, False, True),
            (">=", False, True, True),
            ("!<", False, True, True),
        ],
    )
    def test_operators(self, operator, below, same, above):
        text = f"x {operator} 5"
        assert [truth(text, value) for value in ("4", "5", "6")] == [below, same, above]
        assert truth(text, None) is None
        assert truth(f"x {operator} NULL") is None

    @pytest.mark.parametrize(
        ("left", "right", "expected"),
        [("1", "1", True), ("1", "2", False), ("1", "NULL", False), ("NULL", "NULL", True)],
    )
    def test_null_safe_equality(self, left, right, expected):
        for one, other in ((left, right), (right, left)):
            assert truth(f"{one} <=> {other}") is expected
            assert truth(f"{one} IS NOT DISTINCT FROM {other}") is expected
            assert truth(f"{one} IS DISTINCT FROM {other}") is not expected

    @pytest.mark.parametrize(("value", "expected"), [(None, True), ("1", False), ("", True)])
    def test_is_null(self, value, expected):
        assert truth("x IS NULL", value) is expected
        assert truth("x IS NOT NULL", value) is not expected

    @pytest.mark.parametrize(
        ("value", "inside"),
        [("9", False), ("10", True), ("15", True), ("20", True), ("21", False), (None, None)],
    )
    def test_between_includes_its_bounds(self, value, inside):
        assert truth("x BETWEEN 10 AND 20", value) is inside
        outside = None if inside is None else not inside
        assert truth("x NOT BETWEEN 10 AND 20", value) is outside

    def test_between_with_a_null_bound(self):
        assert truth("x BETWEEN NULL AND 20", "30") is False
        assert truth("x BETWEEN NULL AND 20", "15") is None

    @pytest.mark.parametrize(
        ("text", "value", "expected"),
        [
            ("x IN (1, 2)", "2", True),
            ("x IN (1, 2)", "3", False),
            ("x IN (1, 2)", None, None),
            ("x IN (1, NULL)", "1", True),
            ("x IN (1, NULL)", "2", None),
            ("x NOT IN (1, 2)", "3", True),
            ("x NOT IN (1, 2)", "2", False),
            ("x NOT IN (1, NULL)", "2", None),
            ("x NOT IN (1, NULL)", "1", False),
            ("NOT x IN (1, 2)", "3", True),
            ("x IN (1, 2.5)", "1", True),
            ("x IN (x)", "7", True),
            ("x IN (0, x + 1, x)", "7", True),
            ("x IN (x - 1, x + 1)", "7", False),
            ("1 IN (1)", None, True),
        ],
    )
    def test_in(self, text, value, expected):
        assert truth(text, value) is expected

    def test_a_long_list(self):
        text = f"x IN ({', '.join(map(str, range(0, 4000, 2)))})"
        assert matches(text, "3998")
        assert not matches(text, "3999")

    @pytest.mark.parametrize(
        ("value", "less", "equal"),
        [
            ("NaN", False, True),
            ("Infinity", True, False),
            ("1.0", True, False),
            ("-0.0", True, False),
        ],
    )
    def test_nan_is_equal_to_itself_and_above_all(self, value, less, equal):
        assert truth("x < double('NaN')", value, "double") is less
        assert truth("x = double('NaN')", value, "double") is equal
        assert truth("x IN (1e9, double('NaN'))", value, "double") is equal

    def test_negative_zero_is_zero(self):
        assert truth("x = 0", "-0.0", "double") is True

    @pytest.mark.parametrize(
        ("value", "expected"), [("true", True), ("false", False), (None, None)]
    )
    def test_a_boolean_column_is_a_condition(self, value, expected):
        assert truth("x", value, "boolean") is expected
        assert truth("x = true", value, "boolean") is expected
        assert truth("x <> false", value, "boolean") is expected

    def test_a_constant_beyond_all_integers_decides_even_null(self):
        # Spark leaves the column out of such a comparison.
        assert truth("x < 9223372036854775808", "1") is True
        assert matches("x < 9223372036854775808", None)
        assert matches("-9223372036854775809 < x", None)
        assert not matches("x > 9223372036854775808", None)
        assert matches("NOT x > 9223372036854775808", None)
        assert not matches("x = 9223372036854775808", None)


class TestConditionals:
    @pytest.mark.parametrize(
        ("text", "value", "expected"),
        [
            ("CASE WHEN x = 1 THEN true ELSE false END", "1", True),
            ("CASE WHEN x = 1 THEN true ELSE false END", None, False),
            ("CASE WHEN x = 1 THEN true END", "2", None),
            ("CASE WHEN x IS NULL THEN 0 WHEN x > 1 THEN 2 ELSE 1 END = 2", "5", True),
            ("CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' END = 'b'", "2", True),
            ("CASE x WHEN NULL THEN 1 ELSE 2 END = 2", None, True),
            ("if(x > 1, 10, 20) = 20", "1", True),
            ("if(x > 1, 10, 20) = 20", None, True),
            ("coalesce(x, 7) = 7", None, True),
            ("coalesce(x, 7) = 7", "1", False),
            ("coalesce(NULL, NULL, x) IS NULL", None, True),
            ("nvl(x, 7) = 7", None, True),
            ("ifnull(x, 7) = 7", None, True),
            ("isnull(x)", None, True),
            ("isnotnull(x)", None, False),
            # What is not decided leaves both branches open.
            ("CASE WHEN CAST('?' AS INT) = 1 THEN 1 ELSE 2 END > 0", "1", True),
            ("CASE WHEN CAST('?' AS INT) = 1 THEN 1 ELSE 2 END = 1", "1", UNDECIDED),
            ("coalesce(CAST('?' AS INT), 2) = 2", "1", UNDECIDED),
            ("nullif(x, CAST('?' AS INT)) = 2", "1", UNDECIDED),
        ],
    )
    def test_values(self, text, value, expected):
        found = truth(text, value)
        assert found == expected
        assert type(found) is type(expected)
