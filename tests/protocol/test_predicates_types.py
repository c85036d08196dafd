"""Predicates over partition values: types, literals, and what Spark casts to what."""

import pytest

from tests.protocol.judging import UNDECIDED, matches, predicate, truth

DATE, TIMESTAMP, NTZ = "date", "timestamp", "timestamp_ntz"


def check(text, value, type_, expected):
    found = truth(text, value, type_)
    assert found == expected, (text, value, type_)
    assert type(found) is type(expected)


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
            ("timestamp", "x > TIMESTAMP '2024-03-01 00:00:00'", "2024-03-01 00:00:00.000001", True),
            ("timestamp", "x > TIMESTAMP '2024-03-01 00:00:00'", "2024-03-01 00:00:00", False),
            ("timestamp", "x = TIMESTAMP '2000-01-01 12:00:00'", "2000-01-01T12:00:00.000000Z", True),
            ("timestamp", "x = TIMESTAMP '2000-01-01 14:00:00+02:00'", "2000-01-01 12:00:00", True),
            ("timestamp", "x = TIMESTAMP_LTZ '2000-01-01 12:00:00'", "2000-01-01 12:00:00", True),
            ("timestamp_ntz", "x = TIMESTAMP_NTZ '2000-01-01 12:00:00'", "2000-01-01 12:00:00", True),
            ("timestamp_ntz", "x = TIMESTAMP '2000-01-01 12:00:00'", "2000-01-01 12:00:00", True),
        ],
    )
    def test_known_values(self, type_, text, value, expected):
        check(text, value, type_, expected)
        check(text, None, type_, None)

    def test_values_that_python_cannot_hold(self):
        check("x > DATE '2024-01-01'", "12024-01-01", DATE, UNDECIDED)
        check("x IS NULL", "12024-01-01", DATE, UNDECIDED)
        check("x < '12024-01-01'", "2024-01-01", DATE, UNDECIDED)

    @pytest.mark.parametrize("type_", ["variant", {"type": "array", "elementType": "long", "containsNull": True}])
    def test_types_without_an_order(self, type_):
        parsed = predicate("x = 1 AND p = 1", {"x": type_, "p": "long"}, ["p"])
        assert parsed.may_match({"p": "1"}, None)
        assert not parsed.may_match({"p": "2"}, None)

    @pytest.mark.parametrize("text", ["x = 5", "x > true", "x IN (1.5)", "x = X'00'", "x + 1.5 = x"])
    def test_comparisons_that_spark_refuses_are_not_decided(self, text):
        check(text, "2024-01-01", DATE, UNDECIDED)


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
            ("timestamp", "x >= '2024-02-01T00:00:00Z'", "2024-02-01 00:00:00", True),
            ("timestamp", "x = '2024-02-01 01:30:00+01:30'", "2024-02-01 00:00:00", True),
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
        check(text, "2024-01-01", DATE, UNDECIDED)


class TestCast:
    @pytest.mark.parametrize(
        ("type_", "text", "value", "expected"),
        [
            ("string", "CAST(x AS INT) = 10", "10", True),
            ("string", "x::int = 10", "10", True),
            ("string", "int(x) = 10", "10", True),
            ("string", "CAST(x AS DOUBLE) = 1.5", "1.50", True),
            ("string", "CAST(x AS DOUBLE) > 1e9", "Infinity", True),
            ("string", "CAST(x AS DECIMAL(5, 1)) = 1.5", "1.45", True),
            ("string", "CAST(x AS DECIMAL) = 2", "1.5", True),
            ("string", "CAST(x AS BOOLEAN)", "yes", True),
            ("string", "CAST(x AS DATE) = DATE '2024-01-31'", "2024-01-31", True),
            ("string", "CAST(x AS TIMESTAMP) = TIMESTAMP '2024-01-31 00:00:00'", "2024-01-31", True),
            ("string", "CAST(x AS BINARY) = X'61'", "a", True),
            ("string", "CAST(x AS VARCHAR(2)) = 'abc'", "abc", True),
            ("integer", "CAST(x AS STRING) = '7'", "7", True),
            ("integer", "CAST(x AS BOOLEAN)", "7", True),
            ("integer", "CAST(x AS DECIMAL(3,1)) = 7", "7", True),
            ("integer", "CAST(x AS TINYINT) = 7", "7", True),
            ("integer", "CAST(x AS TIMESTAMP) = TIMESTAMP '1970-01-01 00:00:07'", "7", True),
            ("double", "CAST(x AS INT) = 1", "1.9", True),
            ("double", "CAST(x AS INT) = -1", "-1.9", True),
            ("double", "CAST(x AS DECIMAL(5,1)) = 2", "2.0", True),
            ("decimal(10,2)", "CAST(x AS INT) = 1", "1.99", True),
            ("decimal(10,2)", "CAST(x AS STRING) = '1.50'", "1.50", True),
            ("boolean", "CAST(x AS INT) = 1", "true", True),
            ("boolean", "CAST(x AS STRING) = 'true'", "true", True),
            ("date", "CAST(x AS STRING) = '2024-01-31'", "2024-01-31", True),
            ("timestamp", "CAST(x AS STRING) = '2024-01-31 00:00:00.5'", "2024-01-31 00:00:00.500", True),
            ("timestamp", "CAST(x AS DATE) = DATE '2024-01-31'", "2024-01-31 23:59:59", True),
            ("timestamp", "CAST(x AS DATE) = DATE '1969-12-31'", "1969-12-31 23:59:59", True),
            ("timestamp", "CAST(x AS BIGINT) = -1", "1969-12-31 23:59:59.5", True),
            ("binary", "CAST(x AS STRING) = 'aé'", "aé", True),
            ("string", "TRY_CAST(x AS INT) IS NULL", "abc", True),
            ("string", "TRY_CAST(x AS INT) = 5", "5", True),
            ("integer", "TRY_CAST(x AS TINYINT) IS NULL", "128", True),
            ("string", "TRY_CAST(x AS DATE) IS NULL", "2024-02-30", True),
            ("string", "TRY_CAST(x AS BOOLEAN) IS NULL", "maybe", True),
            ("double", "TRY_CAST(x AS INT) IS NULL", "NaN", True),
            ("decimal(10,2)", "TRY_CAST(x AS DECIMAL(3,2)) IS NULL", "10.00", True),
        ],
    )
    def test_known_values(self, type_, text, value, expected):
        check(text, value, type_, expected)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            ("string", "CAST(x AS INT) IS NULL", "abc"),
            ("string", "CAST(x AS INT) = 1", "1.5"),
            ("integer", "CAST(x AS TINYINT) = 44", "300"),
            ("double", "CAST(x AS INT) > 0", "1e10"),
            ("decimal(10,2)", "CAST(x AS DECIMAL(3,2)) IS NULL", "10.00"),
            ("string", "CAST(x AS DECIMAL(3,2)) IS NULL", "10"),
            ("double", "CAST(x AS STRING) = '0.1'", "0.1"),
            ("binary", "CAST(x AS INT) = 1", "a"),
            ("integer", "CAST(x AS DATE) IS NULL", "1"),
            ("integer", "CAST(x AS ARRAY<INT>) IS NULL", "1"),
            ("integer", "CAST(x AS STRUCT<a: INT, b: MAP<INT, INT>>) IS NULL", "1"),
            ("integer", "CAST(x AS money) = 1", "1"),
            ("string", "TRY_CAST(x AS TIMESTAMP) IS NULL", "12:00"),
            ("string", "TRY_CAST(x AS DOUBLE) IS NULL", "0x1p3"),
        ],
    )
    def test_what_is_not_certain_is_not_decided(self, type_, text, value):
        check(text, value, type_, UNDECIDED)

    def test_null_stays_null(self):
        for type_ in ("INT", "STRING", "DATE", "DECIMAL(38,38)", "BOOLEAN"):
            check(f"CAST(x AS {type_}) IS NULL", None, "string", True)
            check(f"CAST(NULL AS {type_}) IS NULL", None, "string", True)


