"""What an IN lists, however long it is."""

import pytest

from tests.protocol.judging import matches, predicate, refusal, statistics, truth


@pytest.mark.parametrize(
    "values",
    [
        "1",
        "1, 2, 3",
        "-1, - 2, -3",
        "'1', '2'",
        "1, '2', -3",
        "'a' 'b', 'c'",
        "1L, 2S, 3Y, 1.5, .5, 1e3, 2D, 3BD",
        "9999999999, 123456789",
        "2147483647, -2147483648, 2147483648",
        "007, 0",
    ],
)
@pytest.mark.parametrize("type_", ["integer", "double", "string", "decimal(10,2)"])
def test_a_list_of_literals_is_judged_as_one_of_operands(values, type_):
    """Parentheses around the first one have it read as any operand is."""
    first, comma, rest = values.partition(",")
    for text in ("x IN ({})", "x NOT IN ({}) OR v = 1"):
        literals, operands = text.format(values), text.format(f"({first}){comma}{rest}")
        for value in ("1", "-1", "3", None):
            assert truth(literals, value, type_) == truth(operands, value, type_), value


def test_values_that_are_no_number_and_nulls_are_looked_at():
    assert matches("x IN (1, NULL, 2)")
    assert truth("x IN (2, NULL)") is None
    assert truth("x IN (2, 3)") is False
    assert matches("x IN ('NaN', 1.0)", "NaN", "double")
    assert not matches("x IN (1.0, 2.0)", "NaN", "double")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("x IN (1, 2e999)", 9),
        ("x IN (-1, -99999999999999999999999999999999999999999)", 11),
        ("x IN (1, 2", None),
        ("x IN (1 2)", None),
        ("x IN (1,)", 7),
        ("x IN (1, -)", None),
        ("x IN ()", None),
        ("x IN (1 /* one */, 2)", None),
        ("x IN (1, 2 /* two */)", None),
    ],
)
def test_what_is_no_list_is_refused(text, position):
    found = refusal(text).position
    if position is not None:
        assert found == position


@pytest.mark.parametrize(
    "text", ["x IN (1, 2) AND v = 3", "NOT x IN (2) OR x IN (3, v)", "x IN (2 - 1, 3)"]
)
def test_the_rest_of_the_text_is_read(text):
    assert matches(text)


@pytest.mark.parametrize(
    ("text", "low", "high", "expected"),
    [
        ("v IN (5, 7)", 5, 5, {True}),
        ("v IN (5, 7, x)", 5, 5, {True}),
        ("v IN (6, 7)", 5, 5, {False}),
        ("v IN (6, 7, x)", 5, 5, {False}),
        ("v IN (6, NULL)", 5, 5, {None}),
        ("v IN (6, x, NULL)", 5, 5, {None}),
        ("v IN (5, 7)", 5, 6, {True, False}),
        ("v IN (5, 7, x)", 5, 6, {True, False}),
        ("v IN (7, x)", 5, 6, {False}),
        ("v IN (x, 7, NULL)", 5, 8, {True, None}),
        ("x IN (1, v)", 5, 8, {True}),
        ("x IN (2, v)", 5, 8, {False}),
    ],
)
def test_by_statistics_it_is_what_its_comparisons_are(text, low, high, expected):
    stats = statistics(low={"v": low}, high={"v": high}, nulls={"v": 0})
    asked = {True: text, False: f"NOT ({text})", None: f"({text}) IS NULL"}
    found = {truth for truth, one in asked.items() if predicate(one).may_match({"x": "1"}, stats)}
    assert found == expected
