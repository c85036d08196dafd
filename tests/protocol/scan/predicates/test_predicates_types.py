"""Predicates over partition values: types, literals, and what Spark casts to what."""

import pytest

from tests.protocol.judging import UNDECIDED, check, matches, predicate, truth


class TestTypedComparison:
    """Values are compared as their types are, never as the text that the log has."""

    @pytest.mark.parametrize(
        ("type_", "text", "value", "expected"),
        [
            ("byte", "x < 10", "9", True),
            ("short", "x > -5", "-30", False),
            ("integer", "x < 10", "9", True),
            ("long", "x = 9007199254740993", "9007199254740993", True),
            ("long", "x = 9007199254740993", "9007199254740992", False),
            ("long", "x > 2147483648", "9223372036854775807", True),
            ("float", "x = 0.5", "0.5", True),
            # The nearest 4-byte number to a tenth is not the nearest 8-byte one.
            ("float", "x = 0.1", "0.1", False),
            ("float", "x = 0.1F", "0.1", True),
            ("double", "x = 0.1", "0.1", True),
            ("double", "x = 1e300", "1.0E300", True),
            ("decimal(10,2)", "x < 9.99", "10.00", False),
            ("decimal(10,2)", "x = 1.5", "1.50", True),
            ("decimal(10,2)", "x = 2", "2.00", True),
            ("decimal(10,2)", "x > 99999999999", "1.00", False),
            ("boolean", "x = false", "false", True),
            ("string", "x < 'b'", "a", True),
            ("string", "x = 'paris'", "Paris", False),
            ("string", "x = 'café'", "café", True),
            ("string", "x = 'a b/c=d%41'", "a b/c=d%41", True),
            # Strings are ordered by the bytes of their UTF-8, so by code point.
            ("string", "x > '\uffff'", "\U00010000", True),
            ("binary", "x = X'61C3A9'", "aé", True),
            ("binary", "x > X'7F'", "é", True),
            ("date", "x = DATE '2024-01-31'", "2024-01-31", True),
            ("date", "x < DATE '2024-02-01' AND x >= DATE '2024-01-01'", "2024-01-31", True),
            (
                "timestamp",
                "x > TIMESTAMP '2024-03-01 00:00:00'",
                "2024-03-01 00:00:00.000001",
                True,
            ),
            ("timestamp", "x > TIMESTAMP '2024-03-01 00:00:00'", "2024-03-01 00:00:00", False),
            (
                "timestamp",
                "x = TIMESTAMP '2000-01-01 12:00:00'",
                "2000-01-01T12:00:00.000000Z",
                True,
            ),
            (
                "timestamp",
                "x = TIMESTAMP '2000-01-01 14:00:00+02:00'",
                "2000-01-01 12:00:00Z",
                True,
            ),
            ("timestamp", "x = TIMESTAMP_LTZ '2000-01-01 12:00:00'", "2000-01-01 12:00:00", True),
            (
                "timestamp_ntz",
                "x = TIMESTAMP_NTZ '2000-01-01 12:00:00'",
                "2000-01-01 12:00:00",
                True,
            ),
            ("timestamp_ntz", "x = TIMESTAMP '2000-01-01 12:00:00'", "2000-01-01 12:00:00", True),
        ],
    )
    def test_known_values(self, type_, text, value, expected):
        check(text, value, type_, expected)
        check(text, None, type_, None)

    def test_values_that_python_cannot_hold(self):
        check("x > DATE '2024-01-01'", "12024-01-01", "date", UNDECIDED)
        check("x IS NULL", "12024-01-01", "date", UNDECIDED)
        check("x < '12024-01-01'", "2024-01-01", "date", UNDECIDED)

    @pytest.mark.parametrize(
        "type_", ["variant", {"type": "array", "elementType": "long", "containsNull": True}]
    )
    def test_types_without_an_order(self, type_):
        parsed = predicate("x = 1 AND p = 1", {"x": type_, "p": "long"}, ["p"])
        assert parsed.may_match({"p": "1"}, None)
        assert not parsed.may_match({"p": "2"}, None)

    @pytest.mark.parametrize(
        "text", ["x = 5", "x > true", "x IN (1.5)", "x = X'00'", "x + 1.5 = x"]
    )
    def test_comparisons_that_spark_refuses_are_not_decided(self, text):
        check(text, "2024-01-01", "date", UNDECIDED)