class TestArithmetic:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("x + 1 = 8", "7"),
            ("x - 1 = 6", "7"),
            ("x * 2 = 14", "7"),
            ("x / 2 = 3.5", "7"),
            ("x % 4 = 3", "7"),
            ("x % 4 = -3", "-7"),
            ("x DIV 2 = 3", "7"),
            ("x DIV 2 = -3", "-7"),
            ("mod(x, 4) = 3", "7"),
            ("-x = -7", "7"),
            ("negative(x) = -7", "7"),
            ("abs(x) = 7", "-7"),
            ("x + 0.5 = 7.5", "7"),
            ("x * 1.5 = 10.5", "7"),
            ("x / 3.0 = 2.333333", "7"),
            ("x % 2.5 = 2.0", "7"),
            ("x + 1e0 = 8", "7"),
            ("x + 1L = 8", "7"),
            ("1 + x * 2 = 15", "7"),
            ("(x + NULL) IS NULL", "7"),
            ("x + 1 IS NULL", None),
        ],
    )
    def test_known_values(self, text, value):
        check(text, value, "integer", True)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            ("integer", "x + 1 IS NULL", "2147483647"),
            ("integer", "x * x < 0", "65536"),
            ("integer", "-x = x", "-2147483648"),
            ("integer", "abs(x) < 0", "-2147483648"),
            ("byte", "x + 1Y < 0", "127"),
            ("long", "x - 1 > 0", "-9223372036854775808"),
            ("integer", "1 / x IS NULL", "0"),
            ("integer", "1 % x IS NULL", "0"),
            ("integer", "1 DIV x IS NULL", "0"),
            ("double", "1 / x > 0", "0.0"),
            ("decimal(10,2)", "1 / x IS NULL", "0.00"),
            ("decimal(38,0)", "x * x IS NULL", "9" * 38),
            # Spark takes text for another number in each mode.
            ("integer", "x + '1' = 2", "1"),
            ("float", "x + 1 = 2", "1.0"),
        ],
    )
    def test_overflow_and_division_by_zero_are_not_decided(self, type_, text, value):
        check(text, value, type_, UNDECIDED)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            ("decimal(10,2)", "x + 0.005 = 1.505", "1.50"),
            ("decimal(10,2)", "x / 3 = 0.500000000000", "1.50"),
            ("decimal(10,2)", "x * x = 2.25", "1.50"),
            ("decimal(10,2)", "x DIV 1 = 1", "1.50"),
            ("decimal(10,2)", "-x = -1.5", "1.50"),
            ("decimal(38,10)", "x + 0.1 = 1.6", "1.5"),
            ("float", "x + x = 0.2F", "0.1"),
            ("double", "x * 3 = 0.30000000000000004", "0.1"),
            ("double", "x % 1 = 0.5", "1.5"),
        ],
    )
    def test_results_are_rounded_as_their_type_is(self, type_, text, value):
        check(text, value, type_, True)