class TestMixedComparison:
    """Operands of two types meet in a third. Text is cast to what it is compared with."""

    @pytest.mark.parametrize(
        ("type_", "text", "value", "expected"),
        [
            ("string", "x >= 2", "10", True),
            ("string", "x = 1", " 1 ", True),
            ("string", "x = 1", "+1", True),
            ("string", "x < 2.5", "1.5", True),
            ("string", "x = 1e0", "1.00", True),
            ("integer", "x = '1'", "1", True),
            ("integer", "x = ' 1 '", "1", True),
            ("integer", "x < '10'", "9", True),
            ("decimal(10,2)", "x = '1.5'", "1.50", True),
            ("boolean", "x = 'true'", "true", True),
            ("boolean", "x = 'f'", "true", False),
            ("date", "x = '2024-01-31'", "2024-01-31", True),
            ("date", "x = '2024-1-31'", "2024-01-31", True),
            ("date", "x >= '2024'", "2024-01-31", True),
            ("date", "x >= '2024-02'", "2024-01-31", False),
            ("date", "x = '2024-01-31 23:00:00'", "2024-01-31", True),
            ("string", "x = DATE '2024-01-31'", "2024-1-31", True),
            ("timestamp", "x = '2024-02-01'", "2024-02-01 00:00:00", True),
            ("timestamp", "x >= '2024-02-01T00:00:00Z'", "2024-02-01 00:00:00Z", True),
            ("timestamp", "x = '2024-02-01 01:30:00+01:30'", "2024-02-01 00:00:00Z", True),
            ("timestamp", "x = '2024-02-01 1:2'", "2024-02-01 01:02:00", True),
            ("timestamp", "x = DATE '2024-02-01'", "2024-02-01 00:00:00", True),
            ("date", "x < TIMESTAMP '2024-01-31 00:00:01'", "2024-01-31", True),
            ("binary", "x = 'a'", "a", True),
            ("integer", "x < 1.5", "1", True),
            ("long", "x = 1e0", "1", True),
            ("float", "x < 0.5D", "0.25", True),
            ("date", "x IN ('2024-01-31', '2024-02-01')", "2024-01-31", True),
            ("integer", "x IN ('1', '2')", "2", True),
            ("string", "x IN (1, 2)", "2", True),
            ("string", "x IN ('a', 'b')", "b", True),
            ("byte", "x IN ('300', '7')", "5", False),
            ("byte", "x NOT IN ('300')", "5", True),
        ],
    )
    def test_known_values(self, type_, text, value, expected):
        check(text, value, type_, expected)
        check(text, None, type_, None)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            # An error in ANSI mode and null, or a number cut off, without.
            ("string", "x = 1", "abc"),
            ("string", "x = 1", "1.5"),
            ("string", "x = 1", "99999999999999999999"),
            ("string", "x > 1.5", "1d"),
            ("string", "x = DATE '2024-01-01'", "2024-13-01"),
            ("string", "x = TIMESTAMP '2024-01-01 00:00:00'", "2024-01-01 00:00:00 Mars/North"),
            ("integer", "x = 'abc'", "1"),
            ("boolean", "x = 'maybe'", "true"),
            # A number in one mode and text in the other.
            ("integer", "x IN ('01')", "1"),
            ("date", "x IN ('2024-1-31')", "2024-01-31"),
            # An 8-byte number in one mode and a 4-byte one in the other.
            ("float", "x = '0.1'", "0.1"),
        ],
    )
    def test_what_depends_on_the_mode_is_not_decided(self, type_, text, value):
        check(text, value, type_, UNDECIDED)

    def test_a_text_is_never_compared_as_one_with_a_number(self):
        assert matches("x >= 2", "10", "string")
        assert not matches("x > 9", "10a"[:2].replace("0", ""), "string")

    def test_wide_decimals_give_up_digits(self):
        # Spark has room for 38 digits, and rounds what does not fit behind the point.
        assert matches(f"x = {'9' * 37}.5", "9" * 36 + ".50", "decimal(38,2)") is False
        check("x = CAST(2 AS DECIMAL(38,0))", "1.50", "decimal(5,2)", True)


class TestLiterals:
    @pytest.mark.parametrize(
        "text",
        [
            "1 = 1",
            "1 = 1.0",
            "1.50 = 1.5",
            "1L = 1",
            "2S = 2",
            "3Y = 3",
            "1.5BD = 1.5",
            "1e3 = 1000",
            "1E+3 = 1000",
            "1.5e-1 = 0.15D",
            "1.5D = 1.5",
            "1.5f = 1.5",
            ".5 = 0.5",
            "5. = 5",
            "-128Y = -128",
            "-9223372036854775808L = -9223372036854775808",
            "- 1 = -1",
            "+1 = 1",
            "01 = 1",
            "12345678901234567890 > 1",
            "0.00000000000000000001 > 0",
            "X'0aF' = X'00AF'",
            "x'61' = X\"61\"",
            "X '61' = 'a'",
            "'it''s' = 'it\\'s'",
            "'it''s' = \"it's\"",
            '"say ""hi""" = \'say "hi"\'',
            "'a' 'b'\n\"c\" = 'abc'",
            "r'a\\n' = 'a\\\\n'",
            "R\"a\\\" = 'a\\\\'",
            "r'a''b' = 'ab'",
            "'caf\\u00e9' = 'café'",
            "'\\U0001F600' = '😀'",
            "'\\101' = 'A'",
            "'\\t\\n\\r\\b\\0' = '\t\n\r\b\0'",
            "'\\z' = 'z'",
            "'a\\%b' <> 'a%b'",
            "'' = ''",
            "DATE '2024-01-31' = DATE'2024-1-31'",
            "date \"2024-01-31\" = DATE '2024-01-31'",
            "TIMESTAMP '2024-01-31' = DATE '2024-01-31'",
            "TIMESTAMP'2024-01-31T01:02:03.5Z' = TIMESTAMP '2024-01-31 01:02:03.500'",
            "TIMESTAMP_NTZ '2024-01-31 00:00:00' = TIMESTAMP_LTZ '2024-01-31 00:00:00'",
            "TRUE = true",
            "false <> TRUE",
        ],
    )
    def test_hold(self, text):
        assert truth(text) is True

    @pytest.mark.parametrize(
        "text",
        [
            "x = DATE 'today'",
            "x < DATE 'tomorrow'",
            "x > TIMESTAMP 'now'",
            "x = TIME '12:00:00'",
            "x = INTERVAL 1 DAY",
            "x > DATE '2024-01-01' - INTERVAL '7' DAYS",
            "x > DATE '2024-01-01' - INTERVAL '1-2' YEAR TO MONTH",
        ],
    )
    def test_that_are_not_evaluated(self, text):
        check(text, "2024-01-01", "date", UNDECIDED)
